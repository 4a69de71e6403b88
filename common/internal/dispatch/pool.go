package dispatch

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/credentials"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Pool provides the Loader of each store, generator and event source.
type Pool struct {
	// Objects reads the Secrets and ConfigMaps of tenants.
	Objects *room.Reader

	client  client.Client
	watches *watch.Watches
	rules   credentials.Rules
	opts    Options
	changed func(k provider.Kind, s types.NamespacedName, credentialsNamespace string)

	mu sync.Mutex
	// Bound: one per store and namespace whose credentials it uses.
	open map[types.UID]map[string]*connection
}

// unused is how long the connection of one namespace to a store with authenticationScope ManifestNamespace is kept
// after its last request.
const unused = 30 * time.Minute

// connection is also the owner of the watches of its credentials.
type connection struct {
	generation int64
	asked      time.Time
	loader     *Loader
	// read holds the Secrets and ConfigMaps that were looked up for it.
	read map[watch.ObjectRef]bool
}

// NewPool returns an empty pool. It calls changed when a credential of a store has changed, after it has dropped the
// connection.
func NewPool(c client.Client, w *watch.Watches, r credentials.Rules, o Options, changed func(k provider.Kind, s types.NamespacedName, credentialsNamespace string)) *Pool {
	o = o.withDefaults()
	return &Pool{Objects: room.NewReader(c, o.Quotas), client: c, watches: w, rules: r, opts: o, changed: changed, open: map[types.UID]map[string]*connection{}}
}

// Loader returns the Loader of a store, generator or event source at its current generation. The last argument is the
// namespace in which its credentials are looked up, if that is the one of the referring object; otherwise it is empty.
func (p *Pool) Loader(k provider.Kind, s provider.Object, credentialsNamespace string) *Loader {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	c := p.open[s.GetUID()][credentialsNamespace]
	if c != nil && c.generation == s.GetGeneration() {
		c.asked = now
		return c.loader
	}
	for ns, o := range p.open[s.GetUID()] {
		if o.generation != s.GetGeneration() || now.Sub(o.asked) > unused {
			p.closeLocked(s.GetUID(), ns)
		}
	}
	s, ok := s.DeepCopyObject().(provider.Object)
	if !ok {
		panic("a deep copy of a store is not a store")
	}
	c = &connection{generation: s.GetGeneration(), asked: now, read: map[watch.ObjectRef]bool{}}
	creds, opts := p.credentials(k, s, credentialsNamespace, c), p.opts
	opts.Tenant = TenantOf(s, credentialsNamespace)
	c.loader = NewLoader(func(ctx context.Context, t *quota.Tenant) (*provider.Link, error) {
		return k.Connect(ctx, s, creds, t)
	}, opts)
	if p.open[s.GetUID()] == nil {
		p.open[s.GetUID()] = map[string]*connection{}
	}
	p.open[s.GetUID()][credentialsNamespace] = c
	return c.loader
}

// TenantOf returns the tenant for which the answers of a store count. A tenant is a namespace. A cluster store that uses the
// same credentials for all namespaces is a tenant of its own.
func TenantOf(s provider.Object, credentialsNamespace string) string {
	return cmp.Or(credentialsNamespace, s.GetNamespace(), string(s.GetUID()))
}

// Drop retires the connections of a store that was deleted, or whose credentials have changed.
func (p *Pool) Drop(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ns := range p.open[uid] {
		p.closeLocked(uid, ns)
	}
}

func (p *Pool) closeLocked(uid types.UID, credentialsNamespace string) {
	c := p.open[uid][credentialsNamespace]
	c.loader.Retire()
	p.watches.Remove(c)
	if delete(p.open[uid], credentialsNamespace); len(p.open[uid]) == 0 {
		delete(p.open, uid)
	}
}

func (p *Pool) credentials(k provider.Kind, s provider.Object, credentialsNamespace string, c *connection) provider.Credentials {
	f := credentials.Fence{Cluster: k.Cluster, Namespace: s.GetNamespace(), Tenant: TenantOf(s, credentialsNamespace), Rules: p.rules}
	if k.Cluster {
		f.Namespace = credentialsNamespace
	}
	return credentials.NewReader(p.client, p.Objects, f, func(o watch.ObjectRef, resourceVersion string) {
		p.watch(k, s, credentialsNamespace, c, o, resourceVersion)
	})
}

// watch observes a credential for as long as the connection is in use. It adds no watch for a connection that was
// dropped meanwhile, because nothing would end that watch. The first read of an object counts: if a second read, for
// another key, returned another version, the two values might not match.
func (p *Pool) watch(k provider.Kind, s provider.Object, credentialsNamespace string, c *connection, o watch.ObjectRef, resourceVersion string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[s.GetUID()][credentialsNamespace] != c || c.read[o] {
		return
	}
	c.read[o] = true
	p.watches.Add(o, c, resourceVersion, func() {
		p.mu.Lock()
		current := p.open[s.GetUID()][credentialsNamespace] == c
		if current {
			p.closeLocked(s.GetUID(), credentialsNamespace)
		}
		p.mu.Unlock()
		if current {
			p.changed(k, client.ObjectKeyFromObject(s), credentialsNamespace)
		}
	})
}
