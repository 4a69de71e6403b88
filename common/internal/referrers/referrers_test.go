package referrers

import (
	"slices"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"

	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

const fakeGroup = "fake.direct-secrets.io"

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

func fakeReferrers(t *testing.T) *Referrers {
	t.Helper()
	r, err := New(nil, scheme(t), fake.NewServer().Kinds(), fakeGroup, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return r
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
	got := fakeReferrers(t).storeKeys(es)
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
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "5", Generation: 3, Annotations: map[string]string{"a": "1"}},
		Spec:       v1alpha1.ExternalSecretSpec{StoreRef: &v1alpha1.StoreRef{Kind: "AWSSecretsManager", Name: "s"}},
	}
	terminating, terminatingSmall := object("AWSSecretsManager"), small.DeepCopy()
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(7, 0)}
	terminatingSmall.DeletionTimestamp = terminating.DeletionTimestamp
	noStore := small.DeepCopy()
	noStore.Spec = v1alpha1.ExternalSecretSpec{}
	none := object("")
	none.Spec.Data[0].SourceRef = nil
	cases := map[string]struct {
		reason string
		in     any
		want   any
	}{
		"Ours":    {"An object of this module loses only its managed fields.", object("FakeStore"), ours},
		"Foreign": {"An object of another module keeps the fields that routing and other controllers need.", object("AWSSecretsManager"), small},
		"Dying":   {"The deletion timestamp stays: if the module that serves the object does not run, another operator reports it.", terminating, terminatingSmall},
		"NoStore": {"An object without a store is reduced as well.", none, noStore},
		"Other":   {"Anything that is not an ExternalSecret stays unchanged.", "not an object", "not an object"},
	}
	keep := func(from, to *v1alpha1.ExternalSecret) { to.Annotations = from.Annotations }
	transform, err := Transform(scheme(t), fake.NewServer().Kinds(), fakeGroup, "", keep)
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
	if _, err := Transform(runtime.NewScheme(), fake.NewServer().Kinds(), fakeGroup, "", keep); err == nil {
		t.Error("Transform(): no error for Kinds that the scheme does not know")
	}
}
