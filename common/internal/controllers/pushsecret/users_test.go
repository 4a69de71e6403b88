package pushsecret

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// peer is another object in a test of removals. The zero value has an entry that is recorded and located.
type peer struct {
	namespace string
	spec      v1alpha1.PushSecretSpec
	entry     v1alpha1.PushEntryStatus
	// place is what the status records, and located what the client of the store has told; empty for nothing.
	place, located string
	// unwritten is true if the entry is not in the status yet.
	unwritten, deleted bool
	// generation is that of the spec, and done the one that was compared, with an error of a class. idle is true if a walk has found
	// nothing to push.
	generation, done int64
	class            provider.Class
	idle             bool
}

// lookup returns what a removal by the object "me" sees of another object, at the place "p" with the prefix "x/".
func lookup(t *testing.T, other *peer) (*others, *object) {
	t.Helper()
	c := simulation.NewClient(simulation.NewProjectServer(), simulation.AtOnce)
	routes, err := resolve.NewResolver(c, simulation.Scheme(), fake.NewServer().Kinds(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	mem := newMemory()
	r := &reconciler{
		claim: claim{routes: routes}, client: c, memory: mem, peers: mem, opts: setup.Options{Now: func() time.Time { return noon }},
		start: func(unit, int) {},
	}
	store := storeID{fakev1.GroupVersion.String(), "FakeStore", "store"}
	add := func(namespace, name string, p *peer) *object {
		ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: p.generation}, Spec: p.spec}
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "store"}}
		if err := c.Create(t.Context(), ps); err != nil {
			t.Fatal(err)
		}
		ps.Generation = p.generation
		if p.deleted {
			ps.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		o, _ := mem.Get(types.NamespacedName{Namespace: namespace, Name: name}, ps.UID)
		if p.entry.RemoteKey != "" || p.done > 0 {
			if p.entry.Owner == "me" {
				p.entry.Owner = string(r.memory.Peek(types.NamespacedName{Namespace: "n", Name: "me"}).uid)
			}
			s := v1alpha1.PushStoreStatus{APIVersion: store.apiVersion, Kind: store.kind, Name: store.name, Place: p.place, Entries: []v1alpha1.PushEntryStatus{p.entry}}
			concludeStore(&s, status.Verdict{Status: metav1.ConditionFalse, Reason: "r", Class: p.class}, p.done)
			if ps.Status.Stores = []v1alpha1.PushStoreStatus{s}; p.unwritten {
				ps.Status.Stores[0].Entries = nil
				o.record(ps, store, p.entry.RemoteKey, s.Entries)
			}
		}
		o.show(ps)
		if p.idle {
			o.survey.Store(&survey{generation: p.generation})
		}
		if p.located != "" {
			o.stores.move(store, func(location) location {
				return location{place: p.located, Identity: provider.Identity{Place: p.located, Prefix: "x/"}}
			})
		}
		return o
	}
	self := add("n", "me", &peer{})
	o := &others{
		reconciler: r, self: self, unit: unit{types.NamespacedName{Namespace: "n", Name: "me"}, store},
		at: location{place: "p", Identity: provider.Identity{Place: "p", Prefix: "x/"}}, successors: map[string]unit{},
	}
	return o, add(other.namespace, "other", other)
}

// TestInUse checks who uses a remote secret of an object, and who takes it over.
func TestInUse(t *testing.T) {
	deletes := v1alpha1.PushSecretSpec{DeletionPolicy: v1alpha1.PushDeletionDelete}
	with := func(change func(*v1alpha1.PushSecretSpec)) v1alpha1.PushSecretSpec {
		s := *deletes.DeepCopy()
		change(&s)
		return s
	}
	entry := v1alpha1.PushEntryStatus{RemoteKey: "db", ID: "id", Owner: "me"}
	notMine := v1alpha1.PushEntryStatus{RemoteKey: "db", ID: "id"}
	const unused, used, taken, waits = "unused", "used", "taken over", "waits"
	cases := map[string]struct {
		reason string
		peer
		late, theirs bool
		want         string
	}{
		"Heir":       {reason: "It has seen the secret of this object, and deletes it later.", peer: peer{spec: deletes, entry: entry, place: "p", located: "p"}, want: taken},
		"Keeps":      {reason: "An object that never deletes anything takes nothing over.", peer: peer{entry: entry, place: "p", located: "p"}, want: used},
		"Refuse":     {reason: "Refuse keeps an object from taking over.", peer: peer{spec: with(func(s *v1alpha1.PushSecretSpec) { s.AdoptionPolicy = v1alpha1.AdoptionRefuse }), entry: entry, place: "p", located: "p"}, want: used},
		"Suspended":  {reason: "A suspended object uses what it pushed before.", peer: peer{spec: with(func(s *v1alpha1.PushSecretSpec) { s.Suspend = true }), entry: entry, place: "p", located: "p"}, want: used},
		"NotSeen":    {reason: "It must first see that the secret is of this object.", peer: peer{spec: deletes, entry: notMine, place: "p", located: "p"}, want: waits},
		"NotSeenYet": {reason: "After a minute it takes nothing over.", peer: peer{spec: deletes, entry: notMine, place: "p", located: "p"}, late: true, want: used},
		"Theirs":     {reason: "A secret of another object is not handed over.", peer: peer{spec: deletes, entry: notMine, place: "p", located: "p"}, theirs: true, want: used},
		"Spelled":    {reason: "A key can be spelled in several ways.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "arn:db", ID: "id"}, place: "p", located: "p"}, want: used},
		"NoID":       {reason: "The same key at the same place is the same secret.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "db"}, place: "p", located: "p"}, want: used},
		"Key":        {reason: "Another key is another secret.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "db2", ID: "other"}, place: "p", located: "p"}, want: unused},
		"Elsewhere":  {reason: "A tenant's own server can report any ID.", peer: peer{spec: deletes, entry: entry, place: "q", located: "q"}, want: unused},
		"Forged":     {reason: "An entry does not count if the store leads elsewhere.", peer: peer{spec: deletes, entry: entry, place: "p", located: "q"}, want: unused},
		"Unlocated":  {reason: "After a restart, the store must first tell where it leads.", peer: peer{entry: entry, place: "p"}, want: waits},
		"NoPlace":    {reason: "So must a store for which a former version recorded no place.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "db", Version: "1", ID: "id"}}, want: waits},
		"Listed":     {reason: "A store that has never answered was not compared: else any tenant could keep the secrets of others from deletion.", peer: peer{entry: v1alpha1.PushEntryStatus{RemoteKey: "b"}}, want: unused},
		"NotAtAll":   {reason: "A store that was elsewhere needs not.", peer: peer{entry: entry, place: "q"}, want: unused},
		"Unwritten":  {reason: "An entry that is not in the status yet could be forgotten.", peer: peer{entry: entry, place: "p", located: "p", unwritten: true}, want: waits},
		"Deleted":    {reason: "An object that is being deleted uses nothing.", peer: peer{spec: deletes, entry: entry, place: "p", located: "p", deleted: true}, want: unused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.namespace = "n"
			o, other := lookup(t, &tc.peer)
			if tc.late {
				o.waited = push.Near
			}
			removal := push.Removal{Key: "db", ID: "id", Mine: !tc.theirs, Path: func(property string) string { return property }}
			if removal.Mine {
				removal.Paths = []string{""}
			}
			uses, _, err := o.InUse(t.Context(), removal)
			got := unused
			switch {
			case len(uses) == 1 && uses[0].Unproven && !tc.late:
				got = waits
			case err != nil:
				t.Fatal(err)
			case len(uses) == 1 && uses[0].Successor == string(other.uid):
				got = taken
			case len(uses) == 1:
				got = used
			}
			asked := false
			other.stores.with(o.unit.store, func(s *storeState) { asked = s.asked })
			if diff := cmp.Diff([]any{tc.want, tc.want == waits}, []any{got, asked}); diff != "" {
				t.Errorf("\n%s\nthe secret, and whether the other object was asked: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBehind checks of which other objects a removal does not know yet what they use.
func TestBehind(t *testing.T) {
	cases := map[string]struct {
		reason string
		peer
		want bool
	}{
		"Compared":  {"Its present spec was compared.", peer{generation: 2, done: 2, place: "p"}, false},
		"New":       {"It was not compared yet.", peer{generation: 1}, true},
		"Changed":   {"Its spec has changed.", peer{generation: 2, done: 1, place: "p"}, true},
		"Idle":      {"Its spec is invalid, or selects no store.", peer{generation: 2, done: 1, place: "p", idle: true}, false},
		"Deleted":   {"An object that is being deleted pushes nothing.", peer{generation: 1, deleted: true}, false},
		"Suspended": {"Neither does a suspended one.", peer{generation: 1, spec: v1alpha1.PushSecretSpec{Suspend: true}}, false},
		"Elsewhere": {"Its store leads elsewhere.", peer{generation: 2, done: 1, place: "p", located: "q"}, false},
		"Recorded":  {"The status records that its store leads elsewhere.", peer{generation: 2, done: 1, place: "q"}, false},
		"NoPlace":   {"Its store might lead to the same place.", peer{generation: 2, done: 1}, true},
		"Denied":    {"A store that refuses the login was asked.", peer{generation: 2, done: 2, place: "p", class: provider.Denied}, false},
		"Down":      {"A store that does not answer was not.", peer{generation: 2, done: 2, place: "p", class: provider.Unavailable}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, namespace := range []string{"n", "other"} {
				tc.namespace = namespace
				o, _ := lookup(t, &tc.peer)
				near := namespace == "n"
				if diff := cmp.Diff(push.Behind{Near: tc.want && near, Far: tc.want && !near}, o.behind()); diff != "" {
					t.Errorf("\n%s\nin namespace %s: -want, +got:\n%s", tc.reason, namespace, diff)
				}
			}
		})
	}
}
