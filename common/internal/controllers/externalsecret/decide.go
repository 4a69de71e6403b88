package externalsecret

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
)

// The functions in this file decide what a walk does, based on what was loaded. They have no I/O.

// decide returns what to do with a target, the stance of the object, and the time of the next periodic refresh. yields
// is true while other ExternalSecrets hold keys that this one wants; started is when this process started.
func decide(s *subject, t policy.Target, blocked bool, started time.Time) (policy.Decision, syncState, time.Time) {
	st, next := s.state, planned(s, started)
	st.blocked, st.basis = blocked, s.basis(t)
	st.why, st.hold = due(s, blocked, next)
	d := policy.Decide(s.self(st.why, blocked), t, nil)
	// If this generation has already set ownerReference and mark, another client has changed them.
	st.lost = d.Action == policy.Own && t.Mark.Generation == s.es.Generation
	return d, st, next
}

// planned returns the time of the next periodic refresh; zero if there is none.
func planned(s *subject, started time.Time) time.Time {
	if !policy.Periodic(s.es.Spec.RefreshPolicy, s.plan.Interval) {
		return time.Time{} // It may have been periodic before.
	}
	return policy.Planned(s.obj.next, timeOf(s.seen.NextRefreshTime), s.opts.Now(), started, s.plan.Interval, s.opts.Random())
}

// due returns the reason to read the provider; policy.NotDue if no read is due. hold is how long the sync windows hold a read back.
// blocked is true while other ExternalSecrets hold keys that this one wants.
func due(s *subject, blocked bool, next time.Time) (why policy.Why, hold windows.Hold) {
	now := s.opts.Now()
	reason := s.ready().Reason
	failing := s.ready().Status == metav1.ConditionFalse
	switch {
	case blocked, s.handed.Problem != nil,
		reason == v1alpha1.ReasonSecretMissing && s.es.Spec.Target.CreationPolicy == v1alpha1.CreateMerge,
		reason == v1alpha1.ReasonConflict && s.obj.revertBackoff.Wait(now) > 0:
		failing = false // The provider is not the cause.
	case s.obj.signals.readAgain.Load():
		failing = true
	}
	in := policy.RefreshInput{
		Policy:    s.es.Spec.RefreshPolicy,
		Interval:  s.plan.Interval,
		Now:       now,
		Refreshed: s.seen.RefreshTime != nil && !onlyCompared(s),
		Failing:   failing,
		Notified:  !s.obj.attempts.Notified().IsZero(),
		Next:      next,
		// A former process may have learned of an event.
		Windows:              policy.WindowState{Closed: !s.plan.Windows.Open(now), Held: s.seen.NextWindowTime != nil},
		Generation:           s.es.Generation,
		ObservedGeneration:   s.observedGeneration(),
		MetadataHash:         s.metadata(),
		ObservedMetadataHash: s.seen.ObservedMetadataHash,
		Request:              s.es.Annotations[v1alpha1.RefreshRequestAnnotation],
		ObservedRequest:      s.seen.ObservedRefreshRequest,
	}
	if policy.RefreshHeld(in) {
		hold = s.plan.Windows.Hold(now, s.opts.Random())
	}
	return policy.RefreshDue(in), hold
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
func hold(s *subject) time.Duration { return policy.Jitter(holdInterval, s.opts.Random()) }

// lost is called before the provider is read. It returns the stance of an object whose read may only restore a target
// that another client has changed or deleted. It returns an outcome while such changes are in back-off; nil if the
// provider can be read.
func lost(s *subject) (syncState, *outcome) {
	st, reason := s.state, s.ready().Reason
	conflict := st.why == policy.Retry && reason == v1alpha1.ReasonConflict
	drift := st.why == policy.NotDue && reason != v1alpha1.ReasonSecretMissing
	if st.why == policy.NotDue || conflict {
		st.why = policy.TargetLost
	}
	st.lost = drift || (conflict && len(s.obj.blocked) == 0)
	if drift {
		return st, revertBackoff(s)
	}
	return st, nil
}

// revertBackoff returns an outcome that delays the next revert if another client repeatedly changes this object's keys;
// nil otherwise.
func revertBackoff(s *subject) *outcome {
	wait := s.obj.revertBackoff.Wait(s.opts.Now())
	if wait <= 0 {
		return nil
	}
	return withVerdict(status.Failed(v1alpha1.ReasonConflict, fmt.Sprintf("another client keeps deleting Secret %q or changing the keys that this object writes; restoring it with back-off until that client stops", s.plan.Target)), wait)
}

// idle returns the outcome for an object that needs no read and no write except of its status. canPrune is true if
// unneeded parts can be deleted.
func idle(s *subject) (o *outcome, canPrune bool) {
	if s.state.why != policy.NotDue {
		// The Secret is immutable, so the provider is no longer read.
		s.next.ObservedMetadataHash, s.next.ObservedRefreshRequest = s.metadata(), s.es.Annotations[v1alpha1.RefreshRequestAnnotation]
		s.next.NextRefreshTime, s.next.Binding = nil, &v1alpha1.Binding{Name: s.plan.Target}
		return withVerdict(synced("the Secret is in sync; it is immutable, so the provider is not read"), 0), false
	}
	wait := pause(s)
	if v := s.handed.Problem; v != nil && !s.state.blocked && !complete(s) {
		if !shown(s, *v) {
			return withVerdict(*v, wait), false
		}
		return rest(wait), false
	}
	if s.seen.ObservedGeneration != s.es.Generation || s.ready().Reason == v1alpha1.ReasonSecretMissing {
		if s.obj.next.IsZero() {
			s.next.NextRefreshTime = nil
		}
		return withVerdict(currentVerdict(s), wait), false // The change needs no read and no write.
	}
	return rest(wait), true
}

// pause returns how long to wait until the next check of an object that needs no read and no write; 0 for no check.
func pause(s *subject) time.Duration {
	if s.state.blocked {
		return hold(s) // Not every change that unblocks the object is an event of the target.
	}
	return remaining(s)
}

// remaining returns the time until the next periodic refresh or the opening that it waits for, or until contributions of other operators must be
// checked again, whichever comes first; 0 if there is neither.
func remaining(s *subject) time.Duration {
	now := s.opts.Now()
	wait := max(s.obj.next.Sub(now), time.Millisecond)
	switch {
	case s.state.hold.Holds():
		wait = s.state.hold.Wait(now)
	case s.obj.next.IsZero():
		return s.handed.Wait
	}
	if s.handed.Wait > 0 {
		wait = min(wait, s.handed.Wait)
	}
	return wait
}

// waitForContributions waits for contributions of other operators. A change of a part or of its entry in the status enqueues
// the object.
func waitForContributions(s *subject) *outcome {
	wait := hold(s)
	if s.handed.Wait > 0 {
		wait = min(wait, s.handed.Wait)
	}
	if v := s.handed.Problem; v != nil {
		return withVerdict(*v, wait)
	}
	return rest(wait)
}

// shown reports whether the status already has this verdict.
func shown(s *subject, v status.Verdict) bool {
	c := s.ready()
	return c.Status == v.Status && c.Reason == v.Reason && c.Message == v.Text() && c.ObservedGeneration == s.es.Generation &&
		s.seen.AttemptedRefreshRequest == s.answered()
}

// complete reports whether an object is refreshed only once and has been. It asks for nothing more.
func complete(s *subject) bool {
	return s.ready().Status == metav1.ConditionTrue && s.seen.RefreshTime != nil &&
		policy.Once(s.es.Spec.RefreshPolicy, s.plan.Interval)
}

// currentVerdict returns the verdict on an object for which there is nothing to do.
func currentVerdict(s *subject) status.Verdict {
	c := s.ready()
	if c.Type != "" && (s.state.blocked || (c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonSuspended)) {
		return status.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message, Stalled: s.state.blocked}
	}
	return synced("")
}

// self returns the object as input of decisions about its target.
func (s *subject) self(due policy.Why, blocked bool) policy.Self {
	self := policy.SelfOf(s.es, s.opts.DefaultCleanupPolicy)
	self.Absent = s.ready().Reason == v1alpha1.ReasonSecretDeleted && policy.OnNotFound(self.Deletion, true, 0) == policy.DropSecret
	self.Blocked = blocked && s.obj.wantsOnlyBlocked
	self.Due = due
	return self
}
