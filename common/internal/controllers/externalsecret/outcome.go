package externalsecret

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// holdInterval is how often an object that its store holds looks again.
const holdInterval = 45 * time.Second

// errMoved means that the world is not as it was when the pass began; look again.
var errMoved = errors.New("the objects have changed meanwhile")

// outcome is how a pass ends.
type outcome struct {
	// verdict is what the status says; nil if it stays.
	verdict *verdict
	// wait is when the object comes back; 0 if only an event brings it back.
	wait time.Duration
	// retry has it come back with back-off, and not before wait.
	retry bool
	// moved has it look again soon, since the world has changed meanwhile.
	moved bool
	// soon has it look again at once, which is no miss.
	soon bool
	// awaits is true if somebody else must change the target first, whose resourceVersion was version, empty if there
	// was none. Not every change that helps is one of the Secret, so the object looks at it now and then in any case.
	awaits  bool
	version string
}

// say ends a pass with a verdict, for a time.
func say(v verdict, wait time.Duration) *outcome { return &outcome{verdict: &v, wait: wait} }

// retry ends a pass with a verdict that the next try may change.
func retry(v verdict, atLeast time.Duration) *outcome {
	return &outcome{verdict: &v, wait: atLeast, retry: true}
}

// await ends a pass with a verdict that only a change of the target changes.
func await(v verdict, version string) *outcome {
	return &outcome{verdict: &v, awaits: true, version: version}
}

// rest ends a pass that changes nothing.
func rest(wait time.Duration) *outcome { return &outcome{wait: wait} }

// moved ends a pass under which the world has moved on.
func moved() *outcome { return &outcome{moved: true} }

// stopped returns the outcome of a decision that writes nothing; nil for any other.
func stopped(d policy.Decision, name, version string) *outcome {
	switch d.Action { //nolint:exhaustive // The others go on.
	case policy.Yield:
		return await(status.Stalled(v1alpha1.ReasonConflict, d.Message), version)
	case policy.Missing:
		return await(status.Failed(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %q: %s", name, d.Message)), version)
	case policy.Refuse:
		v := status.Stalled(v1alpha1.ReasonSecretSyncedError, d.Message)
		v.Class = provider.Invalid
		if d.Unwatched {
			return say(v, holdInterval)
		}
		return await(v, version)
	case policy.Wait:
		return await(status.Failed(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %q: %s; it comes back when its finalizers are gone", name, d.Message)), version)
	}
	return nil
}

// stopError is the outcome of a decision that writes nothing, for those who were about to write.
type stopError struct{ *outcome }

// Error implements error.
func (e stopError) Error() string { return e.verdict.Message }

// failed turns an error of a write into an outcome; an error for one that nothing is known about.
func failed(err error) (*outcome, error) {
	var stop stopError
	var forbidden *target.ForbiddenError
	var invalid *target.InvalidError
	var read *provider.Error
	switch {
	case errors.Is(err, target.ErrNamespaceTerminating):
		return rest(0), nil
	case errors.Is(err, errMoved), kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		return moved(), nil
	case errors.As(err, &stop):
		return stop.outcome, nil
	case errors.As(err, &forbidden):
		return retry(status.Failed(v1alpha1.ReasonForbidden, forbidden.Message), 0), nil
	case errors.As(err, &invalid):
		return retry(status.NotSynced(provider.NewError(provider.Invalid, "%s", invalid.Message)), 0), nil
	case errors.As(err, &read):
		return retry(status.NotSynced(read), 0), nil
	}
	return nil, errors.Wrap(err, "cannot write the Secret")
}

// reporter carries outcomes out: statuses, metrics, and when an object comes back.
type reporter struct {
	// client is live.
	client  client.Client
	events  events.EventRecorder
	objects *objects
	ledger  *metrics.Ledger
	watches *watch.Watches
	backoff workqueue.TypedRateLimiter[reconcile.Request]
	random  func() float64
	now     func() time.Time
	// enqueue brings an object back.
	enqueue func(key types.NamespacedName, priority int)
}

// watchOwner owns the watches of one ExternalSecret.
type watchOwner types.NamespacedName

// end carries an outcome out.
func (r *reporter) end(ctx context.Context, s *subject, o *outcome) (reconcile.Result, error) {
	switch {
	case o.moved:
		return s.obj.misses.Again(), nil
	case o.soon:
		return queue.Soon(), nil
	case o.verdict == nil:
		return queue.Later(o.wait), nil
	}
	wait := o.wait
	if o.retry {
		wait = max(r.backoff.When(reconcile.Request{NamespacedName: s.key()}), wait)
		s.obj.attempts.Hold(time.Now().Add(wait))
	}
	if o.awaits {
		again := policy.Jitter(holdInterval, r.random())
		if wait <= 0 || again < wait {
			wait = again
		}
		r.watch(s, o.version)
	} else {
		r.unwatch(s.key())
	}
	conclude(s.next, s.es.Generation, *o.verdict)
	metrics.Synced("ExternalSecret", o.verdict.Reason)
	switch err := r.patch(ctx, s); {
	case errors.Is(err, status.ErrOvertaken):
		s.obj.gone.mended.Store(true)
		return queue.Soon(), nil
	case err != nil:
		return reconcile.Result{}, err
	}
	s.noteContent()
	return queue.Later(wait), nil
}

// watch brings an object back when somebody changes its target, which was seen at a version.
func (r *reporter) watch(s *subject, version string) {
	key := s.key()
	if was := r.objects.await(key, s.plan.Target); was != "" && was != s.plan.Target {
		r.watches.Remove(watchOwner(key))
	}
	r.watches.Add(watch.SecretRef(s.es.Namespace, s.plan.Target), watchOwner(key), version, func() { r.enqueue(key, queue.High) })
}

// unwatch ends the watch of a target whose change was awaited.
func (r *reporter) unwatch(key types.NamespacedName) {
	if r.objects.await(key, "") != "" {
		r.watches.Remove(watchOwner(key))
	}
}

// forget drops what is remembered of an object that is gone or not ours.
func (r *reporter) forget(key types.NamespacedName) {
	r.unwatch(key)
	r.watches.Remove(templateOwner(key))
	r.objects.forget(key)
	r.ledger.Forget(key)
	r.backoff.Forget(reconcile.Request{NamespacedName: key})
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets/status,verbs=patch
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=get

// statuses writes those of ExternalSecrets. Parts are written by their contributors.
var statuses = status.Kind[*v1alpha1.ExternalSecret, v1alpha1.ExternalSecretStatus]{
	New:       func() *v1alpha1.ExternalSecret { return &v1alpha1.ExternalSecret{} },
	Status:    func(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecretStatus { return &es.Status },
	Except:    []string{"parts"},
	Overtaken: func(seen, live *v1alpha1.ExternalSecretStatus) bool { return last(seen) != last(live) },
}

// patch writes the status if it differs from the one that was seen.
func (r *reporter) patch(ctx context.Context, s *subject) error {
	out, written, err := statuses.Patch(ctx, r.client, s.es, s.version, s.seen, s.next)
	if written {
		s.obj.status.Wrote(&v1alpha1.ExternalSecret{
			ObjectMeta: metav1.ObjectMeta{Name: out.Name, UID: out.UID, ResourceVersion: out.ResourceVersion}, Status: out.Status,
		})
		status.Announce(r.events, s.es, "Sync", s.seen.Conditions, s.next.Conditions)
	}
	return err
}

// account notes how the object stands after a pass.
func (r *reporter) account(s *subject) {
	if s.es.Spec.Suspend {
		r.objects.taken(s.key(), s.es.Generation) // Nobody waits for it.
	}
	stand := metrics.Of(s.next.Conditions, s.es.CreationTimestamp.Time)
	// A status without a next time is of an object that is read no more, or never was.
	if !s.es.Spec.Suspend && s.next.NextRefreshTime != nil && policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval) {
		stand.Interval, stand.Good = s.plan.Interval, s.obj.good
		if t := s.next.RefreshTime; t != nil && t.After(stand.Good) {
			stand.Good = t.Time // A process before this one wrote it.
		}
	}
	r.ledger.Set(s.key(), stand)
}

// took notes how long it took from what asked for a write to the write, if there was one. What mends the
// target after somebody changed it is neither.
func (r *reporter) took(s *subject, asked time.Time) {
	now := r.now()
	since := r.objects.taken(s.key(), s.es.Generation)
	switch {
	case !s.stance.written || s.stance.lost:
	case !since.IsZero():
		metrics.Wrote(metrics.Object, now.Sub(since))
	default:
		metrics.Wrote(metrics.Provider, now.Sub(asked))
	}
}
