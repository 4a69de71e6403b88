package referrers

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// readIndex is the cache index from a remote secret to the objects that read it.
const readIndex = "direct-secrets.io/read"

// readKey is the value of readIndex for a remote secret of a store; with an empty key for a search.
func readKey(store, key string) string { return store + "\x00" + key }

// readKeys returns the values of readIndex of an object: one for each remote secret that it reads.
func (r *Referrers) readKeys(es *v1alpha1.ExternalSecret) []string {
	plan, err := render.NewPlan(es)
	if err != nil {
		return nil
	}
	var keys []string
	for _, src := range plan.Sources {
		if k, ok := r.Serves(&src.Store); ok && !src.Generator {
			keys = append(keys, readKey(k.IndexKey(k.Key(src.Store.Name, es.Namespace)), src.Ref.Key))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Reading returns the objects that read a changed secret of a store, and whose status does not show its new version.
func (r *Referrers) Reading(ctx context.Context, k resolve.Route, store types.NamespacedName, c *refresh.Change) []*v1alpha1.ExternalSecret {
	var all []*v1alpha1.ExternalSecret
	add := func(key string, reads func(*v1alpha1.ExternalSecret) bool) {
		var list v1alpha1.ExternalSecretList
		if err := r.cache.List(ctx, &list, client.MatchingFields{readIndex: readKey(k.IndexKey(store), key)}); err != nil {
			return // List fails only if the cache is shutting down.
		}
		for i := range list.Items {
			es := &list.Items[i]
			if !slices.Contains(all, es) && c.Reaches(es.Namespace) && reads(es) {
				all = append(all, es)
			}
		}
	}
	for _, key := range c.Keys {
		add(key, func(*v1alpha1.ExternalSecret) bool { return true })
	}
	add("", func(es *v1alpha1.ExternalSecret) bool { return r.finds(es, k, store, c.Keys[0]) })
	if len(all) > 0 {
		c.Match()
	}
	return slices.DeleteFunc(all, func(es *v1alpha1.ExternalSecret) bool { return shows(es, c) })
}

// finds reports whether a search of an object can find a key. The tags of the secret are not known.
func (r *Referrers) finds(es *v1alpha1.ExternalSecret, k resolve.Route, store types.NamespacedName, key string) bool {
	plan, err := render.NewPlan(es)
	return err == nil && slices.ContainsFunc(plan.Sources, func(src render.Source) bool {
		is, ok := r.Serves(&src.Store)
		if !ok || src.Search == (provider.Search{}) || is.GVK != k.GVK || k.Key(src.Store.Name, es.Namespace) != store {
			return false
		}
		q, err := src.Search.Query()
		return err == nil && strings.HasPrefix(key, q.Path) && (q.Name == nil || q.Name.MatchString(key))
	})
}

// shows reports whether the values of an object are those of the version after a change. Each version of a secret has a name of
// its own.
func shows(es *v1alpha1.ExternalSecret, c *refresh.Change) bool {
	shown := false
	for _, s := range es.Status.Sources {
		if s.Kind == v1alpha1.SourceGenerator || !slices.Contains(c.Keys, s.Key) {
			continue
		}
		if s.Version != c.Version {
			return false
		}
		shown = true
	}
	return shown && c.Version != ""
}
