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

// verdict is the outcome of a reconcile, as the Ready condition shows it.
type verdict = status.Verdict

// synced is the verdict that all is well; without a message it has the usual one.
func synced(message string) verdict {
	if message == "" {
		message = "the Secret is in step"
	}
	return status.Good(v1alpha1.ReasonSecretSynced, message)
}

// conclude writes the conditions of a verdict, and the generation that it is about, into a status.
func conclude(st *v1alpha1.ExternalSecretStatus, generation int64, v verdict) {
	st.ObservedGeneration = generation
	status.Conclude(&st.Conditions, generation, v)
}

// refreshed notes a success. The times are written only with another change or as a heartbeat, so
// that a refresh that finds nothing new writes nothing.
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

// judged says what has come of an answer.
func judged(s *subject, out render.Output, e effect) verdict {
	switch {
	case len(e.yields.keys) > 0:
		return status.Stalled(v1alpha1.ReasonConflict, fmt.Sprintf("%q of Secret %q: another ExternalSecret writes them; choose other keys or another spec.target.name", e.yields.keys, s.plan.Target))
	case e.absent:
		return status.Good(v1alpha1.ReasonSecretDeleted, "the provider has nothing of what the spec names, so by deletionPolicy Delete there is no Secret")
	case s.es.Spec.Target.CreationPolicy == v1alpha1.CreateNone:
		return synced("all values can be read; by creationPolicy None no Secret is written")
	case out.Gone != nil:
		return synced("the Secret is in step; without what is gone: " + out.Gone.Message)
	}
	return synced("")
}
