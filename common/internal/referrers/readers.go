package referrers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// readIndex is the cache index from a store Kind and a remote secret to the objects that read it, from any store, and from a store
// to the objects that search it.
const readIndex = "direct-secrets.io/read"

// readKey is the value of readIndex for a remote secret, and searchKey that for a store.
func readKey(k resolve.Route, key string) string { return k.GVK.Kind + "\x00" + key }

func searchKey(k resolve.Route, store string) string { return readKey(k, "\x00"+store) }

// readKeys returns the values of readIndex of an object: one for each remote secret that it reads, and each store that it searches. The
// cache is locked meanwhile, so no expression is compiled, and the spec can be invalid.
func (r *Referrers) readKeys(es *v1alpha1.ExternalSecret) []string {
	var keys []string
	for _, src := range render.Sources(es) {
		k, ok := r.Serves(&src.Store)
		switch {
		case !ok || src.Generator:
		case src.Search != (provider.Search{}):
			keys = append(keys, searchKey(k, src.Store.Name))
		default:
			keys = append(keys, readKey(k, src.Ref.Key))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Reading returns the objects that read or may find one of the secrets of a change from stores of a Kind, and whose status does not
// show its new version.
func (r *Referrers) Reading(ctx context.Context, k resolve.Route, c *refresh.Change) []*v1alpha1.ExternalSecret {
	found := map[types.UID]*v1alpha1.ExternalSecret{}
	search := func(key, namespace string, secrets []refresh.Secret) {
		var list v1alpha1.ExternalSecretList
		if r.cache.List(ctx, &list, client.MatchingFields{readIndex: key}, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
			return // List fails only if the cache is shutting down.
		}
		for i := range list.Items {
			if es := &list.Items[i]; r.reads(es, k, c, secrets) {
				found[es.UID] = es
			}
		}
	}
	for i, s := range c.Secrets {
		for _, key := range s.Keys {
			search(readKey(k, key), c.Namespace, c.Secrets[i:i+1])
		}
	}
	for store := range c.Stores {
		search(searchKey(k, store.Name), cmp.Or(c.Namespace, store.Namespace), c.Secrets)
	}
	return slices.Collect(maps.Values(found))
}

// reads reports whether an object reads one of several changed secrets, or may find it, because the tags of the secret are not known,
// and does not show its new version.
func (r *Referrers) reads(es *v1alpha1.ExternalSecret, k resolve.Route, c *refresh.Change, secrets []refresh.Secret) (due bool) {
	for _, src := range render.Sources(es) {
		if is, ok := r.Serves(&src.Store); !ok || src.Generator || is.GVK != k.GVK {
			continue
		}
		selects := func(s *refresh.Secret) bool { return slices.Contains(s.Keys, src.Ref.Key) }
		if src.Search != (provider.Search{}) {
			selects = finds(src.Search, c, es.Namespace)
		}
		for i := range secrets {
			if s := &secrets[i]; c.Reaches(s, k.Key(src.Store.Name, es.Namespace), es.Namespace) && selects(s) {
				s.Matched = true
				due = due || !shows(es, s)
			}
		}
	}
	return due
}

// maxKey limits the keys that are compared with an expression, which can take 10 microseconds for each byte. No store has longer ones.
const maxKey = 4096

// finds returns whether a search of a namespace may find a secret of a change.
func finds(search provider.Search, c *refresh.Change, namespace string) func(*refresh.Secret) bool {
	query := sync.OnceValues(search.Query)
	return func(s *refresh.Secret) (may bool) {
		key := s.Keys[0]
		if !strings.HasPrefix(key, search.Path) {
			return false
		}
		if search.Name == "" || len(key) > maxKey {
			return true
		}
		in := c.Matching.Within(namespace, func() {
			q, err := query()
			may = err == nil && q.Name.MatchString(key)
		})
		return may || !in
	}
}

// shows reports whether the values of an object are those of the version after a change. Each version of a secret has a name of
// its own.
func shows(es *v1alpha1.ExternalSecret, changed *refresh.Secret) bool {
	shown := false
	for _, s := range es.Status.Sources {
		if s.Kind == v1alpha1.SourceGenerator || !slices.Contains(changed.Keys, s.Key) {
			continue
		}
		if s.Version != changed.Version {
			return false
		}
		shown = true
	}
	return shown && changed.Version != ""
}
