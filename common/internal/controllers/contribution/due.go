package contribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
)

// due returns why the stores must be read for the part; policy.NotDue if no read is due. It also sets s.hold.
func (s *subject) due(started time.Time) policy.Why {
	reads, plan := s.reads(), s.stores.Plan
	now := s.opts.Now()
	switch {
	case !policy.Periodic(s.es.Spec.RefreshPolicy, plan.Interval):
		s.obj.next = time.Time{}
	default:
		s.obj.next = policy.Planned(s.obj.next, reads.Next, now, started, plan.Interval, s.opts.Random())
	}
	covered := len(reads.Entries) == len(plan.Sources) && !slices.ContainsFunc(plan.Sources, func(src render.Source) bool {
		_, ok := reads.Entries[handoff.SourceID(src.Store, src.Read)]
		return !ok
	})
	if s.es.Spec.Target.Immutable && covered {
		return policy.NotDue // The Secret is written once, so the stores are no longer read.
	}
	inSync := meta.IsStatusConditionTrue(s.es.Status.Conditions, v1alpha1.ConditionReady)
	in := policy.RefreshInput{
		Policy: s.es.Spec.RefreshPolicy, Interval: plan.Interval, Now: now,
		Refreshed: covered || inSync && reads.Version != "", Failing: s.obj.failing || s.lacks(reads) || s.failedBefore(),
		Notified: !s.obj.attempts.Notified().IsZero(),
		Next:     s.obj.next, Generation: 1,
		MetadataHash: s.metadata(), ObservedMetadataHash: reads.Metadata,
		Request: s.es.Annotations[v1alpha1.RefreshRequestAnnotation], ObservedRequest: reads.Request,
		Windows: policy.WindowState{Closed: !plan.Windows.Open(now)},
	}
	if entry := s.self.Latest(s.es, s.es.Status.Parts, &s.obj.lastReport); entry != nil {
		in.Windows.Held = entry.NextWindowTime != nil // A former process may have learned of an event.
	}
	if covered {
		in.ObservedGeneration = in.Generation
	}
	if s.hold = (windows.Hold{}); policy.RefreshHeld(in) {
		s.hold = plan.Windows.Hold(now, s.opts.Random())
	}
	return policy.RefreshDue(in)
}

// reads returns the description of the part's content. It is empty if this object has no usable part: none at all,
// one that is being deleted, or one that another client has written.
func (s *subject) reads() handoff.Reads {
	if s.part == nil || s.record.Reads == nil || s.record.UID != s.es.UID || s.part.DeletionTimestamp != nil ||
		!s.isOurs() || s.obj.version.Edited(s.part) {
		return handoff.Reads{}
	}
	return *s.record.Reads
}

// failedBefore reports whether an earlier process made the last attempt and it failed.
func (s *subject) failedBefore() bool {
	entry := s.self.Of(s.es.Status.Parts)
	return !s.obj.attempts.Begun() && entry != nil && entry.Message != ""
}

// lacks reports whether a remote secret did not exist that the object needs to be in sync.
func (s *subject) lacks(reads handoff.Reads) bool {
	if policy.OnNotFound(s.es.Spec.Target.DeletionPolicy, true, 0) != policy.KeepAll {
		return false
	}
	return slices.ContainsFunc(s.stores.Plan.Sources, func(src render.Source) bool {
		return reads.Entries[handoff.SourceID(src.Store, src.Read)] == handoff.NotFound && render.Required(s.es, src)
	})
}
