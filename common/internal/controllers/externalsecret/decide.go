package externalsecret

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// decider decides what a pass does, based on what gatherer has loaded. It has no I/O.
type decider struct {
	now     func() time.Time
	random  func() float64
	started time.Time
}

// decide returns what to do with a target as seen in v, the stance of the object, and the time of the next periodic
// refresh.
func (d *decider) decide(s *subject, v view) (policy.Decision, stance, time.Time) {
	st, next := s.stance, d.planned(s)
	st.yields, st.basis = v.yields, s.basis(v.target)
	st.why = d.due(s, v.yields, next)
	return policy.Decide(s.self(st.why, v.yields), v.target, nil), st, next
}

// planned returns the time of the next periodic refresh; zero if there is none.
func (d *decider) planned(s *subject) time.Time {
	if !policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval) {
		return time.Time{} // It may have been periodic before.
	}
	return policy.Planned(s.obj.next, timeOf(s.seen.NextRefreshTime), d.now(), d.started, s.plan.Interval, d.random())
}

// due returns the reason to read the provider; policy.NotDue if no read is due. yields is true while other
// ExternalSecrets hold keys that this one wants.
func (d *decider) due(s *subject, yields bool, next time.Time) policy.Why {
	now := d.now()
	reason := s.ready().Reason
	failing := s.ready().Status == metav1.ConditionFalse
	switch {
	case yields, s.handed.Problem != nil,
		reason == v1alpha1.ReasonSecretMissing && s.es.Spec.Target.CreationPolicy == v1alpha1.CreateMerge,
		reason == v1alpha1.ReasonConflict && s.obj.fight.Wait(now) > 0:
		failing = false // The provider is not the cause.
	case s.obj.signals.mended.Load():
		failing = true
	}
	return policy.RefreshDue(policy.RefreshInput{
		Policy:               s.es.Spec.RefreshPolicy,
		Interval:             s.plan.Interval,
		Now:                  now,
		Refreshed:            s.seen.RefreshTime != nil && !onlyCompared(s),
		Failing:              failing,
		Next:                 next,
		Generation:           s.es.Generation,
		ObservedGeneration:   s.observedGeneration(),
		MetadataHash:         s.metadata(),
		ObservedMetadataHash: s.seen.ObservedMetadataHash,
		Request:              s.es.Annotations[v1alpha1.RefreshRequestAnnotation],
		ObservedRequest:      s.seen.ObservedRefreshRequest,
	})
}

// onlyCompared reports whether the values were read under creationPolicy None, which no longer applies: nothing is
// written yet, even if the object is refreshed once only.
func onlyCompared(s *subject) bool {
	return s.seen.Difference != nil && s.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone
}

// timeOf returns a time of the status; zero if it is not set.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// hold returns holdInterval with jitter.
func (d *decider) hold() time.Duration { return policy.Jitter(holdInterval, d.random()) }

// lost is called before the provider is read. It returns the stance of an object whose read may only restore a target
// that another client has changed or deleted. It returns an outcome while such changes are in back-off; nil if the
// provider can be read.
func (d *decider) lost(s *subject) (stance, *outcome) {
	st, reason := s.stance, s.ready().Reason
	conflict := st.why == policy.Retry && reason == v1alpha1.ReasonConflict
	drift := st.why == policy.NotDue && reason != v1alpha1.ReasonSecretMissing
	if st.why == policy.NotDue || conflict {
		st.why = policy.TargetLost
	}
	st.lost = drift || (conflict && len(s.obj.yields.keys) == 0)
	if drift {
		return st, d.revertBackoff(s)
	}
	return st, nil
}

// revertBackoff returns an outcome that delays the next revert if another client repeatedly changes this object's keys;
// nil otherwise.
func (d *decider) revertBackoff(s *subject) *outcome {
	wait := s.obj.fight.Wait(d.now())
	if wait <= 0 {
		return nil
	}
	return say(status.Failed(v1alpha1.ReasonConflict, fmt.Sprintf("another client keeps deleting Secret %q or changing the keys that this object writes; restoring it with back-off until that client stops", s.plan.Target)), wait)
}

// idle returns the outcome for an object that needs no read and no write except of its status. settled is true if
// unneeded parts can be deleted.
func (d *decider) idle(s *subject) (o *outcome, settled bool) {
	if s.stance.why != policy.NotDue {
		// The Secret is immutable, so the provider is no longer read.
		s.next.ObservedMetadataHash, s.next.ObservedRefreshRequest = s.metadata(), s.es.Annotations[v1alpha1.RefreshRequestAnnotation]
		s.next.NextRefreshTime, s.next.Binding = nil, &v1alpha1.Binding{Name: s.plan.Target}
		return say(synced("the Secret is in sync; it is immutable, so the provider is not read"), 0), false
	}
	wait := d.pause(s)
	if v := s.handed.Problem; v != nil && !s.stance.yields && !s.complete() {
		if !s.shown(*v) {
			return say(*v, wait), false
		}
		return rest(wait), false
	}
	if s.seen.ObservedGeneration != s.es.Generation || s.ready().Reason == v1alpha1.ReasonSecretMissing {
		if s.obj.next.IsZero() {
			s.next.NextRefreshTime = nil
		}
		return say(s.standing(), wait), false // The change needs no read and no write.
	}
	return rest(wait), true
}

// pause returns how long to wait until the next check of an object that needs no read and no write; 0 for no check.
func (d *decider) pause(s *subject) time.Duration {
	if s.stance.yields {
		return d.hold() // Not every change that unblocks the object is an event of the target.
	}
	return d.remaining(s)
}

// remaining returns the time until the next periodic refresh, or until contributions of other operators must be
// checked again, whichever comes first; 0 if there is neither.
func (d *decider) remaining(s *subject) time.Duration {
	if s.obj.next.IsZero() {
		return s.handed.Wait
	}
	wait := max(s.obj.next.Sub(d.now()), time.Millisecond)
	if s.handed.Wait > 0 {
		wait = min(wait, s.handed.Wait)
	}
	return wait
}

// awaitParts waits for contributions of other operators. A change of a part or of its entry in the status enqueues
// the object.
func (d *decider) awaitParts(s *subject) *outcome {
	wait := d.hold()
	if s.handed.Wait > 0 {
		wait = min(wait, s.handed.Wait)
	}
	if v := s.handed.Problem; v != nil {
		return say(*v, wait)
	}
	return rest(wait)
}
