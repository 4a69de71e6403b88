package contribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// due says why the stores are to be read for the part.
func (r *Reconciler) due(s *subject) policy.Why {
	reads, plan := r.reads(s), s.stores.Plan
	now := r.opts.Now()
	switch {
	case !policy.Periodic(s.es.Spec.RefreshPolicy, plan.Interval):
		s.obj.next = time.Time{}
	default:
		s.obj.next = policy.Planned(s.obj.next, reads.Next, now, r.started, plan.Interval, r.opts.Random())
	}
	covered := len(reads.Entries) == len(plan.Sources) && !slices.ContainsFunc(plan.Sources, func(src render.Source) bool {
		_, ok := reads.Entries[handoff.SourceID(src.Store, src.Read)]
		return !ok
	})
	if s.es.Spec.Target.Immutable && covered {
		return policy.NotDue // It is written once, and so reading stops.
	}
	inStep := meta.IsStatusConditionTrue(s.es.Status.Conditions, v1alpha1.ConditionReady)
	in := policy.RefreshInput{
		Policy: s.es.Spec.RefreshPolicy, Interval: plan.Interval, Now: now,
		Refreshed: covered || inStep && reads.Version != "", Failing: s.obj.failing || s.lacks(reads) || r.failedBefore(s),
		Next: s.obj.next, Generation: 1,
		MetadataHash: s.metadata(), ObservedMetadataHash: reads.Metadata,
		Request: s.es.Annotations[v1alpha1.RefreshRequestAnnotation], ObservedRequest: reads.Request,
	}
	if covered {
		in.ObservedGeneration = in.Generation
	}
	return policy.RefreshDue(in)
}

// reads is what the part holds that nobody else has written.
func (r *Reconciler) reads(s *subject) handoff.Reads {
	if s.part == nil || s.record.Reads == nil || s.record.UID != s.es.UID || s.part.DeletionTimestamp != nil ||
		!r.parts.isOurs(s) || s.obj.part.version.Edited(s.part) {
		return handoff.Reads{}
	}
	return *s.record.Reads
}

// failedBefore reports whether the last attempt failed, where an earlier process made it.
func (r *Reconciler) failedBefore(s *subject) bool {
	told := r.teller.Of(s.es.Status.Parts)
	return !s.obj.attempts.Begun() && told != nil && told.Message != ""
}

// lacks reports whether something did not exist that the object is not in step without.
func (s *subject) lacks(reads handoff.Reads) bool {
	if policy.OnGone(s.es.Spec.Target.DeletionPolicy, true, 0) != policy.KeepAll {
		return false
	}
	return slices.ContainsFunc(s.stores.Plan.Sources, func(src render.Source) bool {
		return reads.Entries[handoff.SourceID(src.Store, src.Read)] == handoff.NotFound && render.Required(s.es, src)
	})
}
