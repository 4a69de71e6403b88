package eventsource

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A matcher finds the stores whose objects can name the secret of an event.
type matcher struct {
	cache      client.Reader
	scheme     *runtime.Scheme
	resolver   *resolve.Resolver
	namespaced bool
	// kind is that of the event sources.
	kind    string
	publish func(refresh.Event)
}

// view is a matcher for the messages of one call to an event source. It lists the stores of each Kind once.
type view struct {
	*matcher
	from   provider.EventSourceObject
	scopes map[schema.GroupVersionKind][]scope
}

// scope are the stores of a Kind whose objects name secrets by the same rules: those of one store.
type scope struct {
	one provider.Object
	of  map[types.NamespacedName]bool
}

func (m *matcher) view(from provider.EventSourceObject) *view {
	return &view{m, from, map[schema.GroupVersionKind][]scope{}}
}

// match publishes a change for the stores that may have the secret of an event: one for all stores whose objects name it by the
// same keys. It calls begin for each change, and what that returned when the last walk that the change caused has ended.
func (v *view) match(ctx context.Context, e *provider.Event, at time.Time, begin func() (done func(matched bool))) {
	for _, k := range v.resolver.Kinds {
		if k.Generator || k.EventSource || k.Cluster && v.namespaced || strings.TrimPrefix(k.GoName(), "Cluster") != e.Kind {
			continue
		}
		for _, g := range v.groups(ctx, k, e) {
			c := refresh.NewChange(begin())
			c.Keys, c.Version, c.At = g.keys, e.Version, at
			c.By = v.kind + "/" + v.from.GetName()
			c.Reaches = func(store types.NamespacedName, namespace string) bool {
				return g.has(store) && e.MayBeOf(k.Kind, store.Name) && v.reaches(ctx, v.from, namespace)
			}
			v.publish(refresh.Event{Kind: k.Kind, Change: c})
			c.Release()
		}
	}
}

// group are the stores whose objects name a secret by the same keys.
type group struct {
	keys   []string
	scopes []scope
}

func (g *group) has(store types.NamespacedName) bool {
	return slices.ContainsFunc(g.scopes, func(s scope) bool { return s.of[store] })
}

// groups returns the stores of a Kind that may have the secret of an event.
func (v *view) groups(ctx context.Context, k resolve.Route, e *provider.Event) (groups []*group) {
	for _, s := range v.scopesOf(ctx, k) {
		keys := k.Keys(s.one, *e)
		if len(keys) == 0 {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return slices.Equal(g.keys, keys) })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{keys: keys})
		}
		groups[i].scopes = append(groups[i].scopes, s)
	}
	return groups
}

func (v *view) scopesOf(ctx context.Context, k resolve.Route) []scope {
	all, ok := v.scopes[k.GVK]
	if ok {
		return all
	}
	index := map[any]int{}
	for _, store := range v.stores(ctx, k, v.from) {
		is := k.Scope(store)
		i, ok := index[is]
		if !ok {
			i = len(all)
			index[is], all = i, append(all, scope{store, map[types.NamespacedName]bool{}})
		}
		all[i].of[client.ObjectKeyFromObject(store)] = true
	}
	v.scopes[k.GVK] = all
	return all
}

// stores returns the stores of a Kind that objects use which an event source reaches.
func (m *matcher) stores(ctx context.Context, k resolve.Route, from provider.EventSourceObject) (stores []provider.Object) {
	made, err := m.scheme.New(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
	list, ok := made.(client.ObjectList)
	if err != nil || !ok {
		return nil // Each Kind has a list.
	}
	in := []client.ListOption{client.UnsafeDisableDeepCopy}
	if !k.Cluster {
		in = append(in, client.InNamespace(from.GetNamespace())) // Empty for a cluster Kind: all.
	}
	if err := m.cache.List(ctx, list, in...); err != nil {
		return nil // List fails only if the cache is shutting down.
	}
	for _, o := range kit.Items(list) {
		if s, ok := o.(provider.Object); ok {
			stores = append(stores, s)
		}
	}
	return stores
}

// reaches reports whether an event source reaches the objects of a namespace: a namespaced one those of its own, and one of a
// cluster Kind those that its conditions admit.
func (m *matcher) reaches(ctx context.Context, from provider.EventSourceObject, namespace string) bool {
	c, ok := from.(provider.ClusterObject)
	if !ok {
		return from.GetNamespace() == namespace
	}
	_, refused, err := m.resolver.Grant(ctx, m.cache, c, namespace)
	return err == nil && refused == ""
}
