package referrers

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// readIndex is the cache index from a store Kind and a remote secret to the objects that read it, from any store.
const readIndex = "direct-secrets.io/read"

// readKey is the value of readIndex for a remote secret; with an empty key for searches.
func readKey(k resolve.Route, key string) string { return k.GVK.Kind + "\x00" + key }

// readKeys returns the values of readIndex of an object: one for each remote secret that it reads.
func (r *Referrers) readKeys(es *v1alpha1.ExternalSecret) []string {
	plan, err := render.NewPlan(es)
	if err != nil {
		return nil
	}
	var keys []string
	for _, src := range plan.Sources {
		if k, ok := r.Serves(&src.Store); ok && !src.Generator {
			keys = append(keys, readKey(k, src.Ref.Key))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Reading returns the objects that read a changed secret from stores of a Kind, and whose status does not show its new version.
func (r *Referrers) Reading(ctx context.Context, k resolve.Route, c *refresh.Change) []*v1alpha1.ExternalSecret {
	var all []*v1alpha1.ExternalSecret
	for _, key := range append([]string{""}, c.Keys...) {
		var list v1alpha1.ExternalSecretList
		if err := r.cache.List(ctx, &list, client.MatchingFields{readIndex: readKey(k, key)}); err != nil {
			return nil // List fails only if the cache is shutting down.
		}
		for i := range list.Items {
			if es := &list.Items[i]; !slices.Contains(all, es) && r.reads(es, k, c) {
				all = append(all, es)
			}
		}
	}
	if len(all) > 0 {
		c.Match()
	}
	return slices.DeleteFunc(all, func(es *v1alpha1.ExternalSecret) bool { return shows(es, c) })
}

// reads reports whether an object reads a changed secret, or may find it: the tags of the secret are not known.
func (r *Referrers) reads(es *v1alpha1.ExternalSecret, k resolve.Route, c *refresh.Change) bool {
	plan, err := render.NewPlan(es)
	return err == nil && slices.ContainsFunc(plan.Sources, func(src render.Source) bool {
		is, ok := r.Serves(&src.Store)
		if !ok || src.Generator || is.GVK != k.GVK || !c.Reaches(k.Key(src.Store.Name, es.Namespace), es.Namespace) {
			return false
		}
		if src.Search == (provider.Search{}) {
			return slices.Contains(c.Keys, src.Ref.Key)
		}
		q, err := src.Search.Query()
		return err == nil && strings.HasPrefix(c.Keys[0], q.Path) && (q.Name == nil || q.Name.MatchString(c.Keys[0]))
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
