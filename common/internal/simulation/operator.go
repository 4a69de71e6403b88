package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An Operator is a process that a Run controls. It reconciles one object at a time. After a crash, a new Operator
// replaces it.
type Operator struct {
	Name string
	// Cache is the operator's cache, and Live its client.
	Cache *Cache
	Live  client.Client
	// Reconcile reconciles one object.
	Reconcile func(context.Context, reconcile.Request) (reconcile.Result, error)
	// End is called when the operator stops; nil for no action.
	End func()
	// Context ends with the operator.
	Context context.Context //nolint:containedctx // It is that of a process.

	run    *Run
	cancel context.CancelFunc
	ended  bool
	busy   bool
	queue  map[types.NamespacedName]bool
	later  map[types.NamespacedName]time.Duration
	// history is a hash of everything that the operator has received. After the same history it does the same.
	history uint64
	// requests are the requests that wait for their turn.
	requests []*request
}

// request is a request that waits for its turn.
type request struct {
	label string
	f     func() (uint64, error)
	done  chan error
}

// soon is the longest requeue delay that may pass before anything else happens.
const soon = 3 * time.Second

// Do is the Do of the operator: the request waits until the run picks it.
func (o *Operator) Do(ctx context.Context, label string, f func() (uint64, error)) error {
	r := &request{label, f, make(chan error, 1)}
	o.run.mu.Lock()
	if o.ended {
		o.run.mu.Unlock()
		return context.Canceled
	}
	o.requests = append(o.requests, r)
	o.run.mu.Unlock()
	select {
	case err := <-r.done:
		return err
	case <-o.Context.Done():
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Enqueue requeues an object.
func (o *Operator) Enqueue(key types.NamespacedName) {
	o.run.mu.Lock()
	defer o.run.mu.Unlock()
	o.queue[key] = true
	delete(o.later, key)
}

// EnqueueAfter requeues an object after a time, or earlier.
func (o *Operator) EnqueueAfter(key types.NamespacedName, wait time.Duration) {
	o.run.mu.Lock()
	defer o.run.mu.Unlock()
	if is, waits := o.later[key]; !o.queue[key] && (!waits || wait < is) {
		o.later[key] = wait
	}
}

func (o *Operator) saw(parts ...string) {
	o.run.mu.Lock()
	defer o.run.mu.Unlock()
	o.note(parts...)
}

func (o *Operator) note(parts ...string) {
	o.history = join(append(parts, fmt.Sprint(o.history))...)
}

// Requests is the queue of an operator, as event handlers use it.
type Requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

type requests struct {
	Requests
	o *Operator
}

func (q requests) Add(r reconcile.Request)                       { q.o.Enqueue(r.NamespacedName) }
func (q requests) AddAfter(r reconcile.Request, _ time.Duration) { q.o.Enqueue(r.NamespacedName) }
func (q requests) AddRateLimited(r reconcile.Request)            { q.o.Enqueue(r.NamespacedName) }

// pass starts a reconcile of one object.
func (o *Operator) pass(key types.NamespacedName) {
	o.busy = true
	delete(o.queue, key)
	delete(o.later, key)
	o.note("pass", key.String())
	go func() {
		res, err := o.Reconcile(o.Context, reconcile.Request{NamespacedName: key})
		o.run.mu.Lock()
		defer o.run.mu.Unlock()
		o.busy = false
		if err != nil {
			res.RequeueAfter = time.Second
		}
		if is, waits := o.later[key]; res.RequeueAfter > 0 && !o.queue[key] && (!waits || res.RequeueAfter < is) {
			o.later[key] = res.RequeueAfter
		}
	}()
}

// stop stops the operator like a crash: requests that were not executed never will be.
func (o *Operator) stop() {
	o.run.mu.Lock()
	o.ended = true
	o.requests = nil
	o.run.mu.Unlock()
	o.cancel()
	if o.End != nil {
		o.End()
	}
}

func (o *Operator) choices() []choice {
	var all []choice
	slices.SortStableFunc(o.requests, func(a, b *request) int { return strings.Compare(a.label, b.label) })
	for _, r := range o.requests {
		all = append(all, choice{label: o.Name + ": " + r.label, thread: o.Name, rank: asks, do: func() { o.grant(r) }})
	}
	for _, key := range sorted(o.queue) {
		if !o.busy {
			all = append(all, choice{label: o.Name + ": pass over " + key.String(), thread: o.Name, rank: begins, do: func() { o.pass(key) }})
		}
	}
	for _, kind := range o.Cache.behind() {
		all = append(all, choice{label: o.Name + ": its cache of " + kind + "s catches up", rank: sees, do: func() { o.Cache.catchUp(kind, requests{o: o}) }})
	}
	for _, key := range sorted(o.later) {
		if o.later[key] <= soon && !o.busy {
			all = append(all, choice{label: o.Name + ": time to look again at " + key.String(), rank: waits, do: func() {
				time.Sleep(o.later[key])
				o.Enqueue(key)
			}})
		}
	}
	return all
}

func sorted[V any](m map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// grant executes a request.
func (o *Operator) grant(r *request) {
	o.requests = slices.DeleteFunc(o.requests, func(x *request) bool { return x == r })
	sum, err := r.f()
	o.note(r.label, fmt.Sprint(sum), fmt.Sprint(err))
	r.done <- err
}

// digest returns a hash of everything that influences the next actions of the operator.
func (o *Operator) digest() uint64 {
	parts := []string{o.Name, fmt.Sprint(o.history, o.busy, o.Cache.digest())}
	for _, r := range o.requests {
		parts = append(parts, r.label)
	}
	for _, key := range sorted(o.queue) {
		parts = append(parts, "queue", key.String())
	}
	for _, key := range sorted(o.later) {
		parts = append(parts, "later", key.String(), o.later[key].String())
	}
	return join(parts...)
}
