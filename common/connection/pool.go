// Package connection keeps one long-lived client for each store and identity. A client is built
// once under concurrent demand, replaced when the store's spec or a credential changes, and closed
// when its last read has ended.
package connection

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/credentials"
	"github.com/direct-secrets/direct-secrets/common/fetch"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/watch"
)

// A Pool hands out the Loader of a store.
type Pool struct {
	client  client.Client
	watches *watch.Watches
	ambient credentials.Ambient
	opts    fetch.Options
	changed func(store.Kind, types.NamespacedName)

	mu   sync.Mutex
	open map[types.UID]*connection
}

type connection struct {
	generation int64
	loader     *fetch.Loader
}

// owner identifies the watches of one connection.
type owner struct{ uid types.UID }

// NewPool returns an empty pool. changed is called when a credential of a store has changed, after
// its connection was dropped.
func NewPool(c client.Client, w *watch.Watches, a credentials.Ambient, o fetch.Options, changed func(store.Kind, types.NamespacedName)) *Pool {
	return &Pool{client: c, watches: w, ambient: a, opts: o, changed: changed, open: map[types.UID]*connection{}}
}

// Loader returns the Loader of a store at its present generation.
func (p *Pool) Loader(k store.Kind, s store.Object) *fetch.Loader {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.open[s.GetUID()]
	if c != nil && c.generation == s.GetGeneration() {
		return c.loader
	}
	if c != nil {
		c.loader.Retire()
		p.watches.Remove(owner{s.GetUID()})
	}
	s, ok := s.DeepCopyObject().(store.Object)
	if !ok {
		panic("a deep copy of a store is not a store")
	}
	c = &connection{generation: s.GetGeneration()}
	c.loader = fetch.NewLoader(k.GoName(), func(ctx context.Context) (store.Client, error) {
		return k.Connect(ctx, s, p.credentials(k, s))
	}, p.opts)
	p.open[s.GetUID()] = c
	return c.loader
}

// Drop retires the connection of a store that changed its credentials or is gone.
func (p *Pool) Drop(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.open[uid]; c != nil {
		c.loader.Retire()
		delete(p.open, uid)
	}
	p.watches.Remove(owner{uid})
}

func (p *Pool) credentials(k store.Kind, s store.Object) store.Credentials {
	f := credentials.Fence{Cluster: k.Cluster, Namespace: s.GetNamespace(), Ambient: p.ambient}
	return credentials.NewReader(p.client, f, func(secret types.NamespacedName, resourceVersion string) {
		p.watches.Add(watch.SecretRef(secret.Namespace, secret.Name), owner{s.GetUID()}, resourceVersion, func() {
			p.Drop(s.GetUID())
			p.changed(k, client.ObjectKeyFromObject(s))
		})
	})
}
