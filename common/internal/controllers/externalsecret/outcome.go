package externalsecret

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// holdInterval is how often an object that waits for something else is checked again, before jitter.
const holdInterval = 45 * time.Second

// errMoved means that an object has changed during the pass; reconcile it again.
var errMoved = errors.New("the objects changed during the reconcile")

// outcome is the end of a pass.
type outcome struct {
	// verdict is the new status; nil if the status stays as it is.
	verdict *status.Verdict
	// wait is the delay until the next pass; 0 if only an event starts one.
	wait time.Duration
	// retry requests the next pass with back-off, and not before wait.
	retry bool
	// moved requests the next pass soon, because an object has changed during this one.
	moved bool
	// soon requests the next pass at once, without counting it as a miss.
	soon bool
	// True if another client must change the target first. version is the target's resourceVersion; empty
	// if there is no target. Not every change that unblocks the object is one of the Secret, so the object is checked
	// at intervals in any case.
	waitsForTarget bool
	version        string
}

// withVerdict ends a pass with a verdict; wait is the delay until the next pass.
func withVerdict(v status.Verdict, wait time.Duration) *outcome {
	return &outcome{verdict: &v, wait: wait}
}

// retry ends a pass with a verdict that the next attempt may change.
func retry(v status.Verdict, atLeast time.Duration) *outcome {
	return &outcome{verdict: &v, wait: atLeast, retry: true}
}

// waitForEvent ends a pass with a verdict that only a change of the target can change.
func waitForEvent(v status.Verdict, version string) *outcome {
	return &outcome{verdict: &v, waitsForTarget: true, version: version}
}

// rest ends a pass that leaves the status as it is.
func rest(wait time.Duration) *outcome { return &outcome{wait: wait} }

// moved ends a pass during which an object has changed.
func moved() *outcome { return &outcome{moved: true} }

// stopped returns the outcome of a decision that writes nothing; nil for any other decision.
func stopped(d policy.Decision, name, version string) *outcome {
	switch d.Action { //nolint:exhaustive // All other actions continue the pass.
	case policy.Conflict:
		return waitForEvent(status.Stalled(v1alpha1.ReasonConflict, d.Message), version)
	case policy.Missing:
		return waitForEvent(status.Failed(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %q: %s", name, d.Message)), version)
	case policy.Refuse:
		v := status.Stalled(v1alpha1.ReasonSecretSyncedError, d.Message)
		v.Class = provider.Invalid
		if d.Unwatched {
			return withVerdict(v, holdInterval)
		}
		return waitForEvent(v, version)
	case policy.Wait:
		return waitForEvent(status.Failed(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %q: %s; waiting for its finalizers to be removed", name, d.Message)), version)
	}
	return nil
}

// failed turns an error of a write into an outcome. An unknown error is returned as an error.
func failed(err error) (*outcome, error) {
	var forbidden *target.ForbiddenError
	var invalid *target.InvalidError
	var read *provider.Error
	switch {
	case errors.Is(err, target.ErrNamespaceTerminating):
		return rest(0), nil
	case errors.Is(err, errMoved), kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		return moved(), nil
	case errors.As(err, &forbidden):
		return retry(status.Failed(v1alpha1.ReasonForbidden, forbidden.Message), 0), nil
	case errors.As(err, &invalid):
		return retry(status.NotSynced(provider.NewError(provider.Invalid, "%s", invalid.Message)), 0), nil
	case errors.As(err, &read):
		return retry(status.NotSynced(read), 0), nil
	}
	return nil, errors.Wrap(err, "cannot write the Secret")
}

// A watchOwner owns watches of one ExternalSecret: that of its target, or those of its template sources.
type watchOwner struct {
	key       types.NamespacedName
	templates bool
}

// end carries out an outcome: the status, the metrics and the next pass of an object.
func (r *Reconciler) end(ctx context.Context, s *subject, o *outcome) (reconcile.Result, error) {
	switch {
	case o.moved:
		return s.obj.misses.Again(), nil
	case o.soon:
		return queue.Soon(), nil
	case o.verdict == nil:
		s.next = s.seen.DeepCopy()
		s.next.NextWindowTime, s.next.NextRefreshTime = s.state.hold.Record(s.next.NextRefreshTime)
		return queue.Later(o.wait), r.patch(ctx, s)
	}
	wait := o.wait
	if o.retry {
		wait = s.obj.attempts.Fail(wait)
	}
	if again := hold(s); o.waitsForTarget && (wait <= 0 || again < wait) {
		wait = again
	}
	r.watchTarget(s, o)
	conclude(s.next, s.es.Generation, *o.verdict)
	s.next.AttemptedRefreshRequest = s.answered()
	s.next.NextWindowTime, s.next.NextRefreshTime = s.state.hold.Record(s.next.NextRefreshTime)
	metrics.Synced("ExternalSecret", o.verdict.Reason)
	switch err := r.patch(ctx, s); {
	case errors.Is(err, status.ErrOvertaken):
		s.obj.signals.readAgain.Store(true)
		return queue.Soon(), nil
	case err != nil:
		return reconcile.Result{}, err
	}
	s.noteContent()
	return queue.Later(wait), nil
}

// watchTarget enqueues an object that waits for a change of its target once the target changes. Otherwise it ends that
// watch.
func (r *Reconciler) watchTarget(s *subject, o *outcome) {
	key, name := s.key(), ""
	if o.waitsForTarget {
		name = s.plan.Target
	}
	if was := s.obj.signals.blockedAt(); was != "" && was != name {
		r.watches.Remove(watchOwner{key, false})
	}
	s.obj.signals.blocked.Store(&name)
	if o.waitsForTarget {
		r.watches.Add(watch.SecretRef(s.es.Namespace, name), watchOwner{key, false}, o.version, func() { r.enqueue(key, queue.High) })
	}
}

// forget drops all memory of an object that is deleted or that this operator does not claim.
func (r *Reconciler) forget(key types.NamespacedName) {
	removeWatches(r.watches, key)
	r.objects.forget(key)
	r.ledger.Forget(key)
}

func removeWatches(watches *watch.Watches, key types.NamespacedName) {
	watches.Remove(watchOwner{key, false})
	watches.Remove(watchOwner{key, true})
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets/status,verbs=patch
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=get

// statuses writes the statuses of ExternalSecrets. Contributors write their own entries of status.parts.
var statuses = status.Kind[*v1alpha1.ExternalSecret, v1alpha1.ExternalSecretStatus]{
	New:       func() *v1alpha1.ExternalSecret { return &v1alpha1.ExternalSecret{} },
	Status:    func(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecretStatus { return &es.Status },
	Except:    []string{"parts", "restart"},
	Keep:      keepRestarts,
	Overtaken: func(seen, live *v1alpha1.ExternalSecretStatus) bool { return last(seen) != last(live) },
}

// keepRestarts copies the condition of restarts, which their controller writes.
func keepRestarts(next, live *v1alpha1.ExternalSecretStatus) {
	if c := meta.FindStatusCondition(live.Conditions, v1alpha1.ConditionWorkloadsRestarted); c != nil {
		meta.SetStatusCondition(&next.Conditions, *c)
	} else {
		meta.RemoveStatusCondition(&next.Conditions, v1alpha1.ConditionWorkloadsRestarted)
	}
}

// patch writes the status if it differs from the one that was seen.
func (r *Reconciler) patch(ctx context.Context, s *subject) error {
	out, written, err := statuses.Patch(ctx, r.live, s.es, s.version, s.seen, s.next)
	if written {
		s.obj.status.Wrote(&v1alpha1.ExternalSecret{
			ObjectMeta: metav1.ObjectMeta{Name: out.Name, UID: out.UID, ResourceVersion: out.ResourceVersion}, Status: out.Status,
		})
		status.RecordEvent(r.events, s.es, "Sync", s.seen.Conditions, s.next.Conditions)
	}
	return err
}

// account updates the metrics of an object after a pass.
func account(objects *objects, ledger *metrics.Ledger, s *subject) {
	if s.es.Spec.Suspend {
		objects.taken(s.key(), s.es.Generation) // Do not count the time of a suspended object.
	}
	stand := metrics.Of(s.next.Conditions, s.es.CreationTimestamp.Time)
	// The status of an object that is no longer read, or never was, has no next refresh time. An object
	// that waits for a sync window is not late.
	if !s.es.Spec.Suspend && !s.state.hold.Holds() && s.next.NextRefreshTime != nil && policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval) {
		stand.Interval, stand.Good = s.plan.Interval, s.obj.good
		if t := s.next.RefreshTime; t != nil && t.After(stand.Good) {
			stand.Good = t.Time // An earlier process wrote it.
		}
	}
	ledger.Set(s.key(), stand)
}

// took records the delay between a request for a write and the write, if there was one. A write that restores the
// target after a change by another client is not counted.
func took(objects *objects, s *subject, asked time.Time) {
	now := s.opts.Now()
	since := objects.taken(s.key(), s.es.Generation)
	switch {
	case !s.state.written || s.state.lost:
	case !since.IsZero():
		metrics.Wrote(metrics.Object, now.Sub(since))
	default:
		metrics.Wrote(metrics.Provider, now.Sub(asked))
	}
}

// synced returns the verdict that the object is in sync; an empty message stands for the default one.
func synced(message string) status.Verdict {
	if message == "" {
		message = "the Secret is in sync"
	}
	return status.Good(v1alpha1.ReasonSecretSynced, message)
}

// conclude writes the conditions of a verdict and its generation into a status.
func conclude(st *v1alpha1.ExternalSecretStatus, generation int64, v status.Verdict) {
	st.ObservedGeneration = generation
	status.Conclude(&st.Conditions, generation, v)
}

// refreshed records a successful refresh. The times are written only with another change or as a heartbeat, so that a
// refresh without changes writes nothing. A refresh that has waited for a sync window changes the status in any case.
func refreshed(st *v1alpha1.ExternalSecretStatus, before *v1alpha1.ExternalSecretStatus, now, next time.Time) {
	if before.NextWindowTime == nil && !policy.Beats(timeOf(before.RefreshTime), now) && equality.Semantic.DeepEqual(st, before) {
		return
	}
	st.RefreshTime = &metav1.Time{Time: now.Truncate(time.Second)}
	st.NextRefreshTime = nil
	if !next.IsZero() {
		st.NextRefreshTime = &metav1.Time{Time: next.Truncate(time.Second)}
	}
}

// appliedVerdict returns the verdict after an answer was applied.
func appliedVerdict(s *subject, out render.Output, j writeDecision) status.Verdict {
	switch {
	case len(j.blocked) > 0:
		return status.Stalled(v1alpha1.ReasonConflict, fmt.Sprintf("keys %q of Secret %q are written by another ExternalSecret; choose other keys or another spec.target.name", j.blocked, s.plan.Target))
	case j.Absent:
		return status.Good(v1alpha1.ReasonSecretDeleted, "the provider has none of the values that the spec names; deletionPolicy is Delete, so there is no Secret")
	case s.es.Spec.Target.CreationPolicy == v1alpha1.CreateNone:
		return synced("all values can be read; creationPolicy is None, so no Secret is written")
	case out.NotFound != nil:
		return synced("the Secret is in sync; some remote values do not exist: " + out.NotFound.Message)
	}
	return synced("")
}
