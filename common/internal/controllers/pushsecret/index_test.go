package pushsecret

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

func storeNamed(name string) storeID {
	return storeID{fakev1.GroupVersion.String(), "FakeStore", name}
}

// everyUse is uses by examining every entry.
func everyUse(o *others, key, id string) (out []use) {
	at, _ := o.at.name(key)
	for _, other := range o.peers.All() {
		ps := other.seen.Load()
		if ps == nil || ps.DeletionTimestamp != nil {
			continue
		}
		stores, unsaved := other.present(ps)
		for i := range stores {
			for _, e := range stores[i].Entries {
				u := use{unit: unit{types.NamespacedName{Namespace: ps.Namespace, Name: ps.Name}, idOf(stores[i])}, ps: ps, entry: e, recorded: unsaved[idOf(stores[i])] == nil}
				if o.mayUse(other, &u, stores[i].Place, at, id) {
					out = append(out, u)
				}
			}
		}
	}
	return out
}

// TestUsesExamineFewEntries looks for the users of one of 200,000 remote secrets. Only the entries that can be for it may be
// examined.
func TestUsesExamineFewEntries(t *testing.T) {
	const objects, each = 100, 2000
	o, _ := lookup(t, &peer{namespace: "n"})
	for i := range objects {
		ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}}
		s := v1alpha1.PushStoreStatus{APIVersion: o.unit.store.apiVersion, Kind: o.unit.store.kind, Name: o.unit.store.name, Place: "p"}
		for j := range each {
			s.Entries = append(s.Entries, v1alpha1.PushEntryStatus{RemoteKey: fmt.Sprintf("team-%d/db-%d", i, j), ID: fmt.Sprintf("id-%d-%d", i, j)})
		}
		ps.Status.Stores = []v1alpha1.PushStoreStatus{s}
		obj, _ := o.memory.Get(types.NamespacedName{Namespace: "n", Name: ps.Name}, ps.UID)
		obj.show(ps)
		if i%2 == 0 { // The other stores have not reported yet where they lead.
			obj.stores.move(o.unit.store, func(location) location { return o.at })
		}
	}
	for _, tc := range []struct {
		reason, key, id string
		want            int
	}{
		{"The key of a store that leads to the place.", "team-0/db-0", "other", 1},
		{"The key of a store that may lead to the place.", "team-1/db-0", "other", 1},
		{"The ID alone.", "unused", "id-1-1", 1},
		{"The key and the ID of different secrets.", "team-0/db-1", "id-1-1", 2},
		{"Neither.", "unused", "unused", 0},
	} {
		at, _ := o.at.name(tc.key)
		examined := 0
		for obj, keys := range o.peers.places.Of(o.at.place, at, tc.id) {
			for _, e := range obj.seen.Load().Status.Stores[0].Entries {
				if keys[e.RemoteKey] {
					examined++
				}
			}
		}
		all := everyUse(o, tc.key, tc.id)
		if found := len(o.uses(tc.key, tc.id)); examined != tc.want || found != tc.want || len(all) != tc.want {
			t.Errorf("%s examined %d entries and found %d uses, of %d; want %d", tc.reason, examined, found, len(all), tc.want)
		}
	}
}

// randomized changes objects at random.
type randomized struct {
	*rand.Rand
	o    *others
	made int
}

func pick[T any](w *randomized, of ...T) T { return of[w.IntN(len(of))] }

func (w *randomized) key() string   { return pick(w, "", "db", "x/db", "/db", "b", "arn:db", "db2") }
func (w *randomized) id() string    { return pick(w, "", "", "1", "2") }
func (w *randomized) store() string { return pick(w, "store", "store2", "store3") }

func (w *randomized) entries(key string) (all []v1alpha1.PushEntryStatus) {
	for i := range w.IntN(3) {
		all = append(all, v1alpha1.PushEntryStatus{RemoteKey: key, Property: fmt.Sprint(i), ID: w.id()})
	}
	return all
}

func (w *randomized) status() (stores []v1alpha1.PushStoreStatus) {
	for _, name := range []string{"store", "store2", "store3"} {
		id := storeNamed(name)
		s := v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: pick(w, id.kind, id.kind, "OtherStore"), Name: id.name, Place: pick(w, "", "p", "q")}
		for range w.IntN(3) {
			s.Entries = append(s.Entries, w.entries(w.key())...)
		}
		stores = append(stores, s)
	}
	return stores
}

func (w *randomized) location(location) location {
	at := location{place: pick(w, "", "p", "p", "q"), Identity: provider.Identity{Prefix: pick(w, "", "x/")}}
	if at.spelled = w.IntN(2) == 0; at.spelled {
		at.names = map[string]provider.Name{}
		for range w.IntN(5) {
			at.names[w.key()] = provider.Name{Key: pick(w, "db", "x/db", "other"), ID: w.id()}
		}
	}
	return at
}

// step changes one object in one way.
func (w *randomized) step() {
	name := types.NamespacedName{Namespace: "n", Name: pick(w, "me", "a", "b", "c")}
	obj := w.o.memory.Peek(name)
	if obj == nil || w.IntN(20) == 0 {
		w.made++
		obj, _ = w.o.memory.Get(name, types.UID(fmt.Sprint("uid", w.made)))
	}
	if name.Name == "me" {
		w.o.self = obj
	}
	seen := obj.seen.Load()
	ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: obj.uid, ResourceVersion: fmt.Sprint(100 + w.made)}}
	ps.Status.Stores = w.status()
	id := storeNamed(w.store())
	switch w.IntN(9) {
	case 0:
		w.made++
		obj.show(ps)
	case 1, 2:
		if key := w.key(); seen != nil {
			obj.record(seen, id, key, w.entries(key))
		}
	case 3:
		if w.made++; seen != nil {
			obj.written.Wrote(ps)
		}
		_, unsaved := obj.present(ps)
		obj.rows.wrote(unsaved, ps.Status.Stores)
		obj.reindex()
	case 4, 5, 6:
		obj.stores.move(id, w.location)
	case 7:
		pick(w, func() { obj.stores.retain(nil) }, func() { obj.stores.retain([]storeID{id}) })()
	case 8:
		pick(w, func() { obj.show(nil) }, func() { w.o.memory.Forget(name) }, func() {
			ps.DeletionTimestamp = &metav1.Time{Time: noon}
			obj.show(ps)
		})()
	}
}

// TestUsesFindAll changes objects at random, and compares what the index finds with all entries.
func TestUsesFindAll(t *testing.T) {
	found := 0
	for seed := range uint64(40) {
		o, _ := lookup(t, &peer{namespace: "n"})
		w := &randomized{Rand: rand.New(rand.NewPCG(seed, 0)), o: o} //nolint:gosec // The test must be repeatable.
		for step := range 200 {
			w.step()
			o.at = w.location(location{})
			if o.at.place == "" {
				continue
			}
			key, id := w.key(), w.id()
			want := everyUse(o, key, id)
			got := o.uses(key, id)
			found += len(want)
			if diff := gocmp.Diff(described(want), described(got)); diff != "" {
				t.Fatalf("seed %d, step %d: uses of %q and ID %q at %+v: -every entry, +index:\n%s", seed, step, key, id, o.at, diff)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d uses were found", found)
	}
}

// described returns uses in one order, without the objects.
func described(all []use) (out []string) {
	for _, u := range all {
		out = append(out, fmt.Sprintf("%s %s %+v sure=%t recorded=%t", u.String(), u.ps.UID, u.entry, u.sure, u.recorded))
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
