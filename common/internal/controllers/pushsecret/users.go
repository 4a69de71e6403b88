package pushsecret

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// remoteName names a remote secret, or a property of it, in a store.
type remoteName struct{ key, property string }

// namesOf returns the places to which jobs push.
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
}

// removalSite is a remote secret from which an object is about to remove something.
type removalSite struct {
	backend

	route resolve.Route
	key   string
	// id is that of the secret as it was seen.
	id string
}

// others returns a push.Pusher's InUse for what one object pushes to one store. Other stores of the object count as
// those of others do.
func (u users) others(self types.UID, k resolve.Route, store storeID, b backend) func(ctx context.Context, key, id string) ([]string, error) {
	return func(ctx context.Context, key, id string) (used []string, err error) {
		var list v1alpha1.PushSecretList
		if err := u.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, errors.Wrap(err, "cannot list PushSecrets")
		}
		at := removalSite{b, k, key, id}
		for i := range list.Items {
			ps := &list.Items[i]
			if ps.DeletionTimestamp != nil {
				continue
			}
			named, err := u.named(ctx, ps, at)
			if err != nil {
				return nil, err
			}
			for _, n := range named {
				if ps.UID != self || n.store != store {
					used = append(used, n.property)
				}
			}
		}
		return used, nil
	}
}

// use is a place to which an object pushes.
type use struct {
	store    storeID
	property string
}

// named returns the properties of a remote secret to which an object pushes, or is about to.
func (u users) named(ctx context.Context, ps *v1alpha1.PushSecret, at removalSite) (out []use, err error) {
	recorded := map[storeID]*v1alpha1.PushEntryStatus{}
	for i := range ps.Status.Stores {
		s := &ps.Status.Stores[i]
		for j := range s.Entries {
			if e := &s.Entries[j]; e.RemoteKey == at.key {
				recorded[idOf(*s)] = e
				out = append(out, use{idOf(*s), e.Property})
			}
		}
	}
	wished, err := u.wished(ctx, ps, at.key)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(out, wished...), func(w use) bool {
		is, failed := u.same(ctx, w.store, ps.Namespace, at, recorded[w.store])
		err = errors.Join(err, failed)
		return !is
	}), err
}

// wished returns what an object wants of a remote secret by its spec, and what this process is pushing there.
func (u users) wished(ctx context.Context, ps *v1alpha1.PushSecret, key string) (out []use, err error) {
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
				out = append(out, use{id, property})
			}
		}
	}
	if obj := u.memory.peek(client.ObjectKeyFromObject(ps)); obj != nil && obj.uid == ps.UID {
		for id, names := range obj.stores.names() {
			for _, n := range names {
				if n.key == key {
					out = append(out, use{id, n.property})
				}
			}
		}
	}
	return out, nil
}

// same reports whether the secret of a key in a store is the one at a place, or may be. entry is what the status says of
// it; nil if it says nothing yet.
func (u users) same(ctx context.Context, id storeID, namespace string, at removalSite, entry *v1alpha1.PushEntryStatus) (bool, error) {
	ref := v1alpha1.StoreRef{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}
	k, ok := u.stores.routes.Serves(&ref)
	if !ok || k.GVK.Group != at.route.GVK.Group || k.Cluster && u.stores.namespaced {
		return false, nil
	}
	s, err := u.stores.routes.Find(ctx, k, ref, namespace)
	if err != nil {
		return false, errors.Wrap(err, "cannot read the store")
	}
	seen := entry != nil && entry.ID != ""
	if seen && entry.ID == at.id {
		return true, nil
	}
	if s == nil {
		return false, nil
	}
	b := backendOf(k, s, namespace)
	return b.address == at.address && (!seen || b.login == at.login), nil
}
