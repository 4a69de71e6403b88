// Package metrics holds the metrics of the controllers: the results of reconciles, the duration of changes, and the
// state of the objects that this process reconciles. No label names an object, so the number of Kinds and reasons
// limits the number of series. The exception is the series of failing objects, which are off by default and limited
// in number.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

var (
	syncs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "directsecrets_syncs_total",
		Help: "Outcomes of reconciles, by kind of object and reason of its Ready condition.",
	}, []string{"kind", "result"})
	changeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "directsecrets_change_to_secret_seconds",
		Help: "Time from the change of an object, or from the read that found a new value, to the write of the Secret.",
		// A change of an object takes less than a second; an hour is for a store that had to be fixed first.
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
	}, []string{"cause"})
)

var changes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "directsecrets_changes_found_total",
	Help: "Changed values that a refresh has found, by what caused the refresh: Event or Polling.",
}, []string{"cause"})

func init() {
	metrics.Registry.MustRegister(syncs, changeSeconds, changes, every)
	changes.WithLabelValues(Polling) // From 0 on, so that the first change is an increase.
}

// The causes of a refresh that found a changed value.
const (
	Event   = "Event"
	Polling = "Polling"
)

// Found counts a changed value.
func Found(cause string) { changes.WithLabelValues(cause).Inc() }

// Synced counts the outcome of a reconcile.
func Synced(kind, reason string) { syncs.WithLabelValues(kind, reason).Inc() }

// A Cause is why a Secret was written.
type Cause string

// The causes.
const (
	// Object: an ExternalSecret was created or changed, or the user asked for a refresh.
	Object Cause = "Object"
	// Provider: a refresh found another value.
	Provider Cause = "Provider"
)

// Wrote records the time from a change to the write of the Secret.
func Wrote(c Cause, took time.Duration) {
	changeSeconds.WithLabelValues(string(c)).Observe(took.Seconds())
}

// pending is the reason of an object without a Ready condition.
const pending = "Pending"

// A State is the state of an object for the metrics.
type State struct {
	// Status and Reason are copied from its Ready condition.
	Status metav1.ConditionStatus
	Reason string
	// Wrong is since when it has been out of sync with its spec; zero if it is in sync.
	Wrong time.Time
	// Interval is its refresh interval; 0 if no refresh is due. Good is when it was last in sync.
	Interval time.Duration
	Good     time.Time
}

// Of returns the State for the conditions of an object. An object that is held back counts as in sync.
func Of(conditions []metav1.Condition, created time.Time) State {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case c == nil:
		return State{Status: metav1.ConditionUnknown, Reason: pending, Wrong: created}
	case c.Status == metav1.ConditionTrue, status.HeldBack(c.Reason):
		return State{Status: c.Status, Reason: c.Reason}
	}
	return State{Status: c.Status, Reason: c.Reason, Wrong: c.LastTransitionTime.Time}
}

// outOfStep returns how long an object has been out of sync with its spec: by its condition, or because its refresh
// is overdue. A refresh can be late by the jitter, a tenth of the interval.
func (s State) outOfStep(now time.Time) time.Duration {
	since := s.Wrong
	if since.IsZero() && s.Interval > 0 {
		since = s.Good.Add(s.Interval + s.Interval/10)
	}
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since))
}
