package pushsecret

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// somewhere is a client with a configurable identity.
type somewhere struct {
	provider.Client

	is    provider.Identity
	err   error
	calls int
}

func (s *somewhere) Identity(context.Context) (provider.Identity, error) {
	s.calls++
	return s.is, s.err
}

func storeOf(ns, name, backend string) *fakev1.FakeStore {
	s := &fakev1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(ns + "/" + name), Generation: 1}}
	s.Spec.Backend = backend
	return s
}

// TestPlaces checks what is cached of the identities of stores.
func TestPlaces(t *testing.T) {
	here := provider.Identity{Place: "here"}
	learned := func(p *places, s *fakev1.FakeStore, c *somewhere) provider.Identity {
		t.Helper()
		is := p.learn(t.Context(), s, "n", c)
		if diff := cmp.Diff(is, p.of(s, "n")); diff != "" {
			t.Errorf("the cached identity differs from the learned one: -want, +got:\n%s", diff)
		}
		return is
	}
	p, s := &places{}, storeOf("n", "a", "b")
	if diff := cmp.Diff(provider.Identity{}, p.of(s, "n")); diff != "" {
		t.Errorf("Unknown before the first answer: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(here, learned(p, s, &somewhere{is: here})); diff != "" {
		t.Errorf("A client reports its identity: -want, +got:\n%s", diff)
	}
	next := s.DeepCopy()
	next.Generation++
	if diff := cmp.Diff(provider.Identity{}, p.of(next, "n")); diff != "" {
		t.Errorf("A changed store may have another identity: -want, +got:\n%s", diff)
	}
	mute := &somewhere{err: errors.New("boom")}
	if diff := cmp.Diff(provider.Identity{}, learned(p, s, mute)); diff != "" {
		t.Errorf("A new client that reports no identity clears the old one: -want, +got:\n%s", diff)
	}
	learned(p, s, mute)
	if mute.calls != 1 {
		t.Errorf("A client without identity is asked %d times in a row", mute.calls)
	}
	if diff := cmp.Diff(here, learned(p, next, &somewhere{is: here})); diff != "" {
		t.Errorf("A client is asked at once if the store has changed: -want, +got:\n%s", diff)
	}
	other := fake.New()
	c, err := other.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if is := p.learn(t.Context(), storeOf("n", "other", "c"), "n", c); is == here || is.Place == "" {
		t.Errorf("Another backend is %+v", is)
	}
}

// stored are the stores that a resolver reads.
type stored []*fakev1.FakeStore

func (s stored) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, one := range s {
		if client.ObjectKeyFromObject(one) == key {
			one.DeepCopyInto(into.(*fakev1.FakeStore))
			return nil
		}
	}
	return kerrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (stored) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// TestUsesAcrossNamespaces checks which uses by an object in another namespace keep a secret from being removed.
func TestUsesAcrossNamespaces(t *testing.T) {
	own, auth := storeOf("own", "store", "b"), &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "c", Key: "k"}}
	here, elsewhere := provider.Identity{Place: "here"}, provider.Identity{Place: "elsewhere"}
	const key = "db"
	entry := func(id string) *v1alpha1.PushEntryStatus { return &v1alpha1.PushEntryStatus{RemoteKey: key, ID: id} }
	cases := map[string]struct {
		reason string
		store  func(s *fakev1.FakeStore)
		// place is the identity that the client of the other store reports.
		place  provider.Identity
		use    use
		object func(ps *v1alpha1.PushSecret)
		want   []bool
	}{
		"Alike":      {"Stores with equal specs have the same backend.", nil, provider.Identity{}, use{specOnly: true}, nil, []bool{true, true}},
		"Elsewhere":  {"Stores with other specs have other backends.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, provider.Identity{}, use{specOnly: true}, nil, []bool{false, false}},
		"Identity":   {"Stores with other specs count if their clients report the same identity.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, here, use{specOnly: true}, nil, []bool{true, true}},
		"Other":      {"Stores with other specs and identities do not count.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, elsewhere, use{specOnly: true}, nil, []bool{false, false}},
		"SpecWins":   {"Equal specs count, whatever identity is reported: a secret in use must not be deleted.", nil, elsewhere, use{specOnly: true}, nil, []bool{true, true}},
		"Suspended":  {"With other credentials, the spec of a suspended object does not count.", func(s *fakev1.FakeStore) { s.Spec.Backend, s.Spec.Auth = "c", auth }, here, use{specOnly: true}, func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true }, []bool{false, true}},
		"ReadOnly":   {"The spec does not count if the store denies the push.", func(s *fakev1.FakeStore) { s.Spec.Backend, s.Spec.Access = "c", v1alpha1.AccessReadOnly }, here, use{specOnly: true}, nil, []bool{false, true}},
		"Seen":       {"The ID in the status identifies the secret.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, provider.Identity{}, use{entry: entry("id")}, nil, []bool{true, false}},
		"SeenAlias":  {"A store with equal spec and a recorded ID has the same place.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, provider.Identity{}, use{entry: entry("id")}, nil, []bool{true, true}},
		"SeenGone":   {"A recorded ID counts also if its store is deleted.", func(s *fakev1.FakeStore) { s.Name = "gone" }, provider.Identity{}, use{entry: entry("id")}, nil, []bool{true, false}},
		"Login":      {"Equal specs with other credentials may have another place, but count.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, provider.Identity{}, use{specOnly: true}, nil, []bool{true, false}},
		"SeenOther":  {"A secret with another ID and other credentials is a different one.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, provider.Identity{}, use{entry: entry("other")}, nil, []bool{false, false}},
		"SeenBefore": {"At the same place, another ID is a former secret of the same key.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, here, use{entry: entry("other")}, nil, []bool{true, true}},
		"Class":      {"A store of another class counts by its spec.", func(s *fakev1.FakeStore) { s.Spec.Controller = "other" }, provider.Identity{}, use{specOnly: true}, nil, []bool{true, true}},
		"GoneStore":  {"A deleted store does not count.", func(s *fakev1.FakeStore) { s.Name = "gone" }, here, use{specOnly: true}, nil, []bool{false, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			theirs := storeOf("theirs", "store", "b")
			if tc.store != nil {
				tc.store(theirs)
			}
			identities := &places{}
			identities.learn(t.Context(), own, "own", &somewhere{is: here})
			if tc.place.Place != "" {
				identities.learn(t.Context(), theirs, "theirs", &somewhere{is: tc.place})
			}
			routes, err := resolve.NewResolver(stored{own, theirs}, simulation.Scheme(), fake.NewServer().Kinds(), "", false)
			if err != nil {
				t.Fatal(err)
			}
			ref := v1alpha1.StoreRef{APIVersion: fakev1.Group + "/v1alpha1", Kind: "FakeStore", Name: "store"}
			k, ok := routes.Serves(&ref)
			if !ok {
				t.Fatal("the Kind is not served")
			}
			ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "db"}}
			if tc.object != nil {
				tc.object(ps)
			}
			u := users{stores: storeReader{routes: routes}, places: identities}
			at := removalSite{backendOf(k, own, "own"), identities.of(own, "own"), k, key, "id"}
			tc.use.store = storeID{ref.APIVersion, ref.Kind, ref.Name}
			is, there, err := u.same(t.Context(), ps, at, tc.use)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, []bool{is, there}); diff != "" {
				t.Errorf("%s\nsame(...), and whether its store certainly has the same place: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
