package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// reconciler keeps the stores of this module in sync with the Secrets that PushSecrets name. The walk over an object
// decides which of its stores are due, and writes the status. Each store has a walk of its own, so that a store that
// hangs delays no other; its end requeues the object.
type reconciler struct {
	claim

	// client reads live; cache reads from the informers.
	client client.Client
	cache  client.Reader
	memory *memory
	// peers are the objects that removals ask for: memory.
	peers  *memory
	stores storeReader
	follow follower
	runner *runner
	// wake requeues an object.
	wake func(types.NamespacedName)
	units
	ledger *metrics.Ledger
	events events.EventRecorder
	opts   setup.Options
}

// units are the walks over objects at one of their stores.
type units struct {
	// start requeues a unit.
	start func(u unit, priority int)
	// crowded reports whether only the share of its own namespace holds a unit back.
	crowded func(unit) bool
	// notified is kit.Controller.Notify.
	notified func(u unit, source any, after time.Duration)
}

// pass is one walk over an object, or over an object at one of its stores.
type pass struct {
	*reconciler

	ps   *v1alpha1.PushSecret
	key  types.NamespacedName
	obj  *object
	plan *push.Plan
	now  time.Time
	// writesConditions is true if this operator writes the conditions of the object. It does not if the first store has another
	// class.
	writesConditions bool
	// elsewhere are the stores that an operator of another class serves. It writes their status entries.
	elsewhere []storeID
	// statuses are the wanted status entries of this module.
	statuses []v1alpha1.PushStoreStatus
	// wait is the time until the next reconcile; 0 for never.
	wait time.Duration
	// values are the room for what is pushed; nil if nothing was read.
	values *room.Held
}

// Reconcile is one walk over an object.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	ps := &v1alpha1.PushSecret{}
	if err := r.cache.Get(ctx, req.NamespacedName, ps); err != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the PushSecret")
	}
	if !r.concerns(ps) {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	obj, _ := r.memory.Get(req.NamespacedName, ps.UID)
	if obj.seen.CompareAndSwap(nil, ps) {
		obj.reindex()
	}
	p := &pass{
		reconciler: r, ps: ps, key: req.NamespacedName, obj: obj, now: r.opts.Now(),
		writesConditions: r.claims(ps),
	}
	ctx, span := trace.Start(ctx, trace.Reconcile, trace.Of("PushSecret", ps)...)
	defer func() { span.End(trace.Result(err)) }()
	if err := p.run(ctx); err != nil {
		return reconcile.Result{}, err
	}
	obj.walked.Store(ps.Generation)
	p.account()
	if p.wait <= 0 {
		return reconcile.Result{}, nil
	}
	return queue.Later(p.wait), nil
}

// warn emits a warning event.
func (r *reconciler) warn(ps *v1alpha1.PushSecret, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.events.Eventf(ps, nil, corev1.EventTypeWarning, reason, "Push", "%s", status.Cut(message, status.MaxNote))
}

func (r *reconciler) forget(key types.NamespacedName) {
	r.memory.Forget(key)
	r.ledger.Forget(key)
	r.follow.forget(key)
}

// run brings an object in sync as far as that is possible without waiting.
func (p *pass) run(ctx context.Context) error {
	if p.ps.DeletionTimestamp != nil {
		return p.finalize(ctx)
	}
	if p.ps.Spec.Suspend {
		return p.conclude(ctx, concluded(p), &status.Verdict{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: nothing is read or written"})
	}
	plan, err := push.NewPlan(&p.ps.Spec)
	if err != nil {
		v := status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error())
		return p.conclude(ctx, concluded(p), &v)
	}
	p.plan = plan
	dests, elsewhere, err := p.stores.destinations(ctx, p.ps, p.known(), p.obj.stores.open(), nil)
	if err != nil {
		return err
	}
	p.elsewhere = elsewhere
	first := p.ps.Spec.StoreRefs[0]
	p.writesConditions = p.writesConditions && !slices.ContainsFunc(elsewhere, func(id storeID) bool { return id.kind == first.Kind && id.name == first.Name })
	if cause := p.dry(p.ps); cause != notDry { // It creates nothing, so it needs no finalizer, and keeps that of an earlier push.
		dests, err = p.stores.withUnnamed(ctx, cause, p.ps, dests, p.known())
	} else if dests, err = p.stores.withSelected(ctx, p.ps, dests, elsewhere, p.known()); err == nil {
		err = p.hold(ctx, p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete && len(dests) > 0)
	}
	if err != nil {
		return err
	}
	p.fold(dests)
	p.obj.stores.retain(idsOf(dests))
	starts, err := p.push(ctx, dests)
	if err != nil {
		return err
	}
	// The status must list a store before anything is created there: otherwise a crash could make that unknown.
	if err := p.conclude(ctx, statusesOf(dests), nil); err != nil {
		return err
	}
	for _, start := range starts { // A removal at one of the stores waits for the others.
		start()
	}
	return nil
}

// concluded returns the status entries of an object that pushes nothing now, with the results of pushes that have ended.
func concluded(p *pass) []v1alpha1.PushStoreStatus {
	var dests []destination
	for _, s := range p.known() {
		dests = append(dests, destination{status: s})
	}
	p.fold(dests)
	p.obj.stores.rest()
	return statusesOf(dests)
}

// The finalizer is not in the status, so this patches the object itself.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=patch

// hold adds this module's finalizer, or removes it. It must be added before anything is created that is removed with
// the object.
func (p *pass) hold(ctx context.Context, on bool) error {
	if on == controllerutil.ContainsFinalizer(p.ps, p.finalizer) {
		p.obj.held.Store(on)
		return nil
	}
	next := p.ps.DeepCopy()
	if on {
		controllerutil.AddFinalizer(next, p.finalizer)
	} else {
		controllerutil.RemoveFinalizer(next, p.finalizer)
	}
	err := p.client.Patch(ctx, next, client.MergeFromWithOptions(p.ps, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		p.ps.Finalizers, p.ps.ResourceVersion = next.Finalizers, next.ResourceVersion
		p.obj.held.Store(on)
	}
	if !on {
		err = client.IgnoreNotFound(err)
	}
	return errors.Wrap(err, "cannot write the finalizer")
}

// fold takes the results of the pushes that have ended. They are kept in memory even if the status cannot be written,
// because a created secret must not be forgotten.
func (p *pass) fold(dests []destination) {
	sch := p.schedule()
	for _, id := range p.obj.stores.open() { // The object may have ceased to name the store during the push.
		if !slices.Contains(idsOf(dests), id) {
			d := destination{status: v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}}
			var res *result
			p.obj.stores.with(id, func(s *storeState) { res = s.take(sch) })
			report(p, &d, res)
		}
	}
	for i := range dests {
		d := &dests[i]
		var res *result
		var next time.Time
		p.obj.stores.with(idOf(d.status), func(s *storeState) { res, next = s.take(sch), s.next })
		if res == nil {
			continue
		}
		d.take(res, next)
		if res.old {
			p.obj.sources.stale()
		}
		d.status.Entries = nil
		for _, s := range p.known() {
			if idOf(s) == idOf(d.status) {
				d.status.Entries = s.Entries
			}
		}
		report(p, d, res)
		if res.err != nil && provider.ClassOf(res.err) == provider.Denied && d.store != nil {
			p.opts.Suspect(d.route.Kind, d.key(p.ps.Namespace))
		}
	}
}

// report emits events for what a push leaves behind; res is nil for none.
func report(p *pass, d *destination, res *result) {
	if res == nil {
		return
	}
	if len(res.released) > 0 {
		p.warn(p.ps, "Released", "%s: released: %s", d.name(), strings.Join(res.released, ", "))
	}
	for why, entries := range res.stays {
		for _, e := range entries {
			p.warn(p.ps, "LeftBehind", "%s: %s was not deleted, because %s", d.name(), place(e.RemoteKey, e.Property), why)
		}
	}
}

// push returns the starts of the pushes that are due.
func (p *pass) push(ctx context.Context, dests []destination) (starts []func(), err error) {
	_, seen, err := p.followSources(ctx)
	if err != nil {
		return nil, err
	}
	busy := p.obj.stores.open()
	for i := range dests {
		d := &dests[i]
		id := idOf(d.status)
		p.obj.stores.with(id, func(s *storeState) { s.wanted = p.ps.Generation })
		switch {
		case d.refusal != nil:
			d.conclude(*d.refusal, p.ps.Generation)
			d.status.AttemptedRefreshRequest, d.status.NextWindowTime = requestOf(p.ps), nil
			continue
		case slices.Contains(busy, id):
			continue
		}
		due, priority, wait := p.due(d, seen.refs)
		p.again(wait)
		if due {
			starts = append(starts, func() { p.start(unit{p.key, id}, priority) })
		}
	}
	return starts, nil
}

// followSources returns the sources of the object and their versions, and watches them.
func (p *pass) followSources(ctx context.Context) (*sources, *versions, error) {
	selected, err := selectionOf(p.client, p.runner.pool.Objects, p.ps, &p.obj.sources, p.now)
	if err != nil {
		return nil, nil, err
	}
	from := &sources{client: p.client, objects: p.runner.pool.Objects, object: p.ps, templateRefs: p.plan.TemplateRefs, selection: selected}
	seen, err := p.follow.versions(ctx, from, &p.obj.sources)
	return from, seen, err
}

// attempt returns the attempt of a push to a store.
func (p *pass) attempt(d *destination, is refs) kit.Attempt {
	return kit.AttemptOf(p.ps, "", d.source(is.hash()))
}

// due reports whether a store must be compared now and with which priority, and otherwise how long to wait; 0 for never.
func (p *pass) due(d *destination, is refs) (due bool, priority int, wait time.Duration) {
	a, sch := p.attempt(d, is), p.schedule()
	p.obj.stores.with(idOf(d.status), func(s *storeState) {
		inSync := d.inSync(a)
		if cause := p.dry(p.ps); cause != notDry {
			inSync = d.compared(cause, a, s.compared)
		}
		if inSync && !s.asked {
			s.done = max(s.done, a.Generation)
		}
		due, wait = d.due(s, a, inSync, sch)
		if priority = queue.High; inSync || s.attempts.Failed() {
			priority = queue.Low
		}
	})
	return due, priority, wait
}

// again plans the next reconcile after a time, or earlier; 0 for never.
func (p *pass) again(wait time.Duration) {
	if wait > 0 && (p.wait == 0 || wait < p.wait) {
		p.wait = wait
	}
}

// known returns the status entries that this module writes.
func (p *pass) known() []v1alpha1.PushStoreStatus {
	return slices.DeleteFunc(p.obj.entries.over(p.entries(p.obj.written.Later(p.ps))), func(s v1alpha1.PushStoreStatus) bool { return slices.Contains(p.elsewhere, idOf(s)) })
}

// schedule returns the input for the times of this reconcile.
func (p *pass) schedule() schedule {
	s := schedule{now: p.now, random: p.opts.Random}
	if p.plan != nil {
		s.interval, s.windows = p.plan.Interval, p.plan.Windows
	}
	return s
}

// account records the state of the object for the metrics. Only the module that writes its Ready condition does so.
func (p *pass) account() {
	if !p.writesConditions || p.ps.DeletionTimestamp != nil {
		p.ledger.Forget(p.key)
		return
	}
	shown := p.obj.written.Later(p.ps)
	p.ledger.Set(p.key, metricsState(p.ps, shown.Status.Conditions, p.statuses, &p.obj.stores, p.schedule()))
}
