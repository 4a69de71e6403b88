package pushsecret

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// remoteName identifies a remote secret, or a property of it, in a store.
type remoteName struct{ key, property string }

// namesOf returns the remote secrets and properties that jobs push.
func namesOf(jobs []job) (names []remoteName) {
	for _, j := range jobs {
		for _, v := range j.want {
			names = append(names, remoteName{j.target.Key, v.Property})
		}
	}
	return names
}

// users finds the objects that push to a remote secret.
type users struct {
	stores storeReader
	cache  client.Reader
	memory *memory
	// places is shared with the runner.
	places *places
	// wake requeues an object.
	wake func(types.NamespacedName)
}

// removalSite is a remote secret from which an object is about to remove something.
type removalSite struct {
	backend

	// place is the identity of the store; zero if its client could not report it.
	place provider.Identity
	route resolve.Route
	key   string
	// id is the ID of the secret as it was observed.
	id string
}

// others finds the other objects that push to the same store as one object. Pushes of the same object by another store
// count, too. It is used for one task only.
type others struct {
	users

	self  types.UID
	store storeID
	at    removalSite
	// identity returns the identity of the store, as known now.
	identity func() provider.Identity
	// heirs are the objects that can take the secret over which InUse was last called for, by mark.
	heirs map[string]unit
	// late is true if nothing waits for other objects any longer.
	late bool
}

// others returns a lookup for the other objects that push to the same store.
func (u users) others(ps *v1alpha1.PushSecret, d *destination, b backend, late bool) *others {
	s, namespace := d.store, ps.Namespace
	u.stores.listed = map[selected]listing{} // A cache of lists: many secrets may be removed, and many objects select stores by labels.
	return &others{
		users: u, self: ps.UID, store: idOf(d.status), at: removalSite{backend: b, route: d.route},
		identity: func() provider.Identity { return u.places.of(s, namespace) }, heirs: map[string]unit{}, late: late,
	}
}

// InUse implements push.Others. Objects whose status lists the secret come first. An object is no heir if its store may
// have another place, because a tenant's own server can report any ID.
func (o *others) InUse(ctx context.Context, key, id string) (used []push.Use, err error) {
	var list v1alpha1.PushSecretList
	if err := o.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrap(err, "cannot list PushSecrets")
	}
	at := o.at
	at.key, at.id, at.place = key, id, o.identity()
	var specOnly []push.Use
	waits := false
	for i := range list.Items {
		ps := &list.Items[i]
		if ps.DeletionTimestamp != nil {
			continue
		}
		named, err := o.named(ctx, ps, at)
		if err != nil {
			return nil, err
		}
		for _, n := range named {
			if ps.UID == o.self && n.store == o.store {
				continue
			}
			is := push.Use{Property: n.property}
			if n.there && o.takesOver(ps) && !n.specOnly {
				u := unit{client.ObjectKeyFromObject(ps), n.store}
				switch known := ps.UID == o.self || n.entry != nil && n.entry.Owner == string(o.self) && n.entry.ID == id; {
				case known:
					if err := o.exists(ctx, ps); err != nil {
						return nil, err
					}
					is.Successor, o.heirs[string(ps.UID)] = string(ps.UID), u
				case !o.late:
					waits = true
					o.ask(u, ps.UID)
				}
			}
			switch {
			case slices.Contains(used, is), slices.Contains(specOnly, is):
			case n.specOnly:
				specOnly = append(specOnly, is)
			default:
				used = append(used, is)
			}
		}
	}
	if waits {
		return nil, push.ErrWait
	}
	return append(used, specOnly...), nil
}

// takesOver reports whether an object takes over a remote secret that this object owns, and deletes it later. Its status
// must then show that it has seen the secret of this object: otherwise it could not tell a hand-over from a mark that
// another writer has copied.
func (o *others) takesOver(ps *v1alpha1.PushSecret) bool {
	return ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete &&
		(ps.UID == o.self || ps.Spec.AdoptionPolicy != v1alpha1.AdoptionRefuse && !ps.Spec.Suspend && !ps.Spec.DryRun)
}

// exists returns an error of class Conflict if an object does not exist any longer, or is being deleted. It reads live.
func (o *others) exists(ctx context.Context, ps *v1alpha1.PushSecret) error {
	is := &v1alpha1.PushSecret{}
	err := o.stores.client.Get(ctx, client.ObjectKeyFromObject(ps), is)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the PushSecret that takes the remote secret over")
	}
	if err != nil || is.UID != ps.UID || is.DeletionTimestamp != nil {
		return provider.NewError(provider.Conflict, "the PushSecret that would take it over is being deleted, too")
	}
	return nil
}

// HandedOver implements push.Others. The object compares the secret at once, and then counts as its owner.
func (o *others) HandedOver(mark string) { o.ask(o.heirs[mark], types.UID(mark)) }

// ask lets an object compare its secrets at a store.
func (o *others) ask(u unit, uid types.UID) {
	if obj := o.memory.Peek(u.NamespacedName); obj != nil && obj.uid == uid {
		obj.stores.with(u.store, func(s *storeState) { s.asked = true })
	}
	o.wake(u.NamespacedName)
}

// use is a remote secret or property that an object pushes, or may push.
type use struct {
	store         storeID
	key, property string
	// entry is the status entry of the use; nil for none.
	entry *v1alpha1.PushEntryStatus
	// specOnly is true if only the spec names it.
	specOnly bool
	// there is true if the store of the use certainly keeps its secrets at the place of the removal.
	there bool
}

// named returns the properties of a remote secret that an object pushes, or is about to push.
func (u users) named(ctx context.Context, ps *v1alpha1.PushSecret, at removalSite) (out []use, err error) {
	recorded := map[storeID]*v1alpha1.PushEntryStatus{}
	var uses []use
	for i := range ps.Status.Stores {
		s := &ps.Status.Stores[i]
		for j := range s.Entries {
			e := &s.Entries[j]
			if e.RemoteKey == at.key {
				recorded[idOf(*s)] = e
			}
			// Stores may spell one key in several ways.
			if e.RemoteKey == at.key || e.ID != "" && e.ID == at.id {
				uses = append(uses, use{store: idOf(*s), key: e.RemoteKey, property: e.Property, entry: e})
			}
		}
	}
	wanted, err := u.wanted(ctx, ps, at.key)
	if err != nil {
		return nil, err
	}
	for _, w := range wanted {
		w.entry = recorded[w.store]
		uses = append(uses, w)
	}
	for _, w := range uses {
		var is bool
		if is, w.there, err = u.same(ctx, ps, at, w); err != nil {
			return nil, err
		}
		if is {
			out = append(out, w)
		}
	}
	return out, nil
}

// wanted returns the properties of a remote secret that the spec of an object names, and those that this process is
// pushing for it.
func (u users) wanted(ctx context.Context, ps *v1alpha1.PushSecret, key string) (out []use, err error) {
	for _, ref := range ps.Spec.StoreRefs {
		k, ok := u.stores.routes.Serves(&v1alpha1.StoreRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name})
		if !ok || len(push.Names(ps, nil, key)) == 0 {
			continue
		}
		names, err := u.stores.names(ctx, k, ps.Namespace, ref)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			id := storeID{k.GVK.GroupVersion().String(), k.GVK.Kind, name}
			for _, property := range push.Names(ps, &v1alpha1.StoreRef{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}, key) {
				out = append(out, use{store: id, key: key, property: property, specOnly: true})
			}
		}
	}
	if obj := u.memory.Peek(client.ObjectKeyFromObject(ps)); obj != nil && obj.uid == ps.UID {
		for id, names := range obj.stores.names() {
			for _, n := range names {
				if n.key == key {
					out = append(out, use{store: id, key: key, property: n.property})
				}
			}
		}
	}
	return out, nil
}

// same reports whether a use is, or may be, the secret about to be removed (is), and whether its store certainly has
// the same place (there).
func (u users) same(ctx context.Context, ps *v1alpha1.PushSecret, at removalSite, w use) (is, there bool, err error) {
	ref := v1alpha1.StoreRef{APIVersion: w.store.apiVersion, Kind: w.store.kind, Name: w.store.name}
	seen := w.entry != nil && w.entry.ID != ""
	very := seen && w.entry.ID == at.id
	k, s, err := u.storeAt(ctx, at, ref, ps.Namespace)
	if err != nil || s == nil {
		return very && !k.GVK.Empty(), false, err
	}
	b := backendOf(k, s, ps.Namespace)
	placed := u.places.hasIdentity(s, ps.Namespace, at.place)
	there = placed || b == at.backend || very && b.address == at.address
	switch {
	case very, there && seen:
		return true, there, nil
	case !placed && (b.address != at.address || seen):
		return false, false, nil
	case !w.specOnly:
		return true, there, nil
	}
	is, err = u.mayPush(ctx, ps, ref, at.key, b == at.backend)
	return is, there, err
}

// storeAt returns a store that may have the place of a removal; nil if it is deleted. The Route is zero if no store of
// that reference can have it.
func (u users) storeAt(ctx context.Context, at removalSite, ref v1alpha1.StoreRef, namespace string) (resolve.Route, provider.Object, error) {
	k, ok := u.stores.routes.Serves(&ref)
	if !ok || k.GVK.Group != at.route.GVK.Group || k.Cluster && u.stores.namespaced {
		return resolve.Route{}, nil, nil
	}
	s, err := u.stores.routes.Find(ctx, k, ref, namespace)
	return k, s, errors.Wrap(err, "cannot read the store")
}

// mayPush reports whether an object that has not pushed to a key of a store yet is allowed to. A spec without
// permission must not keep a secret from being removed, and neither must a dry run. sameLogin is true if the store uses the credentials that remove
// the secret. Other credentials count only if they seem to work.
func (u users) mayPush(ctx context.Context, ps *v1alpha1.PushSecret, ref v1alpha1.StoreRef, key string, sameLogin bool) (bool, error) {
	h, refusal, err := u.stores.routes.Resolve(ctx, ref, ps.Namespace, resolve.Push)
	switch {
	case err != nil:
		return false, errors.Wrap(err, "cannot read the store")
	case refusal != nil && refusal.Why != resolve.OtherClass && (refusal.Why != resolve.NotReady || !sameLogin):
		return false, nil
	case h.Grant != nil && h.Grant.Writes(key) != nil, ps.Spec.DryRun:
		return false, nil
	}
	return sameLogin || !ps.Spec.Suspend && !failed(ps, ref), nil
}

// failed reports whether an object could not push its current spec to a store.
func failed(ps *v1alpha1.PushSecret, ref v1alpha1.StoreRef) bool {
	id := storeID{ref.APIVersion, ref.Kind, ref.Name}
	return slices.ContainsFunc(ps.Status.Stores, func(s v1alpha1.PushStoreStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
		return idOf(s) == id && c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == ps.Generation
	})
}
