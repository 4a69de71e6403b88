package pushsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
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
func (r *reconciler) notify(ctx context.Context, k resolve.Route, c *refresh.Change) {
	for i := range c.Secrets {
		for _, key := range c.Secrets[i].Keys {
			var list v1alpha1.PushSecretList
			err := r.cache.List(ctx, &list, client.MatchingFields{entryIndex: entryKey(k.GVK.Kind, key)}, client.InNamespace(c.Namespace))
			if err != nil {
				return // List fails only if the cache is shutting down.
			}
			for j := range list.Items {
				ps := &list.Items[j]
				if obj := r.memory.Peek(client.ObjectKeyFromObject(ps)); obj != nil {
					r.compare(obj, ps, k, key, c, &c.Secrets[i])
				}
			}
			r.memory.ahead.Range(func(o, _ any) bool {
				if obj, ok := o.(*object); ok {
					r.compare(obj, obj.seen.Load(), k, key, c, &c.Secrets[i])
				}
				return true
			})
		}
	}
}

// compare queues an object at the stores whose secret has changed. ps is the object as the cache shows it; nil if it was deleted.
func (r *reconciler) compare(obj *object, ps *v1alpha1.PushSecret, k resolve.Route, key string, c *refresh.Change, secret *refresh.Secret) {
	if ps == nil || !r.concerns(ps) {
		return
	}
	stores, _ := obj.present(ps)
	for _, s := range stores {
		pushes := slices.ContainsFunc(s.Entries, func(e v1alpha1.PushEntryStatus) bool { return e.RemoteKey == key })
		if s.Kind != k.GVK.Kind || !pushes || !c.Reaches(secret, k.Key(s.Name, ps.Namespace), ps.Namespace) {
			continue
		}
		secret.Matched = true
		own := secret.Version != "" && !slices.ContainsFunc(s.Entries, func(e v1alpha1.PushEntryStatus) bool { return e.RemoteKey == key && e.Version != secret.Version })
		if own || ps.Spec.Suspend || ps.Spec.UpdatePolicy == v1alpha1.UpdateIfNotExists || ps.DeletionTimestamp != nil {
			continue
		}
		var after time.Duration
		obj.stores.with(idOf(s), func(s *storeState) {
			s.asked = true
			after = s.attempts.Notify(c.At, c.By)
		})
		r.notified(unit{client.ObjectKeyFromObject(ps), idOf(s)}, c.Source, after)
	}
}
