package restart

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/restart"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// states returns the States of objects for the metrics, by name.
func states(objects []*restart.Object, now time.Time) map[string]metrics.State {
	all := map[string]metrics.State{}
	for _, o := range objects {
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionWorkloadsRestarted)
		if c == nil {
			continue
		}
		s := metrics.State{Status: c.Status, Reason: c.Reason}
		if o.Status.RestartFailure() != nil {
			s.Wrong = now
		}
		all[o.Name] = s
	}
	return all
}

// recordEvent emits an event when the restarts of an object start to fail, fail in another way, or recover.
func (r *Reconciler) recordEvent(es *v1alpha1.ExternalSecret, was *metav1.Condition) {
	c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionWorkloadsRestarted)
	sort := corev1.EventTypeNormal
	switch is := es.Status.RestartFailure(); {
	case is != nil && (was == nil || was.Reason != is.Reason || was.Message != is.Message):
		sort = corev1.EventTypeWarning
	case is != nil, was == nil, c == nil:
		return
	}
	r.events.Eventf(es, nil, sort, c.Reason, "Restart", "%s", status.Cut(c.Message, status.MaxNote))
}
