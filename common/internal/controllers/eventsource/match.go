package eventsource

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A matcher finds the stores whose objects can name the secrets of events, and tells the controllers.
type matcher struct {
	cache      client.Reader
	scheme     *runtime.Scheme
	resolver   *resolve.Resolver
	namespaced bool
	// kind is that of the event sources.
	kind string
	bus  *refresh.Bus
}

// match returns for each event whether an object reads or pushes its secret. Before, it has notified these objects on behalf of an event
// source.
func (m *matcher) match(ctx context.Context, from provider.EventSourceObject, source any, at time.Time, all []provider.Event) (matched []bool) {
	if len(all) == 0 {
		return nil
	}
	matched = make([]bool, len(all))
	admitted, matching := map[string]bool{}, &refresh.Matching{}
	admits := func(namespace string) bool {
		is, known := admitted[namespace]
		if !known {
			is = m.reaches(ctx, from, namespace)
			admitted[namespace] = is
		}
		return is
	}
	for _, k := range m.resolver.Kinds {
		if k.Generator || k.EventSource || k.Cluster && m.namespaced || !slices.ContainsFunc(all, func(e provider.Event) bool { return isOf(e, k) }) {
			continue
		}
		for _, s := range m.scopes(ctx, k, from) {
			c := &refresh.Change{Kind: k.Kind, Stores: s.of, At: at, By: m.kind + "/" + from.GetName(), Source: source, Namespace: from.GetNamespace(), Admits: admits, Matching: matching}
			of := changes(c, k, s.one, all)
			if len(of) > 0 {
				m.bus.Publish(ctx, c)
			}
			for j, i := range of {
				matched[i] = matched[i] || c.Secrets[j].Matched
			}
		}
	}
	return matched
}

// isOf reports whether an event is about a secret of stores of a Kind.
func isOf(e provider.Event, k resolve.Route) bool {
	return strings.TrimPrefix(k.GoName(), "Cluster") == e.Kind
}

// changes adds to c the secrets of events that can be secrets of a store. It returns the indexes of the events.
func changes(c *refresh.Change, k resolve.Route, store provider.Object, all []provider.Event) (of []int) {
	for i := range all {
		e := &all[i]
		if !isOf(*e, k) {
			continue
		}
		if keys := k.Keys(store, *e); len(keys) > 0 {
			of = append(of, i)
			c.Secrets = append(c.Secrets, refresh.Secret{Keys: keys, Version: e.Version, MayBeOf: func(store string) bool { return e.MayBeOf(k.Kind, store) }})
		}
	}
	return of
}

// scope are the stores of a Kind whose objects name secrets by the same rules: those of one store.
type scope struct {
	one provider.Object
	of  map[types.NamespacedName]bool
}

func (m *matcher) scopes(ctx context.Context, k resolve.Route, from provider.EventSourceObject) (all []scope) {
	index := map[any]int{}
	for _, store := range m.stores(ctx, k, from) {
		is := k.Scope(store)
		i, ok := index[is]
		if !ok {
			i = len(all)
			index[is], all = i, append(all, scope{store, map[types.NamespacedName]bool{}})
		}
		all[i].of[client.ObjectKeyFromObject(store)] = true
	}
	return all
}

// stores returns the stores of a Kind that objects use which an event source reaches.
func (m *matcher) stores(ctx context.Context, k resolve.Route, from provider.EventSourceObject) []provider.Object {
	stores, err := kit.Stores(ctx, m.cache, m.scheme, k, from.GetNamespace()) // A cluster Kind reaches all namespaces.
	if err != nil {
		return nil // A cache fails only when it shuts down.
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
