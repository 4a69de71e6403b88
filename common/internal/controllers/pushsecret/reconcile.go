package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
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
	// wake requeues an object, and start an object at one of its stores.
	wake  func(types.NamespacedName)
	start func(u unit, priority int)
	// notified is kit.Controller.Notify for an object at one of its stores.
	notified func(u unit, source any, after time.Duration)
	ledger   *metrics.Ledger
	events   events.EventRecorder
	opts     setup.Options
}

// pass is one walk over an object, or over an object at one of its stores.
type pass struct {
	*reconciler

	ps   *v1alpha1.PushSecret
	key  types.NamespacedName
	obj  *object
	plan *push.Plan
	now  time.Time
	survey
	// drops is true if only the status entries of named stores stay.
	drops bool
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
	p := &pass{reconciler: r, ps: ps, key: req.NamespacedName, obj: obj, now: r.opts.Now()}
	p.generation, p.writesConditions = ps.Generation, r.claims(ps)
	ctx, span := trace.Start(ctx, trace.Reconcile, trace.Of("PushSecret", ps)...)
	defer func() { span.End(trace.Result(err)) }()
	if err := p.run(ctx); err != nil {
		return reconcile.Result{}, err
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

// run lets the walks over the stores of an object begin.
func (p *pass) run(ctx context.Context) error {
	if p.ps.DeletionTimestamp != nil {
		return p.finalize(ctx)
	}
	if p.ps.Spec.Suspend {
		return p.rest(ctx, status.Verdict{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: nothing is read or written"})
	}
	plan, err := push.NewPlan(&p.ps.Spec)
	if err != nil {
		return p.rest(ctx, status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error()))
	}
	p.plan = plan
	var dests []destination
	dests, p.elsewhere, err = p.stores.destinations(ctx, p.ps, p.known())
	if err != nil {
		return err
	}
	first := p.ps.Spec.StoreRefs[0]
	p.writesConditions = p.writesConditions && !slices.ContainsFunc(p.elsewhere, func(id storeID) bool { return id.kind == first.Kind && id.name == first.Name })
	if cause := p.dry(p.ps); cause != notDry { // It creates nothing, so it needs no finalizer, and keeps that of an earlier push.
		dests, err = p.stores.withUnnamed(ctx, cause, p.ps, dests, p.known())
	} else if dests, err = p.stores.withSelected(ctx, p.ps, dests, p.elsewhere, p.known()); err == nil {
		err = p.hold(ctx, p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete && len(dests) > 0)
	}
	if err != nil {
		return err
	}
	return p.visit(ctx, dests)
}

// rest ends the walk over an object that pushes nothing now.
func (p *pass) rest(ctx context.Context, v status.Verdict) error {
	p.open = nil
	p.note(p.survey)
	return p.conclude(ctx, &v)
}

// visit starts the walks over stores, and writes the status entries of those that refuse, and of those that are no longer named.
func (p *pass) visit(ctx context.Context, dests []destination) error {
	p.named = idsOf(dests)
	for i := range dests {
		d := &dests[i]
		if d.refusal == nil {
			p.open = append(p.open, idOf(d.status))
			continue
		}
		p.obj.edit(p.ps, idOf(d.status), func(s *v1alpha1.PushStoreStatus) bool {
			request, window := s.AttemptedRefreshRequest, s.NextWindowTime
			s.AttemptedRefreshRequest, s.NextWindowTime = requestOf(p.ps), nil
			if of := d.status.ObservedRefreshRequest; of == requestOf(p.ps) {
				s.ObservedRefreshRequest = of
			}
			return concludeStore(s, *d.refusal, p.ps.Generation) || request != s.AttemptedRefreshRequest || window != nil
		})
	}
	p.note(p.survey)
	p.obj.stores.retain(p.named)
	known := len(p.known())
	p.drops = true
	dropped, seen := len(p.known()) < known, p.obj.written.Later(p.ps).Status.ObservedGeneration
	if dropped || seen == p.generation || len(p.open) < len(p.named) || len(p.named) == 0 { // Otherwise a walk over a store writes it.
		if err := p.conclude(ctx, nil); err != nil {
			return err
		}
	}
	for _, id := range p.open {
		p.start(unit{p.key, id}, p.priority(id))
	}
	return nil
}

// note lets the walks over the stores know what this one has found.
func (p *pass) note(found survey) {
	if was := p.obj.survey.Load(); was == nil || !was.equal(found) {
		p.obj.survey.Store(&found)
	}
}

// priority returns that of the walk over a store.
func (p *pass) priority(id storeID) int {
	failed := false
	p.obj.stores.with(id, func(s *storeState) { failed = s.attempts.Failed() })
	for _, s := range p.known() {
		if idOf(s) == id && (failed || s.ObservedGeneration == p.generation && s.AttemptedRefreshRequest == requestOf(p.ps) && !p.obj.sources.changed()) {
			return queue.Low
		}
	}
	return queue.High
}

// The finalizer is not in the status, so this patches the object itself.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=patch

// hold adds this module's finalizer, or removes it. It must be added before anything is created that is removed with
// the object.
func (p *pass) hold(ctx context.Context, on bool) error {
	if on == controllerutil.ContainsFinalizer(p.ps, p.finalizer) {
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
	}
	if !on {
		err = client.IgnoreNotFound(err)
	}
	return errors.Wrap(err, "cannot write the finalizer")
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

// again plans the next reconcile after a time, or earlier; 0 for never.
func (p *pass) again(wait time.Duration) {
	if wait > 0 && (p.wait == 0 || wait < p.wait) {
		p.wait = wait
	}
}

// known returns the present status entries that this module writes. They must not be changed.
func (p *pass) known() []v1alpha1.PushStoreStatus {
	all, _ := p.obj.present(p.ps)
	return p.mine(all)
}

// mine returns the status entries that this module writes.
func (p *pass) mine(all []v1alpha1.PushStoreStatus) []v1alpha1.PushStoreStatus {
	return slices.DeleteFunc(slices.Clone(all), func(s v1alpha1.PushStoreStatus) bool {
		return !p.ours(s) || slices.Contains(p.elsewhere, idOf(s)) || p.drops && !slices.Contains(p.named, idOf(s))
	})
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
func (p *pass) account(conditions []metav1.Condition, stores []v1alpha1.PushStoreStatus) {
	if !p.writesConditions || p.ps.DeletionTimestamp != nil {
		p.ledger.Forget(p.key)
		return
	}
	p.ledger.Set(p.key, metricsState(p.ps, conditions, stores, &p.obj.stores, p.schedule()))
}
