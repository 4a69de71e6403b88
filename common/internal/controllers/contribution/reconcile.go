package contribution

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// holdInterval is how often an object that waits for its store is checked again, before jitter.
const holdInterval = 45 * time.Second

// errMoved means that an object has changed during the pass; reconcile it again.
var errMoved = errors.New("the objects changed during the reconcile")

// Reconciler stores the values that this operator reads for ExternalSecrets of other operators in parts.
type Reconciler struct {
	cache client.Reader
	// live does not read from a cache.
	live      client.Client
	referrers *referrers.Referrers
	pool      *dispatch.Pool
	opts      Options
	objects   *kit.Memory[types.NamespacedName, object]
	started   time.Time
}

// object is the controller's memory of one ExternalSecret. Only the walk over it uses it; the fields that event
// handlers also use have their own locks.
type object struct {
	// next is the time of the next periodic refresh.
	next     time.Time
	attempts kit.Attempts
	misses   queue.Misses
	// failing is true while the contribution could not be read or stored.
	failing bool
	// unreported is true while the status does not yet show that the part holds other values.
	unreported bool
	// lastReport is the last report about the part in the status.
	lastReport handoff.LastReport
	// part is the last write of the part, kept until the cache shows it; wrote is its uid.
	part  overlay.Object[*metav1.PartialObjectMetadata]
	wrote types.UID
	// version is the resourceVersion of the part that this process last wrote or saw.
	version overlay.Version
}

// subject is one ExternalSecret in one pass.
type subject struct {
	opts *Options
	// self is this operator as a contributor.
	self   handoff.Contributor
	es     *v1alpha1.ExternalSecret
	obj    *object
	stores fetch.Stores
	// part is the metadata of the part, nil if there is none; record describes its content.
	part   *metav1.PartialObjectMetadata
	record handoff.Record
	// hold is how long the sync windows hold back a read that is due.
	hold windows.Hold
}

func (s *subject) key() types.NamespacedName { return client.ObjectKeyFromObject(s.es) }

// metadata returns a hash of everything that triggers a refresh. It includes the spec, since a part records no
// generation.
func (s *subject) metadata() string { return referrers.Metadata(s.es, referrers.Content(s.es)) }

// attempt identifies what the user asks for now.
func (s *subject) attempt() kit.Attempt {
	return kit.AttemptOf(s.es, referrers.Metadata(s.es), s.metadata())
}

// Reconcile is one walk over the part of an ExternalSecret.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	es := &v1alpha1.ExternalSecret{}
	if err := r.cache.Get(ctx, req.NamespacedName, es); err != nil {
		r.objects.Forget(req.NamespacedName)
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the ExternalSecret")
	}
	contributes, err := r.contributes(ctx, es)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case !contributes:
		r.objects.Forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	s := &subject{opts: &r.opts, self: r.referrers.Contributor(), es: es}
	s.obj, _ = r.objects.Get(req.NamespacedName, es.UID)
	ctx, span := trace.Start(ctx, trace.Reconcile, trace.Of("Part", es)...)
	defer func() { span.End(trace.Result(err)) }()
	return r.pass(ctx, s)
}

// contributes reports whether this operator reads, or has read, for an object that another one claims.
func (r *Reconciler) contributes(ctx context.Context, es *v1alpha1.ExternalSecret) (bool, error) {
	if es.DeletionTimestamp != nil {
		return false, nil
	}
	mine, err := r.referrers.Mine(ctx, es)
	if err != nil || mine {
		return false, err
	}
	return r.referrers.Contributes(ctx, es)
}

// pass decides what to do for the object, and does it.
func (r *Reconciler) pass(ctx context.Context, s *subject) (reconcile.Result, error) {
	if s.es.Spec.Suspend {
		return reconcile.Result{}, nil
	}
	if err := r.load(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	plan, err := render.NewPlan(s.es)
	if err != nil {
		return r.reportVerdict(ctx, s, status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error()), 0)
	}
	plan.TemplateRefs = nil
	stores, err := fetch.Resolve(ctx, r.referrers, s.es, plan, false)
	switch {
	case kerrors.IsNotFound(errors.Cause(err)):
		return queue.Soon(), nil // The cache does not have the namespace yet.
	case err != nil:
		return reconcile.Result{}, err
	}
	s.stores = stores.Own()
	if len(s.stores.Plan.Sources) == 0 {
		return reconcile.Result{}, r.retract(ctx, s)
	}
	if refused := s.stores.Admit(); refused != nil {
		return r.reportVerdict(ctx, s, *refused, s.pause())
	}
	if why := s.due(r.started); why != policy.NotDue {
		return r.fetch(ctx, s, why)
	}
	if !s.fits() {
		switch restored, err := r.restore(ctx, s); {
		case err != nil:
			return r.failure(ctx, s, err)
		case !restored:
			return s.obj.misses.Again(), nil
		}
	}
	return r.handedOver(ctx, s, false)
}

// pause returns holdInterval with jitter.
func (s *subject) pause() time.Duration { return policy.Jitter(holdInterval, s.opts.Random()) }

// fetch reads the stores, and stores their answers in the part.
func (r *Reconciler) fetch(ctx context.Context, s *subject, why policy.Why) (reconcile.Result, error) {
	wait, changed := s.obj.attempts.Begin(s.attempt())
	if changed && why == policy.Retry {
		why = policy.Changed
	}
	switch refused := s.stores.Refused(); {
	case wait > 0:
		return queue.Later(wait), nil
	case refused != nil:
		return r.reportVerdict(ctx, s, *refused, s.pause())
	}
	at, basis := r.opts.Now(), s.basis()
	values, release, err := s.stores.Read(ctx, r.pool, fetch.Urgent(why, s.obj.attempts.Failed()), fetch.After(why, &s.obj.attempts))
	if err != nil {
		return reconcile.Result{}, err
	}
	defer release()
	if err := s.reload(ctx, r.cache); err != nil {
		return reconcile.Result{}, err
	}
	return r.hand(ctx, s, values, at, basis)
}

// reload checks, after a wait, that the object asks for the same as before, and loads its latest status.
func (s *subject) reload(ctx context.Context, cache client.Reader) error {
	now, before := &v1alpha1.ExternalSecret{}, s.attempt()
	if err := cache.Get(ctx, s.key(), now); kerrors.IsNotFound(err) || now.UID != s.es.UID || now.DeletionTimestamp != nil {
		return kit.ErrInterrupted
	} else if err != nil {
		return errors.Wrap(err, "cannot read the ExternalSecret")
	}
	if s.es = now; s.attempt() != before {
		return kit.ErrInterrupted
	}
	return nil
}

// hand stores the answer in the part. at is the time of the request, and basis that of the part at that time.
func (r *Reconciler) hand(ctx context.Context, s *subject, values render.Values, at time.Time, basis string) (reconcile.Result, error) {
	err, newValues := render.Failure(s.stores.Plan.Sources, values), false
	if err == nil {
		newValues, err = r.store(ctx, s, values, at, basis)
	} else if provider.ClassOf(err) == provider.Denied {
		s.stores.Suspect(r.opts.Suspect)
	}
	var refused *provider.Error
	switch {
	case err == nil:
		return r.handedOver(ctx, s, newValues)
	case !errors.As(err, &refused):
		return r.failure(ctx, s, err)
	}
	s.obj.failing = true
	return r.reportVerdict(ctx, s, status.NotSynced(err), s.obj.attempts.Fail(provider.RetryAfter(err)))
}

// store plans the next refresh, and writes the values of an answer. It returns true if the part held other values.
func (r *Reconciler) store(ctx context.Context, s *subject, values render.Values, at time.Time, basis string) (newValues bool, err error) {
	data, entries, err := handoff.Pack(s.stores.Plan.Sources, values)
	if err != nil {
		return false, err
	}
	reads := handoff.Reads{
		Version: handoff.NewVersion(), Hash: target.HashInputs(s.es.UID, handoff.Content(data)), Entries: entries,
		Request: s.es.Annotations[v1alpha1.RefreshRequestAnnotation], Metadata: s.metadata(), Labels: s.stores.Labels(), At: at,
	}
	s.obj.next = time.Time{}
	if policy.Periodic(s.es.Spec.RefreshPolicy, s.stores.Plan.Interval) {
		s.obj.next = at.Add(policy.Jitter(s.stores.Plan.Interval, r.opts.Random()))
		reads.Next = s.obj.next
	}
	return r.writeReads(ctx, s, reads, data, basis)
}

// handedOver reports that the part has the wanted values.
func (r *Reconciler) handedOver(ctx context.Context, s *subject, newValues bool) (reconcile.Result, error) {
	s.obj.failing, s.obj.misses = false, 0
	s.obj.unreported = s.obj.unreported || newValues
	wait := time.Duration(0)
	switch {
	case s.hold.Holds():
		wait = s.hold.Wait(r.opts.Now())
	case !s.obj.next.IsZero():
		wait = max(s.obj.next.Sub(r.opts.Now()), time.Millisecond)
	}
	if reads := s.record.Reads; reads != nil && s.lacks(*reads) {
		// The missing secret may be created any time, so it is read more often than the others.
		wait = s.obj.attempts.Fail(0)
	} else {
		s.obj.attempts.Succeed()
	}
	metrics.Synced("Part", v1alpha1.ReasonSecretSynced)
	if err := r.report(ctx, s, handoff.Report{Part: s.part, NewValues: s.obj.unreported, Window: s.hold.Time()}); err != nil {
		return reconcile.Result{}, err
	}
	s.obj.unreported = false
	return queue.Later(wait), nil
}

// failure turns an error of a write into a report or a requeue. An unknown error is returned.
func (r *Reconciler) failure(ctx context.Context, s *subject, err error) (reconcile.Result, error) {
	var invalid *provider.Error
	switch {
	case errors.Is(err, target.ErrNamespaceTerminating):
		return reconcile.Result{}, nil
	case errors.Is(err, errMoved), kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		return s.obj.misses.Again(), nil
	case errors.As(err, &invalid):
		return r.reportVerdict(ctx, s, status.NotSynced(invalid), s.obj.attempts.Fail(0))
	}
	return reconcile.Result{}, errors.Wrap(err, "cannot write the Secret of the contribution")
}

// reportVerdict reports to the claiming operator why the part is not as wanted, and requeues the object after wait.
func (r *Reconciler) reportVerdict(ctx context.Context, s *subject, v status.Verdict, wait time.Duration) (reconcile.Result, error) {
	report := handoff.Report{Message: v.Message, Reason: v.Reason, Class: v.Class, Request: s.es.Annotations[v1alpha1.RefreshRequestAnnotation]}
	if report.Reason == v1alpha1.ReasonSecretSyncedError {
		report.Reason = "" // The default reason.
	}
	if s.part != nil {
		report.Part = s.part // Not a nil pointer in an interface.
	}
	metrics.Synced("Part", v.Reason)
	if err := r.report(ctx, s, report); err != nil {
		return reconcile.Result{}, err
	}
	return queue.Later(wait), nil
}

func (r *Reconciler) report(ctx context.Context, s *subject, report handoff.Report) error {
	return s.self.Report(ctx, r.live, "ExternalSecret", s.es, s.es.Status.Parts, report, &s.obj.lastReport)
}

// retract deletes the part once the spec no longer names a source of this operator.
func (r *Reconciler) retract(ctx context.Context, s *subject) error {
	if err := r.remove(ctx, s); err != nil {
		return err
	}
	if err := r.report(ctx, s, handoff.Report{}); err != nil {
		return err
	}
	r.objects.Forget(s.key())
	return nil
}
