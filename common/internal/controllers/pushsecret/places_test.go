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

// somewhere is a client that may say where its secrets live.
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

// TestPlaces has clients tell where stores lead.
func TestPlaces(t *testing.T) {
	here := provider.Identity{Place: "here"}
	learned := func(p *places, s *fakev1.FakeStore, c *somewhere) provider.Identity {
		t.Helper()
		is := p.learn(t.Context(), s, "n", c)
		if diff := cmp.Diff(is, p.of(s, "n")); diff != "" {
			t.Errorf("what was learned is not what is known: -want, +got:\n%s", diff)
		}
		return is
	}
	p, s := &places{}, storeOf("n", "a", "b")
	if diff := cmp.Diff(provider.Identity{}, p.of(s, "n")); diff != "" {
		t.Errorf("Nobody has told yet: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(here, learned(p, s, &somewhere{is: here})); diff != "" {
		t.Errorf("A client tells: -want, +got:\n%s", diff)
	}
	next := s.DeepCopy()
	next.Generation++
	if diff := cmp.Diff(provider.Identity{}, p.of(next, "n")); diff != "" {
		t.Errorf("A store that has changed may lead elsewhere: -want, +got:\n%s", diff)
	}
	mute := &somewhere{err: errors.New("boom")}
	if diff := cmp.Diff(provider.Identity{}, learned(p, s, mute)); diff != "" {
		t.Errorf("A new client that cannot tell may lead elsewhere, too: -want, +got:\n%s", diff)
	}
	learned(p, s, mute)
	if mute.calls != 1 {
		t.Errorf("One that cannot tell is asked %d times in a row", mute.calls)
	}
	if diff := cmp.Diff(here, learned(p, next, &somewhere{is: here})); diff != "" {
		t.Errorf("It is asked at once where the store has changed: -want, +got:\n%s", diff)
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

// TestUsesAcrossNamespaces says whether what an object in another namespace uses is the secret that is about to be removed.
func TestUsesAcrossNamespaces(t *testing.T) {
	own, auth := storeOf("own", "store", "b"), &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "c", Key: "k"}}
	here, elsewhere := provider.Identity{Place: "here"}, provider.Identity{Place: "elsewhere"}
	const key = "db"
	entry := func(id string) *v1alpha1.PushEntryStatus { return &v1alpha1.PushEntryStatus{RemoteKey: key, ID: id} }
	cases := map[string]struct {
		reason string
		store  func(s *fakev1.FakeStore)
		// place is where the client of the other store says that it leads.
		place  provider.Identity
		use    use
		object func(ps *v1alpha1.PushSecret)
		want   []bool
	}{
		"Alike":      {"Stores with one spec lead to one place.", nil, provider.Identity{}, use{wish: true}, nil, []bool{true, true}},
		"Elsewhere":  {"Others lead elsewhere, as far as specs tell.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, provider.Identity{}, use{wish: true}, nil, []bool{false, false}},
		"Identity":   {"Unless their clients say that they lead to one place.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, here, use{wish: true}, nil, []bool{true, true}},
		"Other":      {"That they lead to two is no news.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, elsewhere, use{wish: true}, nil, []bool{false, false}},
		"SpecWins":   {"Specs that are alike count, whatever is said: a secret that is in use must not go.", nil, elsewhere, use{wish: true}, nil, []bool{true, true}},
		"Suspended":  {"Nobody holds a secret by a wish alone, with other credentials.", func(s *fakev1.FakeStore) { s.Spec.Backend, s.Spec.Auth = "c", auth }, here, use{wish: true}, func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true }, []bool{false, true}},
		"ReadOnly":   {"Nor by one that is not granted.", func(s *fakev1.FakeStore) { s.Spec.Backend, s.Spec.Access = "c", v1alpha1.AccessReadOnly }, here, use{wish: true}, nil, []bool{false, true}},
		"Seen":       {"The very secret is known by its ID.", func(s *fakev1.FakeStore) { s.Spec.Backend = "c" }, provider.Identity{}, use{entry: entry("id")}, nil, []bool{true, false}},
		"SeenAlias":  {"A store with the same spec leads where it was seen.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, provider.Identity{}, use{entry: entry("id")}, nil, []bool{true, true}},
		"SeenGone":   {"What was seen counts also if its store is gone.", func(s *fakev1.FakeStore) { s.Name = "gone" }, provider.Identity{}, use{entry: entry("id")}, nil, []bool{true, false}},
		"Login":      {"The same spec with other credentials may lead elsewhere.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, provider.Identity{}, use{wish: true}, nil, []bool{true, false}},
		"SeenOther":  {"One with another ID and other credentials is another.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, provider.Identity{}, use{entry: entry("other")}, nil, []bool{false, false}},
		"SeenBefore": {"In one place it was the one before.", func(s *fakev1.FakeStore) { s.Spec.Auth = auth }, here, use{entry: entry("other")}, nil, []bool{true, true}},
		"Class":      {"A store of another class counts by its spec.", func(s *fakev1.FakeStore) { s.Spec.Controller = "other" }, provider.Identity{}, use{wish: true}, nil, []bool{true, true}},
		"GoneStore":  {"Nothing is pushed to a store that is gone.", func(s *fakev1.FakeStore) { s.Name = "gone" }, here, use{wish: true}, nil, []bool{false, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			theirs := storeOf("theirs", "store", "b")
			if tc.store != nil {
				tc.store(theirs)
			}
			leads := &places{}
			leads.learn(t.Context(), own, "own", &somewhere{is: here})
			if tc.place.Place != "" {
				leads.learn(t.Context(), theirs, "theirs", &somewhere{is: tc.place})
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
			u := users{stores: storeReader{routes: routes}, places: leads}
			at := removalSite{backendOf(k, own, "own"), leads.of(own, "own"), k, key, "id"}
			tc.use.store = storeID{ref.APIVersion, ref.Kind, ref.Name}
			is, there, err := u.same(t.Context(), ps, at, tc.use)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, []bool{is, there}); diff != "" {
				t.Errorf("%s\nsame(...), and whether its store surely leads there: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
