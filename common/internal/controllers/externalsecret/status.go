package externalsecret

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// verdict is the result of a reconcile, as the Ready condition shows it.
type verdict = status.Verdict

// synced returns the verdict that the object is in sync; an empty message stands for the default one.
func synced(message string) verdict {
	if message == "" {
		message = "the Secret is in sync"
	}
	return status.Good(v1alpha1.ReasonSecretSynced, message)
}

// conclude writes the conditions of a verdict and its generation into a status.
func conclude(st *v1alpha1.ExternalSecretStatus, generation int64, v verdict) {
	st.ObservedGeneration = generation
	status.Conclude(&st.Conditions, generation, v)
}

// refreshed records a successful refresh. The times are written only with another change or as a heartbeat, so that a
// refresh without changes writes nothing.
func refreshed(st *v1alpha1.ExternalSecretStatus, before *v1alpha1.ExternalSecretStatus, now, next time.Time) {
	if !policy.Beats(timeOf(before.RefreshTime), now) && equality.Semantic.DeepEqual(st, before) {
		return
	}
	st.RefreshTime = &metav1.Time{Time: now.Truncate(time.Second)}
	st.NextRefreshTime = nil
	if !next.IsZero() {
		st.NextRefreshTime = &metav1.Time{Time: next.Truncate(time.Second)}
	}
}

// appliedVerdict returns the verdict after an answer was applied.
func appliedVerdict(s *subject, out render.Output, j writeDecision) verdict {
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
