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

// connection is also the owner of the watches of its credentials.
type connection struct {
	generation int64
	loader     *fetch.Loader
	// read holds the Secrets that it has looked up.
	read map[types.NamespacedName]bool
}

// NewPool returns an empty pool. changed is called when a credential of a store has changed, after
// its connection was dropped.
func NewPool(c client.Client, w *watch.Watches, a credentials.Ambient, o fetch.Options, changed func(store.Kind, types.NamespacedName)) *Pool {
	o.Busy = &fetch.Busy{}
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
	p.dropLocked(s.GetUID())
	s, ok := s.DeepCopyObject().(store.Object)
	if !ok {
		panic("a deep copy of a store is not a store")
	}
	c = &connection{generation: s.GetGeneration(), read: map[types.NamespacedName]bool{}}
	c.loader = fetch.NewLoader(k.GoName(), func(ctx context.Context) (store.Client, error) {
		return k.Connect(ctx, s, p.credentials(k, s, c))
	}, p.opts)
	p.open[s.GetUID()] = c
	return c.loader
}

// WatchQueue tells the pool how many objects are due or being worked on, and by how many workers.
func (p *Pool) WatchQueue(queued func() int, workers int) { p.opts.Busy.Watch(queued, workers) }

// Drop retires the connection of a store that changed its credentials or is gone.
func (p *Pool) Drop(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(uid)
}

func (p *Pool) dropLocked(uid types.UID) {
	c := p.open[uid]
	if c == nil {
		return
	}
	c.loader.Retire()
	p.watches.Remove(c)
	delete(p.open, uid)
}

func (p *Pool) credentials(k store.Kind, s store.Object, c *connection) store.Credentials {
	f := credentials.Fence{Cluster: k.Cluster, Namespace: s.GetNamespace(), Ambient: p.ambient}
	return credentials.NewReader(p.client, f, func(secret types.NamespacedName, resourceVersion string) {
		p.watch(k, s, c, secret, resourceVersion)
	})
}

// watch observes a credential for as long as the connection is in use. One that was dropped while it
// was made has nobody who would end the watch. What counts is the first reading of a Secret: if a
// second one, for another key, found it changed, the two do not belong together.
func (p *Pool) watch(k store.Kind, s store.Object, c *connection, secret types.NamespacedName, resourceVersion string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[s.GetUID()] != c || c.read[secret] {
		return
	}
	c.read[secret] = true
	p.watches.Add(watch.SecretRef(secret.Namespace, secret.Name), c, resourceVersion, func() {
		p.mu.Lock()
		current := p.open[s.GetUID()] == c
		if current {
			p.dropLocked(s.GetUID())
		}
		p.mu.Unlock()
		if current {
			p.changed(k, client.ObjectKeyFromObject(s))
		}
	})
}
