package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Following has a Ledger tell how long a deletion of an object of its Kind is taking, where o is an empty one. All
// objects count that the operator watches, also those of other modules: where the module does not run whose finalizer
// holds an object, nobody else would tell. Events suffice, since a loop that does not work may be what holds it.
func Following(o client.Object) Option {
	return func(l *Ledger) { l.deletions = &deletions{of: o} }
}

// deletions remembers the objects of a Kind that are being deleted, and only those.
type deletions struct {
	of client.Object

	mu sync.Mutex
	// since is when the deletion was asked for.
	since map[types.NamespacedName]time.Time
}

// follow notes what happens to the objects of a cache, until that ends.
func (d *deletions) follow(ctx context.Context, c cache.Cache) error {
	i, err := c.GetInformer(ctx, d.of, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch deletions")
	}
	_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: d.see, UpdateFunc: func(_, o any) { d.see(o) }, DeleteFunc: d.gone,
	})
	return errors.Wrap(err, "cannot watch deletions")
}

// see notes an object as it is now. Another of its name may have been in deletion before it.
func (d *deletions) see(obj any) {
	o, ok := obj.(client.Object)
	if !ok {
		return
	}
	key, at := client.ObjectKeyFromObject(o), o.GetDeletionTimestamp()
	d.mu.Lock()
	defer d.mu.Unlock()
	if at == nil {
		delete(d.since, key)
		return
	}
	if d.since == nil {
		d.since = map[types.NamespacedName]time.Time{}
	}
	d.since[key] = at.Time
}

// gone drops an object. Of one that went while the watch was broken only the key may be known.
func (d *deletions) gone(obj any) {
	name, err := toolscache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return // It is no object.
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
}

// longest returns how long that deletion is taking that was asked for first; 0 if there is none.
func (d *deletions) longest(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	longest := time.Duration(0)
	for _, at := range d.since {
		longest = max(longest, now.Sub(at))
	}
	return longest
}
