package pushsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A unit is one object at one of its stores.
type unit struct {
	types.NamespacedName
	store storeID
}

// Push is one walk over a unit. It writes what the spec wants at the store, or removes what was created there for an object
// that is being deleted. The walk over the object writes the result to the status.
func (r *reconciler) Push(ctx context.Context, u unit) (again reconcile.Result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	obj, again := r.begin(u, cancel)
	if obj == nil {
		return again, nil
	}
	var res *result
	var done int64
	defer func() {
		r.memory.ahead.shown(obj)
		if obj.stores.end(u.store, res, done); res != nil {
			r.wake(u.NamespacedName)
		}
	}()
	ps := &v1alpha1.PushSecret{}
	if err := r.cache.Get(ctx, u.NamespacedName, ps); err != nil || ps.UID != obj.uid {
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the PushSecret")
	}
	ctx, span := trace.Start(ctx, trace.Reconcile, trace.Of("PushSecret", ps)...)
	defer func() { span.End(trace.Result(err)) }()
	p := &pass{reconciler: r, ps: ps, key: u.NamespacedName, obj: obj, now: r.opts.Now()}
	defer func() {
		if p.values != nil {
			p.values.Release()
		}
	}()
	var t *task
	switch {
	case ps.DeletionTimestamp != nil:
		t, err = removalAt(ctx, p, u.store)
	case ps.Spec.Suspend:
		done = ps.Generation // It pushes nothing.
		return reconcile.Result{}, r.locate(ctx, p, u.store)
	default:
		t, res, err = pushAt(ctx, p, u.store)
	}
	switch {
	case errors.Is(err, errNotMade):
		return queue.Later(gracePeriod), nil // The object is requeued when the status records the part.
	case err != nil:
		return reconcile.Result{}, err
	case t == nil:
		return reconcile.Result{}, nil
	case len(t.jobs) == 0 && ps.DeletionTimestamp != nil:
		done = ps.Generation
		defer r.wake(u.NamespacedName) // There is nothing to remove.
		return reconcile.Result{}, nil
	}
	if p.values != nil {
		p.values.Keep(t.bytes())
	}
	return reconcile.Result{}, kit.Wait(ctx, t.to.places(u.Namespace), func(ctx context.Context) error {
		res = r.runner.run(ctx, t)
		if counts(ps, res) {
			done = ps.Generation
		}
		return nil
	})
}

// begin begins a walk over a unit. It returns nil if the unit has no memory, or if the result of its last walk was not taken.
func (r *reconciler) begin(u unit, cancel func()) (*object, reconcile.Result) {
	obj := r.memory.Peek(u.NamespacedName)
	if obj == nil {
		return nil, reconcile.Result{}
	}
	switch free, asked := obj.stores.begin(u.store, cancel); {
	case free:
		return obj, reconcile.Result{}
	case asked:
		return nil, queue.Soon() // An event waits for a comparison that begins from now on.
	}
	return nil, reconcile.Result{}
}

// counts reports whether a walk over a unit counts as a comparison. A removal that failed or waits is made again.
func counts(ps *v1alpha1.PushSecret, res *result) bool {
	if ps.DeletionTimestamp != nil {
		return res.err == nil && !res.waits
	}
	return res.compared
}

// places returns the place of a walk that waits for the store.
func (d *destination) places(namespace string) []kit.Place {
	return []kit.Place{{Store: d.store.GetUID(), Credentials: resolve.CredentialsNamespace(d.store, namespace), Tenant: namespace}}
}

// bytes returns the size of the values to push.
func (t *task) bytes() (n int64) {
	for _, j := range t.jobs {
		for _, v := range slices.Concat(j.want, j.unrecorded) {
			n += int64(len(v.Data))
		}
	}
	return n
}

// locate finds out where a store of a suspended object leads: an entry in its status counts only if the store leads there.
func (r *reconciler) locate(ctx context.Context, p *pass, id storeID) error {
	dests, _, err := p.stores.destinations(ctx, p.ps, p.known(), []storeID{id}, &id)
	if err != nil || len(dests) == 0 || dests[0].refusal != nil {
		return err
	}
	d := &dests[0]
	return kit.Wait(ctx, d.places(p.ps.Namespace), func(ctx context.Context) error {
		loader := r.runner.pool.Loader(d.route.Kind, d.store, resolve.CredentialsNamespace(d.store, p.ps.Namespace))
		if c, err := connect(ctx, loader, r.runner.timeout); err == nil {
			t := &task{obj: p.obj, to: d, pusher: push.Pusher{Store: c}}
			if t.location, err = p.obj.locate(ctx, d, p.ps.Namespace, c); err == nil { // Otherwise the place stays unknown.
				t.learn(ctx)
			}
		}
		p.obj.stores.with(id, func(s *storeState) { s.asked = false })
		return nil
	})
}

// pushAt returns the task that pushes to a store, or the result if there is nothing to push; neither if nothing is due.
func pushAt(ctx context.Context, p *pass, id storeID) (*task, *result, error) {
	plan, err := push.NewPlan(&p.ps.Spec)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // The walk over the object reports it.
	}
	if p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete && p.dry(p.ps) == notDry && !p.obj.held.Load() {
		return nil, nil, nil // The spec has just changed. The walk over the object adds the finalizer first, and starts again.
	}
	p.plan = plan
	dests, _, err := p.stores.destinations(ctx, p.ps, p.known(), []storeID{id}, &id)
	if err != nil || len(dests) == 0 {
		return nil, nil, err
	}
	d := &dests[0]
	if d.refusal != nil { // The store is refused since the walk over the object. That one reports it, and no event of the store wakes it.
		p.wake(p.key)
		return nil, nil, nil
	}
	from, seen, err := p.followSources(ctx)
	if err != nil {
		return nil, nil, err
	}
	if due, _, _ := p.due(d, seen.refs); !due {
		return nil, nil, nil
	}
	read := time.Now()
	is, held, err := from.load(ctx, seen.refs)
	if err != nil {
		refused, err := unread(err, p.attempt(d, seen.refs))
		return nil, refused, err
	}
	p.values = held
	a := p.attempt(d, is.refs)
	jobs, refused, err := p.jobs(ctx, d, is.secrets, a)
	if err != nil || refused != nil {
		return nil, refused, err
	}
	if may, err := p.stores.mayRun(ctx, p.ps, id, jobs); err != nil || !may {
		return nil, nil, err
	}
	p.obj.stores.with(id, func(s *storeState) { s.asked = false })
	t := p.task(d, jobs, a)
	t.unmatched = p.plan.Unmatched(d.ref(), sourcesOf(is.secrets))
	t.generated, t.pusher.Current = is.generated, p.unchanged(from, is.refs, read)
	t.origins, err = p.stores.origins(ctx, d, p.ps.Namespace, is.secrets)
	return t, nil, err
}

// unread returns the result of an attempt whose sources a user must correct, or another error of reading them.
func unread(err error, a kit.Attempt) (*result, error) {
	var known *provider.Error
	if errors.Is(err, errNotMade) || !errors.As(err, &known) {
		return nil, err
	}
	return refusedBy("", known, a), nil
}

// refusedBy returns the result of an attempt for which there is nothing to push. store is the name of the store; empty if the
// cause is the same at all stores.
func refusedBy(store string, err error, a kit.Attempt) *result {
	v := failure(store, err)
	return &result{attempted: attempted{Attempt: a}, refused: &v}
}

// removalAt returns the task that removes what was created at a store; nil if nothing is due.
func removalAt(ctx context.Context, p *pass, id storeID) (*task, error) {
	d, err := toRemove(ctx, p, id)
	if err != nil || d == nil {
		return nil, err
	}
	jobs, err := d.removals()
	if err != nil {
		return nil, nil //nolint:nilerr // The walk over the object reports it.
	}
	var wait time.Duration
	first := false
	p.obj.stores.with(id, func(s *storeState) { wait, first = s.begin(removalOf(p.ps), p.now), s.done == 0 })
	if wait > 0 {
		return nil, nil
	}
	if first {
		if jobs, err = unrecorded(ctx, p, d, jobs); err != nil {
			return nil, err
		}
	}
	return p.task(d, jobs, removalOf(p.ps)), nil
}

// task returns the task that runs jobs at one store.
func (p *pass) task(d *destination, jobs []job, a kit.Attempt) *task {
	t := &task{obj: p.obj, namespace: p.ps.Namespace, to: d, jobs: jobs, attempted: attempted{Attempt: a, started: p.now, dry: p.dry(p.ps)}}
	var late bool
	p.obj.stores.with(idOf(d.status), func(s *storeState) { late = s.late(p.now, p.runner.waits) || t.dry != notDry })
	t.pusher = push.Pusher{DryRun: t.dry != notDry, Others: &others{reconciler: p.reconciler, self: p.obj, unit: unit{p.key, idOf(d.status)}, late: late, complete: t.dry != notDry || p.runner.waits == 0, successors: map[string]unit{}, holders: map[string]use{}}, Policies: push.Policies{
		Update: p.ps.Spec.UpdatePolicy, Adoption: p.ps.Spec.AdoptionPolicy, Mark: string(p.ps.UID),
		Deletes:         p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete,
		InputsUnchanged: p.ps.Spec.Template != nil && a.Generation == d.status.ObservedGeneration && a.Sources == d.status.ObservedSource,
	}}
	return t
}
