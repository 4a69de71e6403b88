package externalsecret

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// decider decides what a pass does, by what gather has loaded. It reads and writes nothing.
type decider struct {
	now     func() time.Time
	random  func() float64
	started time.Time
}

// decide says what is to be done about a target that looks like this, and notes why the provider is due.
func (d *decider) decide(s *subject, v view) policy.Decision {
	s.stance.yields, s.stance.basis = v.yields, s.basis(v.target)
	s.stance.why = d.due(s)
	return policy.Decide(s.self(s.stance.why), v.target, nil)
}

// due says why the provider is to be read.
func (d *decider) due(s *subject) policy.Why {
	now := d.now()
	switch {
	case !policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval):
		s.obj.next = time.Time{} // It may have been periodic before.
	default:
		s.obj.next = policy.Planned(s.obj.next, timeOf(s.seen.NextRefreshTime), now, d.started, s.plan.Interval, d.random())
	}
	reason := s.ready().Reason
	failing := s.ready().Status == metav1.ConditionFalse
	switch {
	case s.stance.yields, s.handed.problem != nil,
		reason == v1alpha1.ReasonSecretMissing && s.es.Spec.Target.CreationPolicy == v1alpha1.CreateMerge,
		reason == v1alpha1.ReasonConflict && s.obj.fight.Wait(now) > 0:
		failing = false // The provider is not the cause.
	case s.obj.gone.mended.Load():
		failing = true
	}
	return policy.RefreshDue(policy.RefreshInput{
		Policy:               s.es.Spec.RefreshPolicy,
		Interval:             s.plan.Interval,
		Now:                  now,
		Refreshed:            s.seen.RefreshTime != nil,
		Failing:              failing,
		Next:                 s.obj.next,
		Generation:           s.es.Generation,
		ObservedGeneration:   s.observedGeneration(),
		MetadataHash:         s.metadata(),
		ObservedMetadataHash: s.seen.ObservedMetadataHash,
		Request:              s.es.Annotations[v1alpha1.RefreshRequestAnnotation],
		ObservedRequest:      s.seen.ObservedRefreshRequest,
	})
}

// timeOf returns a time of the status; zero if there is none.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// hold is a little less or more than the time after which what is held looks again.
func (d *decider) hold() time.Duration { return policy.Jitter(holdInterval, d.random()) }

// lost says whether a target that is not as it shall be was left so by somebody else, before the provider is read for
// it. It returns the outcome where that has happened again and again; nil if the provider may be read.
func (d *decider) lost(s *subject) *outcome {
	reason := s.ready().Reason
	conflict := s.stance.why == policy.Retry && reason == v1alpha1.ReasonConflict
	drift := s.stance.why == policy.NotDue && reason != v1alpha1.ReasonSecretMissing
	if s.stance.why == policy.NotDue || conflict {
		s.stance.why = policy.TargetLost
	}
	if drift {
		if o := d.fighting(s); o != nil {
			return o
		}
	}
	s.stance.lost = drift || (conflict && len(s.obj.yields.keys) == 0)
	return nil
}

// fighting holds the next revert back if somebody keeps changing what is ours; nil if nobody does.
func (d *decider) fighting(s *subject) *outcome {
	wait := s.obj.fight.Wait(d.now())
	if wait <= 0 {
		return nil
	}
	return say(status.Failed(v1alpha1.ReasonConflict, fmt.Sprintf("somebody keeps changing the keys of Secret %q that this object writes, or deletes it; it is put right with back-off", s.plan.Target)), wait)
}

// idle is the outcome for an object for which nothing is to be read or written but its status. settled is true if
// parts that it does not need can go.
func (d *decider) idle(s *subject) (o *outcome, settled bool) {
	if s.stance.why != policy.NotDue {
		// It is immutable, so reading has stopped.
		s.next.ObservedMetadataHash, s.next.ObservedRefreshRequest = s.metadata(), s.es.Annotations[v1alpha1.RefreshRequestAnnotation]
		s.next.NextRefreshTime, s.next.Binding = nil, &v1alpha1.Binding{Name: s.plan.Target}
		return say(synced("the Secret is in step; it is immutable, and so the provider is not read"), 0), false
	}
	wait := d.pause(s)
	if v := s.handed.problem; v != nil && !s.stance.yields && !s.complete() {
		if !s.shown(*v) {
			return say(*v, wait), false
		}
		return rest(wait), false
	}
	if s.seen.ObservedGeneration != s.es.Generation || s.ready().Reason == v1alpha1.ReasonSecretMissing {
		if s.obj.next.IsZero() {
			s.next.NextRefreshTime = nil
		}
		return say(s.standing(), wait), false // What changed asks for nothing more.
	}
	return rest(wait), true
}

// pause is the time until an object is looked at again for which there is nothing to do.
func (d *decider) pause(s *subject) time.Duration {
	if s.stance.yields {
		return d.hold() // Who awaits somebody else looks at the target now and then.
	}
	return d.remaining(s)
}

// remaining is the time until the next periodic refresh, or until there is something to say of what other operators
// contribute; 0 if there is none.
func (d *decider) remaining(s *subject) time.Duration {
	if s.obj.next.IsZero() {
		return s.handed.wait
	}
	wait := max(s.obj.next.Sub(d.now()), time.Millisecond)
	if s.handed.wait > 0 {
		wait = min(wait, s.handed.wait)
	}
	return wait
}

// awaitParts waits for what other operators contribute. A part brings the object back, and what the status says of it.
func (d *decider) awaitParts(s *subject) *outcome {
	wait := d.hold()
	if s.handed.wait > 0 {
		wait = min(wait, s.handed.wait)
	}
	if v := s.handed.problem; v != nil {
		return say(*v, wait)
	}
	return rest(wait)
}
