package pushsecret

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The status entries of PushSecrets show which of them use a remote secret, as this process has written them or as the watch
// has reported them. The controller evaluates no spec of another object for it.

// others finds the other objects that push to the remote secrets of one store. It implements push.Others for one task.
type others struct {
	*reconciler

	// self is the task's own object, and ps what the cache shows of it.
	self *object
	ps   *v1alpha1.PushSecret
	unit unit
	at   location
	// unknown is why the place of the store is not known now; nil if it is.
	unknown error
	// since is when this process first had a task at the store. waited is how long removals have been due for this process, and lag what
	// behind has found.
	since  time.Time
	waited time.Duration
	lag    *push.Behind
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
func (o *others) InUse(ctx context.Context, r push.Removal) (used []push.Use, behind push.Behind, err error) {
	if o.unknown != nil {
		return nil, behind, o.unknown
	}
	for _, u := range o.uses(r.Key, r.ID) {
		is := push.Use{Property: u.entry.Property, By: "PushSecret " + u.String()}
		takes := takesOver(u.ps) && (r.Mine || slices.Contains(r.Paths, r.Path(is.Property)))
		switch {
		case u.sure && u.ps.UID == o.self.uid:
			if mayOwn(u.entry) {
				is.Successor = string(u.ps.UID)
			}
		case !o.proven(u, takes, r):
			is.Unproven = true
			if o.waited < push.Near {
				o.ask(u.unit, u.ps.UID)
			}
		case takes:
			if err := o.exists(ctx, u.ps); err != nil {
				return nil, behind, err
			}
			is.Successor = string(u.ps.UID)
			o.successors[is.Successor] = u.unit
		}
		used = append(used, is)
	}
	return used, o.behind(), nil
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
		if other := o.memory.Peek(u.NamespacedName); other != nil && other.uid == u.ps.UID && o.waited < push.Near {
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
		stores, unsaved := other.present(ps)
		for i := range stores {
			s := &stores[i]
			for _, e := range s.Entries {
				u := use{unit: unit{client.ObjectKeyFromObject(ps), idOf(*s)}, ps: ps, entry: e, recorded: unsaved[idOf(*s)] == nil}
				if keys[e.RemoteKey] && o.mayUse(other, &u, s.Place, at, secretID) {
					out = append(out, u)
				}
			}
		}
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
	if !sure && was == "" && u.entry.Version == "" {
		return false // It is only wanted: its store has never answered.
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

// behind returns which objects may push to the place, and have a spec that was not compared there yet. After a rename or a hand-over
// in one commit these are the others of the commit.
func (o *others) behind() push.Behind {
	if o.lag == nil {
		o.lag = o.lagging()
	}
	return push.Behind{Waited: o.waited, Near: o.lag.Near, Far: o.lag.Far}
}

func (o *others) lagging() *push.Behind {
	b := &push.Behind{}
	for _, other := range o.peers.All() {
		ps := other.seen.Load()
		if ps == nil || other == o.self || ps.DeletionTimestamp != nil || ps.Spec.Suspend || ps.Spec.DryRun || !o.serves(ps) {
			continue
		}
		if near := ps.Namespace == o.unit.Namespace; (near && !b.Near || !near && !b.Far) && o.isBehind(other, ps) {
			b.Near, b.Far = b.Near || near, b.Far || !near
		}
	}
	return b
}

// isBehind reports whether the status does not show that an object was compared with all its stores that may lead to the place.
func (o *others) isBehind(other *object, ps *v1alpha1.PushSecret) bool {
	if found := other.survey.Load(); found != nil && found.generation == ps.Generation && len(found.named)+len(found.elsewhere) == 0 {
		return false // Its spec is invalid, or selects no store.
	}
	stores := other.written.Later(ps).Status.Stores
	missing := func(ref v1alpha1.PushStoreRef) bool {
		k, ours := o.route(ref)
		return ours && !slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool {
			return s.Kind == k.GVK.Kind && (s.Name == ref.Name || ref.Name == "")
		})
	}
	return slices.ContainsFunc(ps.Spec.StoreRefs, missing) || slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool {
		at, located := other.stores.location(idOf(s))
		place := s.Place
		if located {
			place = at.place
		}
		return o.ours(s) && (place == "" || place == o.at.place) && !compared(s, ps.Generation)
	})
}

// compared reports whether a store was compared with a generation of the spec. A store that did not answer was not.
func compared(s v1alpha1.PushStoreStatus, generation int64) bool {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
	return c != nil && c.ObservedGeneration == generation && !status.HasClass(*c, provider.Unavailable) && !status.HasClass(*c, provider.Throttled)
}
