package pushsecret

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// entryIndex is the cache index from a remote secret to the objects whose status has an entry for it. Its values are store Kinds,
// store names and keys.
const entryIndex = "direct-secrets.io/entry"

func entryKey(kind, store, key string) string { return kind + "\x00" + store + "\x00" + key }

func indexEntries(indexer client.FieldIndexer) error {
	err := indexer.IndexField(context.Background(), &v1alpha1.PushSecret{}, entryIndex, func(obj client.Object) (keys []string) {
		ps, ok := obj.(*v1alpha1.PushSecret)
		if !ok {
			return nil
		}
		for _, s := range ps.Status.Stores {
			for _, e := range s.Entries {
				keys = append(keys, entryKey(s.Kind, s.Name, e.RemoteKey))
			}
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	})
	return errors.Wrap(err, "cannot index PushSecrets by remote secret")
}

// notify has the objects that push a changed secret compare it at once, if they replace what others write. It queues the objects
// at the store itself, because the walk over an object does not wait for those over its stores.
func (r *reconciler) notify(ctx context.Context, k resolve.Route, store types.NamespacedName, c *refresh.Change) []reconcile.Request {
	for _, key := range c.Keys {
		var list v1alpha1.PushSecretList
		if err := r.cache.List(ctx, &list, client.InNamespace(store.Namespace), client.MatchingFields{entryIndex: entryKey(k.GVK.Kind, store.Name, key)}); err != nil {
			return nil // List fails only if the cache is shutting down.
		}
		for i := range list.Items {
			ps := &list.Items[i]
			if !c.Reaches(ps.Namespace) || !r.concerns(ps) {
				continue
			}
			c.Match()
			if ps.Spec.Suspend || ps.Spec.UpdatePolicy == v1alpha1.UpdateIfNotExists || ps.DeletionTimestamp != nil {
				continue
			}
			obj, _ := r.memory.Get(client.ObjectKeyFromObject(ps), ps.UID)
			for _, s := range r.entries(ps) {
				if s.Kind != k.GVK.Kind || s.Name != store.Name || shows(s, key, c.Version) {
					continue
				}
				u := unit{client.ObjectKeyFromObject(ps), idOf(s)}
				obj.stores.with(u.store, func(s *storeState) {
					s.asked = true
					s.attempts.Free()
				})
				c.Hold()
				r.onEnd(u, c.Release)
				r.start(u, queue.High)
			}
		}
	}
	return nil
}

// shows reports whether the status of a store has no older version of a secret than the one after a change: it is that of a push.
func shows(s v1alpha1.PushStoreStatus, key, version string) bool {
	return version != "" && !slices.ContainsFunc(s.Entries, func(e v1alpha1.PushEntryStatus) bool { return e.RemoteKey == key && e.Version != version })
}
