package eventsource

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
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
	publish    func(refresh.Event)
}

// match publishes a change for each store that may have the secret of an event. It calls begin for each, and what that returned
// when the last walk that the change caused has ended.
func (m *matcher) match(ctx context.Context, from provider.EventSourceObject, e provider.Event, at time.Time, begin func() (done func(matched bool))) {
	for _, k := range m.resolver.Kinds {
		if k.Generator || k.EventSource || k.Cluster && m.namespaced || strings.TrimPrefix(k.GoName(), "Cluster") != e.Kind {
			continue
		}
		for _, store := range m.stores(ctx, k, from) {
			keys := k.Keys(store, e)
			if len(keys) == 0 {
				continue
			}
			c := refresh.NewChange(begin())
			c.Keys, c.Version, c.At = keys, e.Version, at
			c.Reaches = func(namespace string) bool { return m.reaches(ctx, from, namespace) }
			m.publish(refresh.Event{Kind: k.Kind, Store: client.ObjectKeyFromObject(store), Change: c})
			c.Release()
		}
	}
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
