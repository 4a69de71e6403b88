package pushsecret

import (
	"context"
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
	// successors are the objects that can take the secret over which InUse was last called for, by mark.
	successors map[string]unit
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
func (o *others) InUse(ctx context.Context, key, id string, ours bool) (used []push.Use, err error) {
	if o.unknown != nil {
		return nil, o.unknown
	}
	o.complete = o.complete || o.allCompared()
	switch {
	case o.complete:
	case o.late:
		return []push.Use{{}}, nil // It may be in use.
	default:
		return nil, push.ErrWait
	}
	waits := false
	for _, u := range o.uses(key, id) {
		is, takes := push.Use{Property: u.entry.Property}, ours && takesOver(u.ps)
		switch {
		case u.ps.UID == o.self.uid:
			is.Successor = string(u.ps.UID)
		case !u.proven(takes, string(o.self.uid), id):
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

// proven reports whether a use is certain. An object that takes the secret over must have seen that owner owns it, with this
// id.
func (u use) proven(takes bool, owner, id string) bool {
	return u.sure && u.recorded && (!takes || u.entry.Owner == owner && u.entry.ID == id)
}

// HandedOver implements push.Others. The object compares the secret at once, and then counts as its owner.
func (o *others) HandedOver(mark string) { o.ask(o.successors[mark], types.UID(mark)) }

// ask lets an object compare its secrets at a store.
func (o *others) ask(u unit, uid types.UID) {
	if obj := o.memory.Peek(u.NamespacedName); obj != nil && obj.uid == uid {
		obj.stores.with(u.store, func(s *storeState) { s.asked = true })
		o.start(u, queue.High)
	}
}

// takesOver reports whether an object takes over a remote secret that another object owned, and deletes it later. Its status
// must then show that it has seen the secret of that object: otherwise it could not tell a hand-over from a mark that
// another writer has copied.
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
	if err != nil || is.UID != ps.UID || is.DeletionTimestamp != nil {
		return provider.NewError(provider.Conflict, "the PushSecret that would take it over is being deleted, too")
	}
	return nil
}

// uses returns the uses of a remote secret, but for those of the task's own object and store.
func (o *others) uses(key, id string) (out []use) {
	at := o.at.site(key).key
	for _, other := range o.peers.All() {
		ps := other.seen.Load()
		if ps == nil || ps.DeletionTimestamp != nil {
			continue
		}
		other.entries.each(other.written.Latest(ps).Status.Stores, func(s *v1alpha1.PushStoreStatus, recorded bool) {
			u := use{unit: unit{client.ObjectKeyFromObject(ps), idOf(*s)}, ps: ps, recorded: recorded}
			is, sure := other.stores.location(u.store)
			if u.sure = sure; !u.maybeAt(o.at.place, is.place, s.Place) || other == o.self && u.store == o.unit.store {
				return
			}
			for _, u.entry = range s.Entries {
				// Stores may spell one key in several ways.
				named := is.site(u.entry.RemoteKey).key == at || !sure && strings.HasSuffix(at, u.entry.RemoteKey)
				if named || u.entry.ID != "" && u.entry.ID == id {
					out = append(out, u)
				}
			}
		})
	}
	return out
}

// maybeAt reports whether the store of a use leads to a place, or may do so. is is where its client says that it leads, and
// was what the status records; empty if unknown.
func (u use) maybeAt(place, is, was string) bool {
	if u.sure {
		return is == place
	}
	return was == "" || was == place
}

// unlocatedFor is how long removals wait for objects of other namespaces whose own store has not answered yet.
const unlocatedFor = 10 * time.Second

// allCompared reports whether all objects that may push to the place have been compared once with what their specs were
// when the removal began to wait.
func (o *others) allCompared() bool {
	var since time.Time
	var generations map[types.UID]int64
	o.self.stores.with(o.unit.store, func(s *storeState) { since, generations = s.wait.since, s.wait.generations })
	waited := time.Duration(0)
	if !since.IsZero() {
		waited = o.opts.Now().Sub(since)
	}
	open := map[types.UID]int64{}
	for _, other := range o.peers.All() {
		ps := other.seen.Load()
		if ps == nil || ps.DeletionTimestamp != nil {
			continue
		}
		wanted := ps.Generation
		if generations != nil {
			wanted = generations[ps.UID]
		}
		if o.compared(other, ps, waited) < wanted {
			open[ps.UID] = wanted
		}
	}
	o.self.stores.with(o.unit.store, func(s *storeState) { s.wait.generations = open })
	return len(open) == 0
}

// compared returns the generation of an object that was compared with all stores that may lead to the place.
func (o *others) compared(other *object, ps *v1alpha1.PushSecret, waited time.Duration) int64 {
	generation := other.walked.Load()
	if other == o.self {
		generation = ps.Generation // The walk over it has begun.
	}
	foreign := ps.Namespace != o.unit.Namespace
	other.stores.unfinished(func(id storeID, at location, done int64) {
		k, _ := o.routes.Serves(&v1alpha1.StoreRef{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name})
		switch {
		case other == o.self && id == o.unit.store:
		case at.place != "" && at.place != o.at.place:
		case at.place == "" && foreign && !k.Cluster && waited >= unlocatedFor:
		case foreign && o.crowded(unit{client.ObjectKeyFromObject(ps), id}):
		default:
			generation = min(generation, done)
		}
	})
	return generation
}
