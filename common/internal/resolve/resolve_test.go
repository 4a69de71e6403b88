package resolve

import (
	"context"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

const fakeGroup = "fake.direct-secrets.io"

var errBoom = errors.New("boom")

func routes(t *testing.T, reader client.Reader) *Routes {
	t.Helper()
	s := runtime.NewScheme()
	if err := fakev1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	r, err := New(reader, s, fake.NewServer().Kinds())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestServes(t *testing.T) {
	cases := map[string]struct {
		reason string
		ref    *v1alpha1.StoreRef
		want   string
	}{
		"NoReference":    {"Without a reference no Kind matches.", nil, ""},
		"NoVersion":      {"Without an apiVersion, a Kind of the project's groups matches.", &v1alpha1.StoreRef{Kind: "FakeStore"}, "FakeStore"},
		"Cluster":        {"The cluster twin is a different Kind.", &v1alpha1.StoreRef{Kind: "ClusterFakeStore"}, "ClusterFakeStore"},
		"Version":        {"The group of the apiVersion matches.", &v1alpha1.StoreRef{APIVersion: fakeGroup + "/v1alpha1", Kind: "FakeStore"}, "FakeStore"},
		"LaterVersion":   {"The version does not count, so that a promotion breaks no reference.", &v1alpha1.StoreRef{APIVersion: fakeGroup + "/v1", Kind: "FakeStore"}, "FakeStore"},
		"OnlyGroup":      {"The version is optional.", &v1alpha1.StoreRef{APIVersion: fakeGroup, Kind: "FakeStore"}, "FakeStore"},
		"OtherGroup":     {"The same Kind name in another group does not match.", &v1alpha1.StoreRef{APIVersion: "example.org/v1", Kind: "FakeStore"}, ""},
		"SiblingGroup":   {"The same Kind name in another group of the project does not match.", &v1alpha1.StoreRef{APIVersion: "aws.direct-secrets.io/v1alpha1", Kind: "FakeStore"}, ""},
		"CoreVersion":    {"A version alone is the core group, which does not match.", &v1alpha1.StoreRef{APIVersion: "v1", Kind: "FakeStore"}, ""},
		"ForeignKind":    {"A Kind of another module does not match.", &v1alpha1.StoreRef{Kind: "AWSSecretsManager"}, ""},
		"CaseOfKind":     {"Kinds are case-sensitive.", &v1alpha1.StoreRef{Kind: "fakestore"}, ""},
		"NoKind":         {"An empty reference matches no Kind.", &v1alpha1.StoreRef{}, ""},
		"PrefixOfGroup":  {"A group with this group as its prefix does not match.", &v1alpha1.StoreRef{APIVersion: fakeGroup + ".evil.org/v1", Kind: "FakeStore"}, ""},
		"SuffixOfDomain": {"A group with this group as its suffix does not match.", &v1alpha1.StoreRef{APIVersion: "x" + fakeGroup + "/v1", Kind: "FakeStore"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k, ok := routes(t, nil).Serves(tc.ref)
			if diff := cmp.Diff(tc.want, k.GVK.Kind); diff != "" || ok != (tc.want != "") {
				t.Errorf("\n%s\nServes(): %t, -want, +got:\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestFind(t *testing.T) {
	type want struct {
		Key   types.NamespacedName
		Found bool
		Err   error
	}
	cases := map[string]struct {
		reason string
		kind   string
		err    error
		want   want
	}{
		"Namespaced": {"A namespaced Kind is looked up in the namespace of the object.", "FakeStore", nil, want{Key: types.NamespacedName{Namespace: "shop", Name: "s"}, Found: true}},
		"Cluster":    {"A cluster Kind has no namespace.", "ClusterFakeStore", nil, want{Key: types.NamespacedName{Name: "s"}, Found: true}},
		"Absent":     {"A store that does not exist is no error.", "FakeStore", kerrors.NewNotFound(schema.GroupResource{}, "s"), want{Key: types.NamespacedName{Namespace: "shop", Name: "s"}}},
		"Unread":     {"A failed read of a store is an error.", "FakeStore", errBoom, want{Key: types.NamespacedName{Namespace: "shop", Name: "s"}, Found: true, Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			r := routes(t, &test.MockClient{MockGet: func(_ context.Context, key client.ObjectKey, _ client.Object) error {
				got.Key = key
				return tc.err
			}})
			ref := v1alpha1.StoreRef{Kind: tc.kind, Name: "s"}
			k, _ := r.Serves(&ref)
			s, err := r.Find(t.Context(), k, ref, "shop")
			got.Found, got.Err = s != nil, err
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nFind(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
