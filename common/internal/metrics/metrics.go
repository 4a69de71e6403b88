// Package metrics holds the metrics of the controllers: the results of reconciles, how long a change took, and the state
// of the objects that this process reconciles. No label names an object, so that the number of series is bounded by the
// number of Kinds and reasons.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

var (
	syncs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "directsecrets_syncs_total",
		Help: "Outcomes of reconciles, by kind of object and reason of its Ready condition.",
	}, []string{"kind", "result"})
	changeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "directsecrets_change_to_secret_seconds",
		Help: "Time from a change that the operator has seen, or from the read that found another value, to the write of the Secret.",
		// A second is much for a change of an object; an hour is a store that had to be mended first.
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
	}, []string{"cause"})
)

func init() { metrics.Registry.MustRegister(syncs, changeSeconds, every) }

// Synced counts the outcome of a reconcile.
func Synced(kind, reason string) { syncs.WithLabelValues(kind, reason).Inc() }

// A Cause is what a Secret was written for.
type Cause string

// The causes.
const (
	// Object: an ExternalSecret was created or changed, or somebody asked for a refresh.
	Object Cause = "Object"
	// Provider: a refresh found another value.
	Provider Cause = "Provider"
)

// Wrote notes how long a change took to reach a Secret.
func Wrote(c Cause, took time.Duration) {
	changeSeconds.WithLabelValues(string(c)).Observe(took.Seconds())
}

// pending stands for the reason of an object without a Ready condition.
const pending = "Pending"

// A Standing is how an object stands.
type Standing struct {
	// Status and Reason of its Ready condition.
	Status metav1.ConditionStatus
	Reason string
	// Wrong is since when it has not been as its spec asks; zero if it is.
	Wrong time.Time
	// Interval is how often it is to be refreshed; 0 if nothing is due. Good is when it was in step last.
	Interval time.Duration
	Good     time.Time
}

// Of returns the standing that conditions tell, of an object that was created at a time. What is suspended is
// as it shall be.
func Of(conditions []metav1.Condition, created time.Time) Standing {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil:
		return Standing{Status: metav1.ConditionUnknown, Reason: pending, Wrong: created}
	case c.Status == metav1.ConditionTrue, c.Reason == v1alpha1.ReasonSuspended:
		return Standing{Status: c.Status, Reason: c.Reason}
	}
	return Standing{Status: c.Status, Reason: c.Reason, Wrong: c.LastTransitionTime.Time}
}

// outOfStep returns how long an object has not been as its spec asks: it says so, or its refresh is overdue. A
// refresh may be late by the jitter, a tenth of the interval.
func (s Standing) outOfStep(now time.Time) time.Duration {
	since := s.Wrong
	if since.IsZero() && s.Interval > 0 {
		since = s.Good.Add(s.Interval + s.Interval/10)
	}
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since))
}
