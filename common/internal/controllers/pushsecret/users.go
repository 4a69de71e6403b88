package pushsecret

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The status entries of PushSecrets show which of them use a remote secret, as this process has written them or as the watch
// has reported them. The controller evaluates no spec of another object for it.

// others finds the other objects that push to the remote secrets of one store. It implements push.Others for one task.
type others struct {
	*reconciler

	self *object
	unit unit
	at   location
	// unknown is why the place of the store is not known now; nil if it is.
	unknown error
	// late is true if removals no longer wait for other objects.
	late bool
	// complete is true once all other objects that may push to the place were compared.
	complete bool
	// successors are the objects that can take the secret over which InUse was last called for, by mark, and holders those with a
	// claim to a value, by their name.
	successors map[string]unit
	holders    map[string]use
}

// use is a remote secret or property that an object pushes through a store.
type use struct {
	unit
	ps    *v1alpha1.PushSecret
	entry v1alpha1.PushEntryStatus
	// sure is true if the store leads to the place, as its client has told this process. recorded is true if the status
	// shows the entry.
	sure, recorded bool
}

// InUse implements push.Others.
func (o *others) InUse(ctx context.Context, r push.Removal) ([]push.Use, error) {
	if o.unknown != nil {
		return nil, o.unknown
	}
	o.complete = o.complete || o.allCompared()
	switch {
	case !o.complete && o.late:
		return []push.Use{{}}, nil // It may be in use.
	case !o.complete:
		return nil, push.ErrWait
	}
	return o.inUse(ctx, r)
}

func (o *others) inUse(ctx context.Context, r push.Removal) (used []push.Use, err error) {
	waits := false
	for _, u := range o.uses(r.Key, r.ID) {
		is := push.Use{Property: u.entry.Property, By: "PushSecret " + u.String()}
		takes := takesOver(u.ps) && (r.Mine || slices.Contains(r.Paths, r.Path(is.Property)))
		switch {
		case u.sure && u.ps.UID == o.self.uid:
			if mayOwn(u.entry) {
				is.Successor = string(u.ps.UID)
			}
		case !o.proven(u, takes, r):
			if !o.late {
				waits = true
				o.ask(u.unit, u.ps.UID)
			}
		case takes:
			if err := o.exists(ctx, u.ps); err != nil {
				return nil, err
			}
			is.Successor = string(u.ps.UID)
			o.successors[is.Successor] = u.unit
		}
		used = append(used, is)
	}
	if waits {
		return nil, push.ErrWait
	}
	return used, nil
}

// proven reports whether a use is certain, and the status of an object that takes something over shows that. For a whole
// secret, the object must have seen who owns it: otherwise it could not tell a hand-over from a mark that another writer has
// copied. A property must count as created.
func (o *others) proven(u use, takes bool, r push.Removal) bool {
	switch {
	case !u.sure || !u.recorded:
		return false
	case !takes:
		return true
	case u.entry.Property == "":
		return u.entry.Owner == string(o.self.uid) && u.entry.ID == r.ID
	case slices.Contains(r.Paths, r.Path(u.entry.Property)) && !u.entry.Created && u.entry.ID == r.ID:
		if other := o.memory.Peek(u.NamespacedName); other != nil && other.uid == u.ps.UID && !o.late {
			other.own(u.ps, u.store, u.entry)
		}
		return false
	}
	return u.entry.ID == r.ID
}

// HandedOver implements push.Others. The object compares the secret at once, marks it with its own login, and then owns it.
func (o *others) HandedOver(mark string) { o.ask(o.successors[mark], types.UID(mark)) }

// ask lets an object compare its secrets at a store.
func (o *others) ask(u unit, uid types.UID) {
	if obj := o.memory.Peek(u.NamespacedName); obj != nil && obj.uid == uid {
		obj.stores.with(u.store, func(s *storeState) { s.asked = true })
		o.start(u, queue.High)
	}
}

// takesOver reports whether an object takes over what another object owned, and deletes it later.
func takesOver(ps *v1alpha1.PushSecret) bool {
	return ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete && ps.Spec.AdoptionPolicy != v1alpha1.AdoptionRefuse && !ps.Spec.Suspend && !ps.Spec.DryRun
}

// exists returns an error of class Conflict if an object does not exist any longer, or is being deleted. It reads live.
func (o *others) exists(ctx context.Context, ps *v1alpha1.PushSecret) error {
	is := &v1alpha1.PushSecret{}
	err := o.client.Get(ctx, client.ObjectKeyFromObject(ps), is)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the PushSecret that takes the remote secret over")
	}
	if err != nil || is.UID != ps.UID || is.DeletionTimestamp != nil || !takesOver(is) {
		return provider.NewError(provider.Conflict, "the PushSecret that would take it over was deleted or changed")
	}
	return nil
}

// uses returns the uses of a remote secret, but for those of the task's own object and store.
func (o *others) uses(key, secretID string) (out []use) {
	at, _ := o.at.name(key)
	for other, keys := range o.peers.places.Of(o.at.place, at, secretID) {
		ps := other.seen.Load()
		if ps == nil || ps.DeletionTimestamp != nil {
			continue
		}
		other.eachEntry(ps, func(key string) bool { return keys[key] }, func(id storeID, was string, e v1alpha1.PushEntryStatus, recorded bool) {
			u := use{unit: unit{client.ObjectKeyFromObject(ps), id}, ps: ps, entry: e, recorded: recorded}
			if o.mayUse(other, &u, was, at, secretID) {
				out = append(out, u)
			}
		})
	}
	return out
}

// mayUse reports whether an entry of an object is or may be for a remote secret, and sets whether its place is sure. was is the
// place in the status.
func (o *others) mayUse(other *object, u *use, was string, at provider.Name, secretID string) bool {
	if other == o.self && u.store == o.unit.store || !o.ours(v1alpha1.PushStoreStatus{APIVersion: u.store.apiVersion, Kind: u.store.kind, Name: u.store.name}) {
		return false // It is the task's own, or another module pushes there.
	}
	is, sure := other.stores.location(u.store)
	if u.sure = sure; !u.maybeAt(o.at.place, is.place, was) {
		return false
	}
	name, named := is.name(u.entry.RemoteKey)
	u.sure = sure && named
	same := name.Is(at)
	switch {
	case !sure:
		same = strings.HasSuffix(at.Key, u.entry.RemoteKey) // Its prefix is unknown.
	case !named:
		same = true // It can be the same secret.
	}
	return same || u.entry.ID != "" && u.entry.ID == secretID
}

// maybeAt reports whether the store of a use leads to a place, or may do so. is is where its client says that it leads, and
// was what the status records; empty if unknown.
func (u use) maybeAt(place, is, was string) bool {
	if u.sure {
		return is == place
	}
	return was == "" || was == place
}

const (
	// othersFor is how long removals wait for objects of other namespaces, and for objects whose store has not told where it
	// leads.
	othersFor = 8 * time.Second
	// recently is how old a change of an object can be for which removals wait: changes of one commit come together.
	recently = time.Minute
)

// allCompared reports whether all objects that may push to the place have been compared once with what their specs were
// when the removal began to wait.
func (o *others) allCompared() bool {
	began := o.opts.Now()
	var generations map[types.UID]int64
	o.self.stores.with(o.unit.store, func(s *storeState) {
		if generations = s.wait.generations; !s.wait.since.IsZero() {
			began = s.wait.since
		}
	})
	open := map[types.UID]int64{}
	for _, other := range o.peers.changedAfter(began.Add(-recently), o.opts.Now()) {
		ps := other.seen.Load()
		if ps == nil || ps.DeletionTimestamp != nil {
			continue
		}
		wanted := ps.Generation
		if generations != nil {
			wanted = generations[ps.UID]
		}
		if since := other.since.Load(); since != nil && began.Sub(*since) < recently && o.compared(other, ps, o.opts.Now().Sub(began)) < wanted {
			open[ps.UID] = wanted
		}
	}
	o.self.stores.with(o.unit.store, func(s *storeState) { s.wait.generations = open })
	return len(open) == 0
}

// compared returns the generation of an object that was compared with all stores that may lead to the place. waited is how long
// the removal has waited.
func (o *others) compared(other *object, ps *v1alpha1.PushSecret, waited time.Duration) int64 {
	foreign := ps.Namespace != o.unit.Namespace
	if foreign && waited >= othersFor {
		return ps.Generation
	}
	generation := other.walked.Load()
	if other == o.self {
		generation = ps.Generation // The walk over it has begun.
	}
	recorded := map[storeID]string{}
	for _, s := range other.written.Later(ps).Status.Stores {
		recorded[idOf(s)] = s.Place
	}
	other.stores.unfinished(func(id storeID, at location, done int64) {
		place := cmp.Or(at.place, recorded[id])
		switch {
		case other == o.self && id == o.unit.store:
		case place != "" && place != o.at.place:
		case place == "" && waited >= othersFor:
		case foreign && o.crowded(unit{client.ObjectKeyFromObject(ps), id}):
		default:
			generation = min(generation, done)
		}
	})
	return generation
}
