package externalsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// manyMisses is the number of passes in a row after which the status reports that parts do not hold what the cache
// shows.
const manyMisses = 6

// Reconciler keeps the Secrets of the ExternalSecrets that this operator claims in sync. A walk has four steps:
// gather loads everything from caches, decide returns what to do, fetch asks the stores, apply writes the target.
type Reconciler struct {
	cache client.Reader
	// live does not read from a cache.
	live      client.Client
	referrers *referrers.Referrers
	pool      *dispatch.Pool
	watches   *watch.Watches
	events    events.EventRecorder
	ledger    *metrics.Ledger
	// enqueue adds an object to the work queue.
	enqueue func(key types.NamespacedName, priority int)
	opts    Options

	objects *objects
	writer  *target.Writer
	started time.Time
	// overtaken reports whether the Secret has changed since the provider was asked. Tests replace it.
	overtaken func(writeDecision, *answer) bool
}

// newReconciler returns a Reconciler that remembers no objects. with holds its clients, services and options.
func newReconciler(with Reconciler) *Reconciler {
	with.objects, with.started, with.overtaken = &objects{}, with.opts.Now(), overtaken
	with.writer = target.NewWriter(with.live, with.opts.Audit)
	return &with
}

// Reconcile is one walk over an ExternalSecret.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	s, replaces, err := r.load(ctx, req.NamespacedName)
	if replaces {
		removeWatches(r.watches, req.NamespacedName) // They are those of the previous object of this name.
	}
	switch {
	case errors.Is(err, errMoved):
		return queue.Soon(), nil
	case err != nil:
		return reconcile.Result{}, err
	case s == nil:
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	ctx, span := trace.Start(ctx, trace.Reconcile, trace.Of("ExternalSecret", s.es)...)
	defer func() { span.End(trace.Result(err)) }()
	o, err := r.pass(ctx, s)
	if err == nil {
		if o.verdict != nil {
			span.Note("directsecrets.reason", o.verdict.Reason)
		}
		res, err = r.end(ctx, s, o)
	}
	account(r.objects, r.ledger, s)
	return res, err
}

// pass runs the steps in order, until one of them ends the pass.
func (r *Reconciler) pass(ctx context.Context, s *subject) (*outcome, error) {
	o, err := r.checkPreconditions(ctx, s)
	if err != nil || o != nil {
		return o, err
	}
	decision, o, err := r.prepareTarget(ctx, s)
	switch {
	case err != nil || o != nil:
		return o, err
	case decision.Action == policy.Read:
		if s.state, o = lost(s); o != nil {
			return o, nil
		}
		return r.fetch(ctx, s)
	case decision.Action == policy.Own:
		return &outcome{soon: true}, nil // Another client keeps changing it back.
	}
	if err := r.releaseOldTarget(ctx, s); err != nil {
		return failed(err)
	}
	o, canPrune := idle(s)
	if canPrune {
		err = prune(ctx, r.live, r.referrers.Contributor(), s)
		o.wait = pause(s)
	}
	return o, err
}

// checkPreconditions checks what does not depend on the target: whether the object is suspended, the spec is valid, and the
// namespace is allowed to use the stores. Then it loads the template sources and the contributions of other
// operators.
func (r *Reconciler) checkPreconditions(ctx context.Context, s *subject) (o *outcome, err error) {
	if s.es.Spec.Suspend {
		return withVerdict(status.Verdict{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: nothing is read or written"}, 0), nil
	}
	if s.plan, err = render.NewPlan(s.es); err != nil {
		return withVerdict(status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error()), 0), nil
	}
	if s.es.Spec.Target.Kind == v1alpha1.TargetConfigMap && !s.opts.ConfigMapTargets {
		return withVerdict(status.Stalled(v1alpha1.ReasonInvalidSpec, "spec.target.kind: this operator writes no ConfigMaps; in the chart, set configMapTargets.enabled, or write a Secret"), 0), nil
	}
	if s.es.Spec.Target.Restart != nil && !s.opts.WorkloadRestarts {
		return withVerdict(status.Stalled(v1alpha1.ReasonInvalidSpec, "spec.target.restart: this operator restarts no workloads; in the chart, set workloadRestarts.enabled, or remove restart"), 0), nil
	}
	s.stores, err = fetch.Resolve(ctx, r.referrers, s.es, s.plan, true)
	switch {
	case kerrors.IsNotFound(errors.Cause(err)):
		return &outcome{soon: true}, nil // The cache does not have the namespace yet.
	case err != nil:
		return nil, err
	}
	if refused := s.stores.Admit(); refused != nil {
		return withVerdict(*refused, hold(s)), nil
	}
	if err := r.followTemplates(ctx, s); err != nil {
		return unread(err)
	}
	return nil, loadParts(ctx, r.cache, r.live, s)
}

// unread returns the outcome for a template source that cannot be read.
func unread(err error) (*outcome, error) {
	var invalid *provider.Error
	if errors.As(err, &invalid) {
		return retry(status.NotSynced(err), 0), nil
	}
	if kerrors.IsForbidden(err) {
		return retry(status.Failed(v1alpha1.ReasonForbidden, "spec.target.template.templateFrom: "+err.Error()), 0), nil
	}
	return nil, err
}

// prepareTarget decides what to do with the target, after updating its ownerReference and mark if necessary. It returns an
// outcome if the pass ends there.
func (r *Reconciler) prepareTarget(ctx context.Context, s *subject) (policy.Decision, *outcome, error) {
	decision, version, err := r.decideFromCache(ctx, s)
	if err == nil && decision.Action == policy.Own {
		if s.state.lost {
			if o := revertBackoff(s); o != nil {
				return decision, o, nil
			}
		}
		if err = r.own(ctx, s); err == nil {
			decision, version, err = r.decideFromCache(ctx, s)
		}
		if err != nil {
			o, err := failed(err)
			return decision, o, err
		}
	}
	if err != nil {
		return decision, nil, err
	}
	return decision, stopped(decision, s.plan.Target, version), nil
}

// decideFromCache decides from the caches, and from a live read where the caches may be behind. It also returns the
// resourceVersion of the target.
func (r *Reconciler) decideFromCache(ctx context.Context, s *subject) (decision policy.Decision, version string, err error) {
	for _, read := range []func() (metav1.Object, error){
		func() (metav1.Object, error) { return cached(ctx, r.cache, s) },
		func() (metav1.Object, error) { return peek(ctx, r.live, s) },
	} {
		secret, err := read()
		if err != nil {
			return policy.Decision{}, "", err
		}
		blocked := secret != nil && s.stillBlocked(ctx, secret)
		decision, s.state, s.obj.next = decide(s, s.observe(ctx, secret), blocked, r.started)
		if version = versionOf(secret); !needsLiveRead(s, secret, decision) {
			break
		}
	}
	return decision, version, nil
}

// fetch reads the stores, and applies their answers.
func (r *Reconciler) fetch(ctx context.Context, s *subject) (*outcome, error) {
	wait, changed := s.obj.attempts.Begin(s.attempt())
	switch refused := s.stores.Refused(); {
	case wait > 0:
		return rest(wait), nil
	case refused != nil:
		// An event of the store enqueues the object. It is lost if it came before the status with this verdict was
		// written, so check again after a while. That reads caches only.
		return withVerdict(*refused, hold(s)), nil
	case !s.handed.Ready:
		return waitForContributions(s), nil
	case changed && s.state.why == policy.Retry:
		s.state.why = policy.Changed
	}
	at := r.opts.Now()
	values, release, err := s.stores.Read(ctx, r.pool, fetch.Urgent(s.state.why, s.obj.attempts.Failed()), fetch.After(s.state.why, &s.obj.attempts))
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.reload(ctx, r.cache); err != nil {
		return nil, err
	}
	values, there, err := takeParts(ctx, r.live, s, values)
	switch {
	case err != nil:
		return nil, err
	case !there && s.obj.misses >= manyMisses:
		s.obj.misses = 0
		return retry(status.NotSynced(provider.NewError(provider.Unavailable, "a Secret in status.parts does not have the recorded content; waiting for its module to write it again")), 0), nil
	case !there:
		return moved(), nil
	}
	templateSources, end, err := readTemplates(ctx, r.pool.Objects, s)
	if err != nil {
		return unread(err)
	}
	defer end()
	return r.apply(ctx, s, newAnswer(ctx, s, values, templateSources, at))
}

// apply brings the target in line with an answer.
func (r *Reconciler) apply(ctx context.Context, s *subject, a *answer) (*outcome, error) {
	j, err := r.write(ctx, s, a)
	if err != nil {
		return failed(err)
	}
	if o := stopped(j.Decision, s.plan.Target, j.version); o != nil {
		return o, nil
	}
	switch kept := j.Action == policy.Keep; {
	case kept && a.err != nil:
		if provider.ClassOf(a.err) == provider.Denied {
			s.stores.Suspect(r.opts.Suspect)
		}
		return retry(status.NotSynced(a.err), provider.RetryAfter(a.err)), nil
	case kept:
		return retry(status.NotSynced(a.read.NotFound), 0), nil
	}
	if err := r.releaseOldTarget(ctx, s); err != nil {
		return failed(err)
	}
	return r.succeed(ctx, s, a, j)
}

// foundBy returns the event source that caused the read of other values; empty if something else caused it. If the object reads one
// secret, the event source that reported its last change should have reported this one, too. With sync windows, it may have.
func foundBy(s *subject) string {
	switch s.state.why {
	case policy.Notified:
		metrics.Found(metrics.Event)
		return s.obj.attempts.NotifiedBy()
	case policy.Elapsed:
		metrics.Found(metrics.Polling)
		if s.seen.EventSource != "" && len(s.seen.Sources) == 1 && s.es.Spec.SyncWindows == nil && s.obj.attempts.Notified().IsZero() {
			s.opts.Bus.Publish(context.Background(), refresh.Missed{By: s.seen.EventSource, Namespace: s.es.Namespace})
		}
	case policy.NotDue, policy.Requested, policy.First, policy.Changed, policy.Retry, policy.TargetLost:
	}
	return ""
}

// succeed records that the target matches the provider's answer, and plans the next refresh.
func (r *Reconciler) succeed(ctx context.Context, s *subject, a *answer, j writeDecision) (*outcome, error) {
	s.obj.attempts.Succeed()
	s.obj.next, s.obj.misses, s.state.hold = time.Time{}, 0, windows.Hold{}
	s.obj.blocked, s.obj.wantsOnlyBlocked = j.blocked, len(j.desired.Data) == 0
	s.obj.good = a.at
	s.obj.signals.lacks.Store(a.read.NotFound != nil)
	s.obj.signals.readAgain.Store(false)
	took(r.objects, s, a.at)
	if policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval) {
		s.obj.next = a.at.Add(policy.Jitter(s.plan.Interval, r.opts.Random()))
	}
	v := appliedVerdict(s, a.read, j)
	if failure := s.handed.Problem; failure != nil && v.Status == metav1.ConditionTrue {
		v = *failure // The present values stay, but other values were due.
	}
	if s.next.Sources = a.read.Sources; !slices.Equal(s.next.Sources, s.seen.Sources) {
		s.next.EventSource = foundBy(s)
	}
	s.next.Binding = nil
	if s.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone && !j.Absent {
		s.next.Binding = &v1alpha1.Binding{Name: s.plan.Target}
	}
	var err error
	if s.next.Difference, err = difference(ctx, r.writer, s, a); err != nil {
		return nil, err
	}
	s.next.ObservedMetadataHash = s.metadata()
	s.next.ObservedRefreshRequest = s.es.Annotations[v1alpha1.RefreshRequestAnnotation]
	conclude(s.next, s.es.Generation, v)
	refreshed(s.next, s.seen, a.at, s.obj.next)
	if err := prune(ctx, r.live, r.referrers.Contributor(), s); err != nil {
		return nil, err
	}
	o := withVerdict(v, remaining(s))
	o.waitsForTarget, o.version = len(j.blocked) > 0, j.version
	return o, nil
}
