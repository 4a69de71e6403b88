package resolve

import (
	"context"
	"slices"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1alpha1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestResolve checks each reason for which a store is refused, in the order of the checks.
func TestResolve(t *testing.T) {
	notReady := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStoreInvalidSpec, Message: "spec.server: wrong"}}
	store := func(change func(*fakev1alpha1.FakeStore)) client.Object {
		s := &fakev1alpha1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", UID: "u"}}
		change(s)
		return s
	}
	cluster := func(change func(*fakev1alpha1.ClusterFakeStore)) client.Object {
		s := &fakev1alpha1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "c"}}
		change(s)
		return s
	}
	plain := store(func(*fakev1alpha1.FakeStore) {})
	generator := &fakev1alpha1.FakeGenerator{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}}
	blue := generator.DeepCopy()
	blue.Spec.Controller, blue.Status.Conditions = "blue", notReady
	elsewhereToo := &fakev1alpha1.ClusterFakeGenerator{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "c"}}
	elsewhereToo.Spec.Controller = "blue"
	elsewhereToo.Spec.Conditions = []v1alpha1.NamespaceCondition{{Namespaces: []string{"other"}}}
	elsewhere := cluster(func(s *fakev1alpha1.ClusterFakeStore) {
		s.Spec.Conditions = []v1alpha1.StoreCondition{{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"other"}}}}
		s.Status.Conditions = notReady
	})
	type want struct {
		Why                  Why
		Reason, Class        string
		Store, Grant         bool
		CredentialsNamespace string
		Err                  error
	}
	cases := map[string]struct {
		reason     string
		kind       string
		use        Use
		namespaced bool
		existing   client.Object
		err        error
		want       want
	}{
		"Store":      {"a store of this class can be used", "FakeStore", Read, false, plain, nil, want{Store: true}},
		"Foreign":    {"a Kind of another module is not served", "VaultKV", Read, false, nil, nil, want{Why: NotServed}},
		"Namespaced": {"an operator limited to some namespaces reads no cluster Kind", "ClusterFakeStore", Read, true, plain, nil, want{Why: ClusterKind}},
		"Absent":     {"a missing store is refused", "FakeStore", Read, false, nil, nil, want{Why: Absent}},
		"Unread":     {"a failed read is an error, not a refusal", "FakeStore", Read, false, nil, errBoom, want{Err: errBoom}},
		"Class": {
			"a store of another class is left to its operator, ready or not", "FakeStore", Read, false,
			store(func(s *fakev1alpha1.FakeStore) { s.Spec.Controller, s.Status.Conditions = "blue", notReady }), nil, want{Why: OtherClass, Class: "blue", Store: true},
		},
		"ReadsGenerator":   {"a generator cannot be read", "FakeGenerator", Read, false, generator, nil, want{Why: WrongKind}},
		"PushesGenerator":  {"a generator cannot be pushed to", "FakeGenerator", Push, false, generator, nil, want{Why: WrongKind}},
		"GeneratesByStore": {"a store cannot generate", "FakeStore", Generate, false, plain, nil, want{Why: WrongKind}},
		"Generates":        {"a generator can generate", "FakeGenerator", Generate, false, generator, nil, want{Store: true}},
		"Revokes":          {"a generated value is revoked whatever the class of its generator, ready or not", "FakeGenerator", Revoke, false, blue, nil, want{Store: true}},
		"RevokesByStore":   {"a store cannot revoke", "FakeStore", Revoke, false, plain, nil, want{Why: WrongKind}},
		"RevokesElsewhere": {
			"a cluster generator that does not admit the namespace cannot revoke", "ClusterFakeGenerator", Revoke, false, elsewhereToo, nil, want{Why: NotAdmitted, Store: true},
		},
		"Cluster": {
			"a cluster store grants keys, and its scope decides where credentials are looked up", "ClusterFakeStore", Read, false,
			cluster(func(s *fakev1alpha1.ClusterFakeStore) {
				s.Spec.AuthenticationScope = v1alpha1.ScopeManifestNamespace
			}), nil, want{Store: true, Grant: true, CredentialsNamespace: "shop"},
		},
		"NotAdmitted": {"a namespace that is not admitted does not learn the state of the store", "ClusterFakeStore", Read, false, elsewhere, nil, want{Why: NotAdmitted, Store: true}},
		"ReadOnly": {
			"a store that is read-only cannot be pushed to", "FakeStore", Push, false,
			store(func(s *fakev1alpha1.FakeStore) { s.Spec.Access = v1alpha1.AccessReadOnly }), nil, want{Why: ReadOnly, Store: true},
		},
		"ReadsReadOnly": {
			"a store that is read-only can be read", "FakeStore", Read, false,
			store(func(s *fakev1alpha1.FakeStore) { s.Spec.Access = v1alpha1.AccessReadOnly }), nil, want{Store: true},
		},
		"NotReady": {
			"the gate holds a store that is not ready", "FakeStore", Read, false,
			store(func(s *fakev1alpha1.FakeStore) { s.Status.Conditions = notReady }), nil, want{Why: NotReady, Reason: v1alpha1.ReasonStoreInvalidSpec, Store: true},
		},
		"Ungated": {
			"a disabled gate does not hold", "FakeStore", Read, false,
			store(func(s *fakev1alpha1.FakeStore) {
				s.Spec.GatingPolicy, s.Status.Conditions = v1alpha1.GatingDisabled, notReady
			}), nil, want{Store: true},
		},
	}
	scheme, server := runtime.NewScheme(), fake.NewServer()
	if err := fakev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reader := &test.MockClient{MockGet: func(_ context.Context, _ client.ObjectKey, o client.Object) error {
				switch {
				case tc.err != nil:
					return tc.err
				case tc.existing == nil:
					return kerrors.NewNotFound(schema.GroupResource{}, "s")
				}
				switch o := o.(type) {
				case *fakev1alpha1.FakeStore:
					tc.existing.(*fakev1alpha1.FakeStore).DeepCopyInto(o)
				case *fakev1alpha1.ClusterFakeStore:
					tc.existing.(*fakev1alpha1.ClusterFakeStore).DeepCopyInto(o)
				case *fakev1alpha1.FakeGenerator:
					tc.existing.(*fakev1alpha1.FakeGenerator).DeepCopyInto(o)
				case *fakev1alpha1.ClusterFakeGenerator:
					tc.existing.(*fakev1alpha1.ClusterFakeGenerator).DeepCopyInto(o)
				}
				return nil
			}}
			r, err := NewResolver(reader, scheme, slices.Concat(server.Kinds(), server.GeneratorKinds()), "", tc.namespaced)
			if err != nil {
				t.Fatal(err)
			}
			h, refusal, err := r.Resolve(t.Context(), v1alpha1.StoreRef{Kind: tc.kind, Name: "s"}, "shop", tc.use)
			got := want{Store: h.Store != nil, Grant: h.Grant != nil, CredentialsNamespace: h.CredentialsNamespace, Err: err}
			if refusal != nil {
				got.Why, got.Reason, got.Class = refusal.Why, refusal.Reason, refusal.Class
				if refusal.Message == "" {
					t.Errorf("\n%s\nthe refusal has no message", tc.reason)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nResolve(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
