package externalsecret

import (
	"context"
	"slices"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/store"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/store/fake/apis/v1alpha1"
)

const fakeGroup = "fake.direct-secrets.io"

// fakeKinds are the Kinds of the fake module, whose stores are never connected here.
func fakeKinds() []store.Kind {
	return []store.Kind{
		store.KindOf(store.ConnectorFunc[*fakev1alpha1.FakeStore](func(context.Context, *fakev1alpha1.FakeStore, store.Credentials) (store.Client, error) {
			return nil, errBoom
		})),
		store.ClusterKindOf(store.ConnectorFunc[*fakev1alpha1.ClusterFakeStore](func(context.Context, *fakev1alpha1.ClusterFakeStore, store.Credentials) (store.Client, error) {
			return nil, errBoom
		})),
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, fakev1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func fakeRoutes(t *testing.T, reader client.Reader) *routes {
	t.Helper()
	r, err := newRoutes(reader, scheme(t), fakeKinds())
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
		"NoReference":    {"An object without a store is nobody's.", nil, ""},
		"NoVersion":      {"Without an apiVersion a Kind of the project's groups matches.", &v1alpha1.StoreRef{Kind: "FakeStore"}, "FakeStore"},
		"Cluster":        {"The cluster twin is a Kind of its own.", &v1alpha1.StoreRef{Kind: "ClusterFakeStore"}, "ClusterFakeStore"},
		"Version":        {"The group counts.", &v1alpha1.StoreRef{APIVersion: fakeGroup + "/v1alpha1", Kind: "FakeStore"}, "FakeStore"},
		"LaterVersion":   {"The version does not: a promotion breaks no reference.", &v1alpha1.StoreRef{APIVersion: fakeGroup + "/v1", Kind: "FakeStore"}, "FakeStore"},
		"OnlyGroup":      {"The version may be left out.", &v1alpha1.StoreRef{APIVersion: fakeGroup, Kind: "FakeStore"}, "FakeStore"},
		"OtherGroup":     {"A Kind of this name in another group is another Kind.", &v1alpha1.StoreRef{APIVersion: "example.org/v1", Kind: "FakeStore"}, ""},
		"SiblingGroup":   {"Also in another group of the project.", &v1alpha1.StoreRef{APIVersion: "aws.direct-secrets.io/v1alpha1", Kind: "FakeStore"}, ""},
		"CoreVersion":    {"A version alone names no group of ours.", &v1alpha1.StoreRef{APIVersion: "v1", Kind: "FakeStore"}, ""},
		"ForeignKind":    {"A Kind of another module is not ours.", &v1alpha1.StoreRef{Kind: "AWSSecretsManager"}, ""},
		"CaseOfKind":     {"A Kind is spelled in one way.", &v1alpha1.StoreRef{Kind: "fakestore"}, ""},
		"NoKind":         {"Nothing matches nothing.", &v1alpha1.StoreRef{}, ""},
		"PrefixOfGroup":  {"A group that only begins like ours is another.", &v1alpha1.StoreRef{APIVersion: fakeGroup + ".evil.org/v1", Kind: "FakeStore"}, ""},
		"SuffixOfDomain": {"A group that only ends like ours is another.", &v1alpha1.StoreRef{APIVersion: "x" + fakeGroup + "/v1", Kind: "FakeStore"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k, ok := fakeRoutes(t, nil).serves(tc.ref)
			if diff := cmp.Diff(tc.want, k.gvk.Kind); diff != "" || ok != (tc.want != "") {
				t.Errorf("\n%s\nserves(): %t, -want, +got:\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestGroupMatches(t *testing.T) {
	cases := map[string]struct {
		reason            string
		apiVersion, group string
		want              bool
	}{
		"Unset":        {"Unset matches every group of the project.", "", "aws.direct-secrets.io", true},
		"UnsetRoot":    {"Also the root group.", "", "direct-secrets.io", true},
		"UnsetForeign": {"But no other.", "", "example.org", false},
		"UnsetSimilar": {"Also none that looks similar.", "", "evildirect-secrets.io", false},
		"Named":        {"A group that is named matches itself, whosever it is.", "example.org/v1", "example.org", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := groupMatches(tc.apiVersion, tc.group); got != tc.want {
				t.Errorf("\n%s\ngroupMatches(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestStoreKeys(t *testing.T) {
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "a"},
			Data: []v1alpha1.DataEntry{
				{SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "FakeStore", Name: "b"}}},
				{SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: "FakeStore", Name: "a"}}},
				{},
			},
			DataFrom: []v1alpha1.DataFromEntry{
				{SourceRef: &v1alpha1.SourceRef{StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: "c"}}},
				{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "Password", Name: "d"}}},
				{SourceRef: &v1alpha1.SourceRef{StoreRef: &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: "e"}}},
			},
		},
	}
	got := fakeRoutes(t, nil).storeKeys(es)
	slices.Sort(got)
	want := []string{"ClusterFakeStore//c", "FakeStore/shop/a", "FakeStore/shop/b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("storeKeys(): -want, +got:\n%s", diff)
	}
}

func TestTransform(t *testing.T) {
	object := func(kind string) *v1alpha1.ExternalSecret {
		return &v1alpha1.ExternalSecret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "5", Generation: 3,
				Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			},
			Spec:   v1alpha1.ExternalSecretSpec{Data: []v1alpha1.DataEntry{{SecretKey: "k", SourceRef: &v1alpha1.DataSourceRef{StoreRef: v1alpha1.StoreRef{Kind: kind, Name: "s"}}}}},
			Status: v1alpha1.ExternalSecretStatus{ObservedGeneration: 3},
		}
	}
	ours := object("FakeStore")
	ours.ManagedFields = nil
	small := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "5", Generation: 3},
		Spec:       v1alpha1.ExternalSecretSpec{StoreRef: &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: "s"}},
	}
	nobody := small.DeepCopy()
	nobody.Spec = v1alpha1.ExternalSecretSpec{}
	none := object("")
	none.Spec.Data[0].SourceRef = nil
	cases := map[string]struct {
		reason string
		in     any
		want   any
	}{
		"Ours":    {"An object of ours loses only its managed fields.", object("FakeStore"), ours},
		"Foreign": {"Of another module's object stays what routing needs.", object("AWSSecretsManager"), small},
		"Nobody":  {"Also of one that names no store.", none, nobody},
		"Other":   {"Anything else passes.", "not an object", "not an object"},
	}
	transform, err := Transform(scheme(t), fakeKinds())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 { // An informer may transform twice.
				got, err := transform(tc.in)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\ntransform: -want, +got:\n%s", tc.reason, diff)
				}
				tc.in = got
			}
		})
	}
	if _, err := Transform(runtime.NewScheme(), fakeKinds()); err == nil {
		t.Error("Transform(): no error for Kinds that the scheme does not know")
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
		"Namespaced": {"A namespaced Kind is looked up beside the object.", "FakeStore", nil, want{Key: types.NamespacedName{Namespace: "shop", Name: "s"}, Found: true}},
		"Cluster":    {"A cluster Kind has no namespace.", "ClusterFakeStore", nil, want{Key: types.NamespacedName{Name: "s"}, Found: true}},
		"Gone":       {"A store that does not exist is no error.", "FakeStore", kerrors.NewNotFound(schema.GroupResource{}, "s"), want{Key: types.NamespacedName{Namespace: "shop", Name: "s"}}},
		"Unread":     {"One that cannot be read is.", "FakeStore", errBoom, want{Key: types.NamespacedName{Namespace: "shop", Name: "s"}, Found: true, Err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			r := fakeRoutes(t, &test.MockClient{MockGet: func(_ context.Context, key client.ObjectKey, _ client.Object) error {
				got.Key = key
				return tc.err
			}})
			ref := v1alpha1.StoreRef{Kind: tc.kind, Name: "s"}
			k, _ := r.serves(&ref)
			s, err := r.find(t.Context(), k, ref, "shop")
			got.Found, got.Err = s != nil, err
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nfind(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
