package externalsecret

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// manyMisses is the number of passes in a row after which the status reports that parts do not hold what the cache
// shows.
const manyMisses = 6

// Reconciler keeps the Secrets of the ExternalSecrets that this operator claims in sync. A walk has four steps:
// gather loads everything from caches, decide returns what to do, fetch asks the stores, apply writes the target.
type Reconciler struct {
	gatherer gatherer
	decider  decider
	pool     *dispatch.Pool
	applier  applier
	cleaner  cleaner
	reporter reporter
	// suspect is called with each store that may have refused a read.
	suspect func(k provider.Kind, s types.NamespacedName)
}

// Reconcile is one walk over an ExternalSecret.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	s, anew, err := r.gatherer.subject(ctx, req.NamespacedName)
	if anew {
		// Its watches are those of the previous object of this name.
		r.reporter.watches.Remove(watchOwner(req.NamespacedName))
		r.reporter.watches.Remove(templateOwner(req.NamespacedName))
	}
	switch {
	case errors.Is(err, errMoved):
		return queue.Soon(), nil
	case err != nil:
		return reconcile.Result{}, err
	case s == nil:
		r.reporter.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	ctx, span := trace.Start(ctx, trace.Reconcile, trace.Of("ExternalSecret", s.es)...)
	defer func() { span.End(trace.Result(err)) }()
	o, err := r.pass(ctx, s)
	if err == nil {
		if o.verdict != nil {
			span.Note("directsecrets.reason", o.verdict.Reason)
		}
		res, err = r.reporter.end(ctx, s, o)
	}
	r.reporter.account(s)
	return res, err
}

// pass runs the steps in order, until one of them ends the pass.
func (r *Reconciler) pass(ctx context.Context, s *subject) (*outcome, error) {
	o, err := r.checkPreconditions(ctx, s)
	if err != nil || o != nil {
		return o, err
	}
	decision, o, err := r.settle(ctx, s)
	switch {
	case err != nil || o != nil:
		return o, err
	case decision.Action == policy.Read:
		if s.stance, o = r.decider.lost(s); o != nil {
			return o, nil
		}
		return r.fetch(ctx, s)
	case decision.Action == policy.Own:
		return &outcome{soon: true}, nil // Another client keeps changing it back.
	}
	if err := r.cleaner.releaseOldTarget(ctx, s); err != nil {
		return failed(err)
	}
	o, settled := r.decider.idle(s)
	if settled {
		err = r.cleaner.prune(ctx, s)
		o.wait = r.decider.pause(s)
	}
	return o, err
}

// checkPreconditions checks what does not depend on the target: whether the object is suspended, the spec is valid, and the
// namespace is allowed to use the stores. Then it loads the template sources and the contributions of other
// operators.
func (r *Reconciler) checkPreconditions(ctx context.Context, s *subject) (o *outcome, err error) {
	if s.es.Spec.Suspend {
		return say(verdict{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: nothing is read or written"}, 0), nil
	}
	if s.plan, err = render.NewPlan(s.es); err != nil {
		return say(status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error()), 0), nil
	}
	switch err := r.gatherer.stores(ctx, s); {
	case errors.Is(err, errMoved):
		return &outcome{soon: true}, nil
	case err != nil:
		return nil, err
	}
	if refused := s.stores.Admit(); refused != nil {
		return say(*refused, r.decider.hold()), nil
	}
	if err := r.gatherer.templates.follow(ctx, s.es, s.plan.Texts, &s.obj.templates); err != nil {
		return unread(err)
	}
	return nil, r.gatherer.parts.loadParts(ctx, s)
}

// unread returns the outcome for a template source that cannot be read.
func unread(err error) (*outcome, error) {
	if kerrors.IsForbidden(err) {
		return retry(status.Failed(v1alpha1.ReasonForbidden, "spec.target.template.templateFrom: "+err.Error()), 0), nil
	}
	return nil, err
}

// settle decides what to do with the target, after updating its ownerReference and mark if necessary. It returns an
// outcome if the pass ends there.
func (r *Reconciler) settle(ctx context.Context, s *subject) (policy.Decision, *outcome, error) {
	decision, v, err := r.look(ctx, s)
	if err == nil && decision.Action == policy.Own {
		// If this generation has already set ownerReference and mark, another client has changed them.
		s.stance.lost = v.target.Mark.Generation == s.es.Generation
		if s.stance.lost {
			if o := r.decider.revertBackoff(s); o != nil {
				return decision, o, nil
			}
		}
		if err = r.applier.own(ctx, s); err == nil {
			s.stance.lost = false
			decision, v, err = r.look(ctx, s)
		}
		if err != nil {
			o, err := failed(err)
			return decision, o, err
		}
	}
	if err != nil {
		return decision, nil, err
	}
	return decision, stopped(decision, s.plan.Target, versionOf(v.secret)), nil
}

// look decides from the caches, and from a live read where the caches may be behind.
func (r *Reconciler) look(ctx context.Context, s *subject) (decision policy.Decision, v view, err error) {
	for _, read := range []func(context.Context, *subject) (metav1.Object, error){r.gatherer.cached, r.gatherer.peek} {
		secret, err := read(ctx, s)
		if err != nil {
			return policy.Decision{}, view{}, err
		}
		v = s.view(ctx, secret)
		if decision, s.stance, s.obj.next = r.decider.decide(s, v); !doubtful(s, v, decision) {
			break
		}
	}
	return decision, v, nil
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
		return say(*refused, r.decider.hold()), nil
	case !s.handed.Ready:
		return r.decider.awaitParts(s), nil
	case changed && s.stance.why == policy.Retry:
		s.stance.why = policy.Changed
	}
	at := r.applier.now()
	values, release, err := s.stores.Read(ctx, r.pool, fetch.Urgency(s.stance.why, s.obj.attempts.Failed()))
	if err != nil {
		return nil, err
	}
	defer release()
	if err := r.gatherer.again(ctx, s); err != nil {
		return nil, err
	}
	values, there, err := r.gatherer.parts.take(ctx, s, values)
	switch {
	case err != nil:
		return nil, err
	case !there && s.obj.misses >= manyMisses:
		s.obj.misses = 0
		return retry(status.NotSynced(provider.NewError(provider.Unavailable, "a Secret in status.parts does not have the recorded content; waiting for its module to write it again")), 0), nil
	case !there:
		return moved(), nil
	}
	texts, err := r.gatherer.templates.read(ctx, s.es, s.plan.Texts, &s.obj.templates)
	if err != nil {
		return unread(err)
	}
	return r.apply(ctx, s, newAnswer(s, values, texts, at))
}

// apply brings the target in line with an answer.
func (r *Reconciler) apply(ctx context.Context, s *subject, a *answer) (*outcome, error) {
	e, err := r.applier.apply(ctx, s, a)
	if err == nil && !e.kept {
		err = r.cleaner.releaseOldTarget(ctx, s)
	}
	switch {
	case err != nil:
		return failed(err)
	case e.kept && a.err != nil:
		if provider.ClassOf(a.err) == provider.Denied {
			s.stores.Suspect(r.suspect)
		}
		return retry(status.NotSynced(a.err), provider.RetryAfter(a.err)), nil
	case e.kept:
		return retry(status.NotSynced(a.read.Gone), 0), nil
	}
	return r.succeed(ctx, s, a, e)
}

// succeed records that the target matches the provider's answer, and plans the next refresh.
func (r *Reconciler) succeed(ctx context.Context, s *subject, a *answer, e effect) (*outcome, error) {
	s.obj.attempts.Succeed()
	s.obj.next, s.obj.yields, s.obj.misses = time.Time{}, e.yields, 0
	s.obj.good = a.at
	s.obj.signals.lacks.Store(a.read.Gone != nil)
	s.obj.signals.mended.Store(false)
	r.reporter.took(s, a.at)
	if policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval) {
		s.obj.next = a.at.Add(policy.Jitter(s.plan.Interval, r.decider.random()))
	}
	v := judged(s, a.read, e)
	if failure := s.handed.Problem; failure != nil && v.Status == metav1.ConditionTrue {
		v = *failure // The present values stay, but other values were due.
	}
	s.next.Sources = a.read.Sources
	s.next.Binding = nil
	if s.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone && !e.absent {
		s.next.Binding = &v1alpha1.Binding{Name: s.plan.Target}
	}
	var err error
	if s.next.Difference, err = r.applier.difference(ctx, s, a); err != nil {
		return nil, err
	}
	s.next.ObservedMetadataHash = s.metadata()
	s.next.ObservedRefreshRequest = s.es.Annotations[v1alpha1.RefreshRequestAnnotation]
	conclude(s.next, s.es.Generation, v)
	refreshed(s.next, s.seen, a.at, s.obj.next)
	if err := r.cleaner.prune(ctx, s); err != nil {
		return nil, err
	}
	o := say(v, r.decider.remaining(s))
	o.awaits, o.version = len(e.yields.keys) > 0, e.version
	return o, nil
}
