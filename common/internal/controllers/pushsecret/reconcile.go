package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/recovery"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The wait after a failure doubles from the first to the last.
const firstBackoff, lastBackoff = time.Second, 2 * time.Minute

// Reconciler keeps the stores of this module in step with the Secrets that PushSecrets name. Workers
// never wait for a provider: what is pushed to a store runs by itself and brings the object back.
type Reconciler struct {
	// client is live, cache is not.
	client  client.Client
	cache   client.Reader
	events  events.EventRecorder
	log     logr.Logger
	pool    *dispatch.Pool
	watches *watch.Watches
	routes  *resolve.Resolver
	lanes   concurrency.Lanes[types.NamespacedName]
	opts    Options
	// enqueueAfter adds an object with a priority to the queue.
	enqueueAfter func(key types.NamespacedName, priority int, after time.Duration)

	mu      sync.Mutex
	objects map[types.NamespacedName]*object
	ledger  *metrics.Ledger
}

// pass is one look at one object.
type pass struct {
	*Reconciler
	ps   *v1alpha1.PushSecret
	key  types.NamespacedName
	obj  *object
	plan *push.Plan
	now  time.Time
	// stores are the entries of the status that this module writes, as they shall be.
	stores []v1alpha1.PushStoreStatus
	// follows is true if the first store is one of another class: its operator leads.
	follows bool
	// wait is the time until something is to be looked at again; 0 for never.
	wait time.Duration
}

// Reconcile looks at one object.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	defer recovery.ToError(ctx, &err)
	ps := &v1alpha1.PushSecret{}
	if err := r.cache.Get(ctx, req.NamespacedName, ps); err != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the PushSecret")
	}
	if !r.concerns(ps) {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	p := &pass{Reconciler: r, ps: ps, key: req.NamespacedName, obj: r.object(req.NamespacedName, ps.UID), now: r.opts.Now()}
	if err := p.run(ctx); err != nil {
		return reconcile.Result{}, err
	}
	p.account()
	if p.wait <= 0 {
		return reconcile.Result{}, nil
	}
	low := queue.Low
	return reconcile.Result{RequeueAfter: max(p.wait, time.Millisecond), Priority: &low}, nil
}

func (p *pass) run(ctx context.Context) error {
	if p.ps.DeletionTimestamp != nil {
		return p.finalize(ctx)
	}
	if p.ps.Spec.Suspend {
		return p.conclude(ctx, &status.Verdict{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: nothing is read or written"})
	}
	plan, err := push.NewPlan(&p.ps.Spec)
	if err != nil {
		p.stores = p.known()
		v := status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error())
		return p.conclude(ctx, &v)
	}
	p.plan = plan
	dests, err := p.destinations(ctx)
	if err != nil {
		return err
	}
	if err := p.hold(ctx, len(dests) > 0); err != nil {
		return err
	}
	p.fold(dests)
	if err := p.push(ctx, dests); err != nil {
		return err
	}
	for i := range dests {
		p.stores = append(p.stores, dests[i].status)
	}
	return p.conclude(ctx, nil)
}

// hold puts this module's finalizer on an object before anything is created for it that goes with it, and
// takes it off one that creates nothing of that kind any more.
func (p *pass) hold(ctx context.Context, writes bool) error {
	wants := p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete && writes
	if wants == controllerutil.ContainsFinalizer(p.ps, p.finalizer()) {
		return nil
	}
	return p.setFinalizer(ctx, wants)
}

// A finalizer is no status, so the object itself is patched.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=patch

func (p *pass) setFinalizer(ctx context.Context, on bool) error {
	next := p.ps.DeepCopy()
	if on {
		controllerutil.AddFinalizer(next, p.finalizer())
	} else {
		controllerutil.RemoveFinalizer(next, p.finalizer())
	}
	err := p.client.Patch(ctx, next, client.MergeFromWithOptions(p.ps, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		p.ps.Finalizers, p.ps.ResourceVersion = next.Finalizers, next.ResourceVersion
	}
	return errors.Wrap(client.IgnoreNotFound(err), "cannot write the finalizer")
}

// fold takes in what has come of the pushes that have ended. It is kept from then on, also if it cannot be
// written: what was created must not be forgotten.
func (p *pass) fold(dests []destination) {
	known := p.known()
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	for i := range dests {
		d := &dests[i]
		s := p.obj.store(idOf(d.status))
		if s.result == nil {
			continue
		}
		res := s.result
		s.result = nil
		p.foldOne(d, s, res)
		p.obj.keep(known, d.status)
	}
}

func (p *pass) foldOne(d *destination, s *storeState, res *result) {
	d.status.Entries = res.entries
	for _, e := range res.left {
		p.tell("LeftBehind", "%s: %s stays, because somebody else has changed it since this object created it", d.name(), place(e.RemoteKey, e.Property))
	}
	if s.broken = res.err != nil && provider.ClassOf(res.err) == provider.Invalid; res.err != nil {
		s.failures++
		s.until = p.now.Add(max(backoff(s.failures, p.opts.Random()), res.retryAfter))
		d.conclude(failure(d.name(), res.err), res.generation)
		if provider.ClassOf(res.err) == provider.Denied {
			p.opts.Suspect(d.route.Kind, d.key(p.ps.Namespace))
		}
		return
	}
	s.failures, s.until, s.next, s.good = 0, time.Time{}, time.Time{}, res.at
	if p.plan != nil && p.plan.Interval > 0 {
		s.next = res.at.Add(policy.Jitter(p.plan.Interval, p.opts.Random()))
	}
	before := d.status.DeepCopy()
	d.status.ObservedGeneration, d.status.ObservedRefreshRequest, d.status.ObservedSource = res.generation, res.request, res.source
	if len(res.exists) == 0 { // What was left alone holds what it held before.
		d.status.ObservedPart = res.generated
	}
	d.conclude(success(res), res.generation)
	refreshed(&d.status, before, res, s.next)
}

func backoff(failures int, random float64) time.Duration {
	return policy.Jitter(min(firstBackoff<<min(failures-1, 10), lastBackoff), random)
}

// push starts what is due.
func (p *pass) push(ctx context.Context, dests []destination) error {
	seen, err := p.versions(ctx)
	if err != nil {
		return err
	}
	var due []*destination
	for i := range dests {
		if d := &dests[i]; d.refusal != nil {
			d.conclude(*d.refusal, p.ps.Generation)
		} else if p.due(d, d.source(seen.hash)) {
			due = append(due, d)
		}
	}
	if len(due) == 0 {
		return nil
	}
	sources, refs, err := p.read(ctx, seen)
	if errors.Is(err, errNotMade) {
		p.again(newborn) // The part brings the object back, once the status records it.
		return nil
	}
	if err != nil {
		var known *provider.Error
		if !errors.As(err, &known) {
			return err
		}
		for _, d := range due {
			d.conclude(failure("", known), p.ps.Generation) // Its Secret brings the object back.
		}
		p.again(lastBackoff)
		return nil
	}
	for _, d := range due {
		p.start(ctx, d, sources, attempt{
			p.ps.Generation, p.ps.Annotations[v1alpha1.RefreshRequestAnnotation], d.source(hashOf(refs)),
		}, p.generatedVersion(refs))
	}
	return nil
}

// due reports whether a store is to be compared now. It notes when to look again.
func (p *pass) due(d *destination, source string) bool {
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	s := p.obj.store(idOf(d.status))
	request := p.ps.Annotations[v1alpha1.RefreshRequestAnnotation]
	a := attempt{p.ps.Generation, request, source}
	if a != s.attempt {
		s.attempt, s.failures, s.until = a, 0, time.Time{}
	}
	switch wait := s.until.Sub(p.now); {
	case s.running:
		return false
	case wait > 0:
		p.again(wait)
		return false
	case d.status.ObservedGeneration != p.ps.Generation, d.status.ObservedRefreshRequest != request,
		d.status.ObservedSource != source, !d.synced():
		return true
	case p.plan.Interval == 0:
		return false
	}
	if s.next.IsZero() {
		s.next = policy.Spread(p.now, p.plan.Interval, p.opts.Random())
		if n := d.status.NextRefreshTime; n != nil && n.After(p.now) {
			s.next = n.Time
		}
	}
	if wait := s.next.Sub(p.now); wait > 0 {
		p.again(wait)
		return false
	}
	return true
}

// account notes how the object stands after a pass. The module that writes its Ready condition has it in its books.
func (p *pass) account() {
	if !p.leads(p.ps) || p.follows || p.ps.DeletionTimestamp != nil {
		p.ledger.Forget(p.key)
		return
	}
	s := metrics.Of(p.shown().Status.Conditions, p.ps.CreationTimestamp.Time)
	if p.plan != nil && p.plan.Interval > 0 {
		s.Interval, s.Good = p.plan.Interval, p.now
		p.obj.mu.Lock()
		for _, of := range p.stores {
			good := p.obj.store(idOf(of)).good
			if t := of.RefreshTime; t != nil && t.After(good) {
				good = t.Time // A process before this one wrote it.
			}
			if good.Before(s.Good) {
				s.Good = good
			}
		}
		p.obj.mu.Unlock()
		if s.Good.IsZero() {
			s.Good = p.ps.CreationTimestamp.Time
		}
	}
	p.ledger.Set(p.key, s)
}

// again has the object looked at after a time, or earlier.
func (p *pass) again(wait time.Duration) {
	if p.wait == 0 || wait < p.wait {
		p.wait = wait
	}
}

// known returns the entries of the status that this module writes.
func (p *pass) known() []v1alpha1.PushStoreStatus {
	var out []v1alpha1.PushStoreStatus
	for _, s := range p.latest() {
		if p.ours(s) {
			out = append(out, s)
		}
	}
	return out
}

// latest returns all entries of the status: those of this module as this process knows them, which the cache
// may not show yet.
func (p *pass) latest() []v1alpha1.PushStoreStatus {
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	out := p.foreign(p.ps)
	if p.obj.entries != nil {
		for _, s := range p.obj.entries {
			out = append(out, *s.DeepCopy())
		}
		slices.SortFunc(out, byID)
		return out
	}
	for _, s := range p.ps.Status.Stores {
		if p.ours(s) {
			out = append(out, *s.DeepCopy())
		}
	}
	return out
}

// tell makes an Event. In a namespace that terminates there are none, so it is logged, too.
func (p *pass) tell(reason, format string, args ...any) {
	p.log.Info(fmt.Sprintf(format, args...), "reason", reason, "PushSecret", p.key.String())
	p.events.Eventf(p.ps, nil, corev1.EventTypeWarning, reason, "Push", "%s", status.Cut(fmt.Sprintf(format, args...), maxNote))
}
