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
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/recovery"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// manyMisses is how often in a row parts may not be what the cache shows before it is said.
const manyMisses = 6

// Reconciler keeps the Secrets of the ExternalSecrets that this operator claims. A pass has four steps: gather loads
// everything from caches, decide says what is to be done, fetch asks the stores, apply writes the target.
type Reconciler struct {
	gatherer gatherer
	decider  decider
	fetcher  fetch.Fetcher
	applier  applier
	cleaner  cleaner
	reporter reporter
	// suspect is told of stores that refuse a read.
	suspect func(k provider.Kind, s types.NamespacedName)
}

// Reconcile brings one ExternalSecret a step on.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	defer func() {
		if ctx.Err() != nil {
			res, err = reconcile.Result{}, nil // The operator ends; what failed for that is no error.
		}
	}()
	defer recovery.ToError(ctx, &err)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil // The answer to a write may be missing, so the state is not known.
	}
	s, anew, err := r.gatherer.subject(ctx, req.NamespacedName)
	if anew {
		r.reporter.watches.Remove(templateOwner(req.NamespacedName)) // They are those of the object before it.
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
	o, err := r.pass(ctx, s)
	if err == nil {
		res, err = r.reporter.end(ctx, s, o)
	}
	r.reporter.account(s)
	return res, err
}

// pass takes one step after the other, until one of them ends it.
func (r *Reconciler) pass(ctx context.Context, s *subject) (*outcome, error) {
	o, err := r.outset(ctx, s)
	if o != nil && !o.soon {
		// What was read for a reason that is gone would be stale at the next one.
		s.obj.attempts.Drop()
	}
	if err != nil || o != nil {
		return o, err
	}
	decision, o, err := r.settle(ctx, s)
	switch {
	case err != nil || o != nil:
		return o, err
	case decision.Action == policy.Read:
		if o := r.decider.lost(s); o != nil {
			s.obj.attempts.Drop()
			return o, nil
		}
		return r.fetch(ctx, s)
	case decision.Action == policy.Own:
		return &outcome{soon: true}, nil // Somebody moves it the other way.
	}
	s.obj.attempts.Drop()
	if err := r.cleaner.leave(ctx, s); err != nil {
		return failed(err)
	}
	o, settled := r.decider.idle(s)
	if settled {
		err = r.cleaner.prune(ctx, s)
		o.wait = r.decider.pause(s)
	}
	return o, err
}

// outset is what comes before the target is looked at: is the spec one that can be served, may the namespace use the
// stores, what is the template, and what do other operators hand over?
func (r *Reconciler) outset(ctx context.Context, s *subject) (o *outcome, err error) {
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
		s.obj.attempts.Drop() // What is read now would be older than the templates.
		return unread(err)
	}
	return nil, r.gatherer.parts.regard(ctx, s)
}

// unread is what comes of a source of templates that cannot be read.
func unread(err error) (*outcome, error) {
	if kerrors.IsForbidden(err) {
		return retry(status.Failed(v1alpha1.ReasonForbidden, "spec.target.template.templateFrom: "+err.Error()), 0), nil
	}
	return nil, err
}

// settle decides what is to be done about the target, and has it own what it shall own first. It returns the outcome of
// a pass that ends so.
func (r *Reconciler) settle(ctx context.Context, s *subject) (policy.Decision, *outcome, error) {
	decision, v, err := r.look(ctx, s)
	if err == nil && decision.Action == policy.Own {
		// If this generation has had it as it shall be, somebody else has changed it.
		s.stance.lost = v.target.Mark.Generation == s.es.Generation
		if s.stance.lost {
			if o := r.decider.fighting(s); o != nil {
				s.obj.attempts.Drop()
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
	o := stopped(decision, s.plan.Target, versionOf(v.secret))
	if o != nil {
		s.obj.attempts.Drop()
	}
	return decision, o, nil
}

// look decides by what the caches show, and by the API server where they may be behind.
func (r *Reconciler) look(ctx context.Context, s *subject) (policy.Decision, view, error) {
	secret, err := r.gatherer.cached(ctx, s)
	if err != nil {
		return policy.Decision{}, view{}, err
	}
	v := s.view(ctx, secret)
	decision := r.decider.decide(s, v)
	if doubtful(s, v, decision) {
		if secret, err = r.gatherer.peek(ctx, s); err != nil {
			return policy.Decision{}, view{}, err
		}
		v = s.view(ctx, secret)
		decision = r.decider.decide(s, v)
	}
	return decision, v, nil
}

// fetch reads the provider, and goes on when it has answered.
func (r *Reconciler) fetch(ctx context.Context, s *subject) (*outcome, error) {
	w := fetch.Want{
		Key: s.key(), Attempts: &s.obj.attempts, Attempt: fetch.AttemptOf(s.es, s.metadata()),
		Why: s.stance.why, Stores: s.stores, Basis: s.stance.basis,
	}
	a := r.fetcher.Take(&w)
	s.stance.why = w.Why
	switch {
	case a.Pending:
		return rest(0), nil // Its answer enqueues the object.
	case a.Values != nil:
		return r.answered(ctx, s, a)
	case a.Wait > 0:
		return rest(a.Wait), nil
	}
	if refused := r.fetcher.Ask(w, s.handed.ready); refused != nil {
		// An event of the store brings the object back. If it came before the status that says so
		// was written, it passed the object over; so look again after a while. That reads caches only.
		return say(*refused, r.decider.hold()), nil
	}
	if !s.handed.ready {
		return r.decider.awaitParts(s), nil
	}
	return rest(0), nil
}

// answered goes on with what the stores have answered, and with what lies in parts.
func (r *Reconciler) answered(ctx context.Context, s *subject, got fetch.Answer) (*outcome, error) {
	values, there, err := r.gatherer.parts.take(ctx, s, got.Values)
	switch {
	case err != nil:
		return nil, err
	case !there && s.obj.misses >= manyMisses:
		s.obj.misses = 0
		return retry(status.NotSynced(provider.NewError(provider.Unavailable, "a part that status.parts records does not hold what it says; its module has yet to mend it")), 0), nil
	case !there:
		return moved(), nil
	}
	texts, err := r.gatherer.templates.read(ctx, s.es, s.plan.Texts, &s.obj.templates)
	if err != nil {
		return unread(err)
	}
	return r.apply(ctx, s, newAnswer(s, values, texts, got))
}

// apply brings the target to what was read.
func (r *Reconciler) apply(ctx context.Context, s *subject, a *answer) (*outcome, error) {
	e, err := r.applier.apply(ctx, s, a)
	if err == nil && !e.kept {
		err = r.cleaner.leave(ctx, s)
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

// succeed notes that the target is as the answer of the provider wants it, and plans the next
// refresh.
func (r *Reconciler) succeed(ctx context.Context, s *subject, a *answer, e effect) (*outcome, error) {
	r.fetcher.Backoff.Forget(reconcile.Request{NamespacedName: s.key()})
	s.obj.next, s.obj.yields, s.obj.misses = time.Time{}, e.yields, 0
	s.obj.good = a.at
	s.obj.gone.lacks.Store(a.read.Gone != nil)
	s.obj.gone.mended.Store(false)
	r.reporter.took(s, a.at)
	if policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval) {
		s.obj.next = a.at.Add(policy.Jitter(s.plan.Interval, r.decider.random()))
	}
	v := judged(s, a.read, e)
	if failure := s.handed.problem; failure != nil && v.Status == metav1.ConditionTrue {
		v = *failure // The values in place stay, but others were due.
	}
	s.next.Sources = a.read.Sources
	s.next.Binding = nil
	if s.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone && !e.absent {
		s.next.Binding = &v1alpha1.Binding{Name: s.plan.Target}
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
