package provider_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

type fakeStores = provider.Connector[*v1alpha1.FakeStore]

func TestKind(t *testing.T) {
	cases := map[string]struct {
		reason  string
		kind    provider.Kind
		name    string
		cluster bool
		want    provider.Object
	}{
		"Namespaced": {
			reason: "KindOf is for namespaced Kinds.",
			kind:   provider.KindOf(fakeStores(nil)),
			name:   "FakeStore",
			want:   &v1alpha1.FakeStore{},
		},
		"Cluster": {
			reason:  "ClusterKindOf is for cluster-scoped Kinds.",
			kind:    provider.ClusterKindOf(provider.Connector[*v1alpha1.ClusterFakeStore](nil)),
			name:    "ClusterFakeStore",
			cluster: true,
			want:    &v1alpha1.ClusterFakeStore{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first, second := tc.kind.New(), tc.kind.New()
			if diff := cmp.Diff(tc.want, first); diff != "" {
				t.Errorf("%s\nNew(): -want, +got:\n%s", tc.reason, diff)
			}
			if first == second {
				t.Errorf("%s\nNew() returns the same object twice", tc.reason)
			}
			if diff := cmp.Diff(tc.name, tc.kind.GoName()); diff != "" {
				t.Errorf("%s\nGoName(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.cluster, tc.kind.Cluster); diff != "" {
				t.Errorf("%s\nCluster: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKindConnect(t *testing.T) {
	named := func(name string) *v1alpha1.FakeStore {
		s := &v1alpha1.FakeStore{}
		s.SetName(name)
		return s
	}
	var connected string
	cases := map[string]struct {
		reason  string
		connect fakeStores
		object  provider.Object
		want    string
		err     error
	}{
		"Connected": {
			reason: "The provider's code gets the object with its own type.",
			connect: func(_ context.Context, s *v1alpha1.FakeStore, _ provider.Credentials) (provider.Client, error) {
				connected = s.GetName()
				return getter(echo), nil
			},
			object: named("prod"),
			want:   "prod",
		},
		"Fails": {
			reason: "The provider's error is returned unchanged.",
			connect: func(context.Context, *v1alpha1.FakeStore, provider.Credentials) (provider.Client, error) {
				return nil, errBoom
			},
			object: named("prod"),
			err:    errBoom,
		},
		"Panics": {
			reason: "A panic is Unavailable, and its value is not shown.",
			connect: func(context.Context, *v1alpha1.FakeStore, provider.Credentials) (provider.Client, error) {
				panic(secret)
			},
			object: named("prod"),
			err:    failed("connecting"),
		},
		"OtherKind": {
			reason: "An object of another Kind is refused before the provider's code.",
			object: &v1alpha1.ClusterFakeStore{},
			err:    provider.NewError(provider.Invalid, "the store is a *v1alpha1.ClusterFakeStore, want *v1alpha1.FakeStore"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			connected = ""
			c, err := fake.Connect(t.Context(), provider.KindOf(tc.connect), tc.object, nil)
			if diff := cmp.Diff(tc.err, err, equateErrors()); diff != "" {
				t.Errorf("%s\nConnect(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, connected); diff != "" {
				t.Errorf("%s\nConnect(...): -want, +got:\n%s", tc.reason, diff)
			}
			if (c == nil) != (tc.err != nil) {
				t.Errorf("%s\nConnect(...): client %v with error %v", tc.reason, c, err)
			}
		})
	}
}

// TestKindAnswers compares the text for an object that works with what its Check proves.
func TestKindAnswers(t *testing.T) {
	server := fake.NewServer()
	server.Backend("main")
	server.Backend("plain", fake.ReadOnly())
	store := func(backend string) provider.Object {
		return &v1alpha1.FakeStore{Spec: v1alpha1.FakeStoreSpec{Backend: backend}}
	}
	source := &v1alpha1.FakeEventSource{Spec: v1alpha1.FakeEventSourceSpec{Backend: "main"}}
	generator := &v1alpha1.FakeGenerator{Spec: v1alpha1.FakeGeneratorSpec{Backend: "main"}}
	making := provider.GeneratorKindOf(func(context.Context, *v1alpha1.FakeGenerator, provider.Credentials) (provider.Generator, error) {
		return maker(nil), nil
	})
	stores, generators, sources := server.Kinds()[0], server.GeneratorKinds()[0], server.EventSourceKinds()[0]
	cases := map[string]struct {
		reason string
		kind   provider.Kind
		object provider.Object
		want   string
	}{
		"Store":           {"Check proves address and login.", stores, store("main"), "the store answers and accepts the login"},
		"StoreNoCheck":    {"A store without Check is not asked.", stores, store("plain"), "the spec is valid; this Kind has no check of its server"},
		"Generator":       {"Check proves address and login.", generators, generator, "the service answers and accepts the login"},
		"GeneratorNoCall": {"A generator without Check is not asked.", making, generator, "the spec is valid; nothing else is checked until values are generated"},
		"SourceNoCheck":   {"An event source without Check is not asked.", sources, source, "the spec is valid; this Kind has no check of its server"},
		"SourceHeldBack":  {"Without remote changes nothing is received.", sources.WithoutRemoteChanges(), source, "the spec is valid"},
		"OwnText":         {"A Kind can have its own text.", sources.WithAnswers("requests are accepted"), source, "requests are accepted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := fake.Connect(t.Context(), tc.kind, tc.object, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.kind.Answers(l)); diff != "" {
				t.Errorf("%s\nAnswers(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	const each = "the spec is valid; each namespace has its own login, which is checked when it is used"
	if diff := cmp.Diff(each, stores.Answers(nil)); diff != "" {
		t.Errorf("Answers() of a store with a login of each namespace: -want, +got:\n%s", diff)
	}
}
