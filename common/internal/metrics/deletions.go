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

// Following makes a Ledger report how long the oldest deletion of an object of its Kind has been pending. o is an
// empty object of that Kind. All objects that the operator watches count, including those of other modules: if the
// module whose finalizer holds an object does not run, no other metric shows it. It uses watch events alone, because
// the controller that should remove the finalizer might be the one that fails.
func Following(o client.Object) Option {
	return func(l *Ledger) { l.deletions = &deletions{of: o} }
}

// deletions remembers those objects of a Kind that are being deleted.
type deletions struct {
	of client.Object

	mu sync.Mutex
	// since is the deletion timestamp.
	// Bound: one per object that is being deleted.
	since map[types.NamespacedName]time.Time
}

// follow starts to note the events of a cache's objects. It returns after it has registered its handler.
func (d *deletions) follow(ctx context.Context, c cache.Cache) error {
	i, err := c.GetInformer(ctx, d.of, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch for deletions")
	}
	_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: d.see, UpdateFunc: func(_, o any) { d.see(o) }, DeleteFunc: d.forget,
	})
	return errors.Wrap(err, "cannot watch for deletions")
}

// see notes the current state of an object. A predecessor of the same name might have been in deletion.
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

// forget drops a deleted object. If it was deleted during a broken watch, only its key might be known.
func (d *deletions) forget(obj any) {
	name, err := toolscache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return // obj is not an object.
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, types.NamespacedName{Namespace: name.Namespace, Name: name.Name})
}

// longest returns how long the oldest deletion has been pending; 0 if there is none.
func (d *deletions) longest(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	longest := time.Duration(0)
	for _, at := range d.since {
		longest = max(longest, now.Sub(at))
	}
	return longest
}
