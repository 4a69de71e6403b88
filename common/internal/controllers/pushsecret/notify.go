package pushsecret

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// entryIndex is the cache index from a store Kind and a remote secret to the objects whose status has an entry for it, at any store.
const entryIndex = "direct-secrets.io/entry"

func entryKey(kind, key string) string { return kind + "\x00" + key }

func indexEntries(indexer client.FieldIndexer) error {
	err := indexer.IndexField(context.Background(), &v1alpha1.PushSecret{}, entryIndex, func(obj client.Object) (keys []string) {
		ps, ok := obj.(*v1alpha1.PushSecret)
		if !ok {
			return nil
		}
		for _, s := range ps.Status.Stores {
			for _, e := range s.Entries {
				keys = append(keys, entryKey(s.Kind, e.RemoteKey))
			}
		}
		slices.Sort(keys)
		return slices.Compact(keys)
	})
	return errors.Wrap(err, "cannot index PushSecrets by remote secret")
}

// notify has the objects that push a changed secret compare it at once, if they replace what others write. It queues the objects
// at the store itself, because the walk over an object does not wait for those over its stores.
func (r *reconciler) notify(ctx context.Context, k resolve.Route, c *refresh.Change) []reconcile.Request {
	for _, key := range c.Keys {
		var list v1alpha1.PushSecretList
		if err := r.cache.List(ctx, &list, client.MatchingFields{entryIndex: entryKey(k.GVK.Kind, key)}); err != nil {
			return nil // List fails only if the cache is shutting down.
		}
		for i := range list.Items {
			if ps := &list.Items[i]; r.concerns(ps) {
				obj, _ := r.memory.Get(client.ObjectKeyFromObject(ps), ps.UID)
				r.compare(obj, ps, k, key, c)
			}
		}
		for _, obj := range r.memory.ahead.all() {
			if ps := obj.seen.Load(); ps != nil && r.concerns(ps) {
				r.compare(obj, ps, k, key, c)
			}
		}
	}
	return nil
}

// compare queues an object at the stores whose secret has changed.
func (r *reconciler) compare(obj *object, ps *v1alpha1.PushSecret, k resolve.Route, key string, c *refresh.Change) {
	for id, own := range obj.pushes(ps, k.GVK.Kind, key, c.Version) {
		if !c.Reaches(k.Key(id.name, ps.Namespace), ps.Namespace) {
			continue
		}
		c.Match()
		if own || ps.Spec.Suspend || ps.Spec.UpdatePolicy == v1alpha1.UpdateIfNotExists || ps.DeletionTimestamp != nil {
			continue
		}
		u := unit{client.ObjectKeyFromObject(ps), id}
		obj.stores.with(u.store, func(s *storeState) {
			s.asked = true
			s.attempts.Free()
		})
		c.Hold()
		r.onEnd(u, c.Release)
		r.start(u, queue.High)
	}
}
