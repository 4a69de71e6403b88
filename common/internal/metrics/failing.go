package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// mostFailing is the maximum number of failing objects of a process that have their own series. A namespace can use
// all that other namespaces do not need, and never gets less than its equal share.
const mostFailing = 1000

// settling is how long the status of an object can be Unknown before the object counts as failing. A new object
// starts as Unknown.
const settling = time.Minute

var (
	failingSince = prometheus.NewDesc("directsecrets_failing_since_timestamp_seconds",
		"Time since which an object, store or generator fails, in Unix seconds. Only failing objects have a series.",
		[]string{"object_namespace", "name", "kind", "reason"}, nil)
	failingLeftOut = prometheus.NewDesc("directsecrets_failing_left_out",
		"Failing objects without a series of their own, because the limit of series is reached.", nil, nil)
)

// PerObject adds a series for each failing object to the metrics of this process. It may be called more than once.
func PerObject() error {
	err := metrics.Registry.Register(&failing{every, mostFailing})
	if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil
	}
	return errors.Wrap(err, "cannot add a metric for each failing object")
}

// failing collects the failing objects of all ledgers. It keeps no state between scrapes.
type failing struct {
	of   *ledgers
	most int
}

// Describe implements prometheus.Collector.
func (f *failing) Describe(to chan<- *prometheus.Desc) {
	to <- failingSince
	to <- failingLeftOut
}

// Collect implements prometheus.Collector.
func (f *failing) Collect(to chan<- prometheus.Metric) {
	all := f.of.failing()
	shown := share(all, f.most)
	for _, o := range shown {
		to <- prometheus.MustNewConstMetric(failingSince, prometheus.GaugeValue, float64(o.since.Unix()), o.key.Namespace, o.key.Name, o.kind, o.reason)
	}
	to <- prometheus.MustNewConstMetric(failingLeftOut, prometheus.GaugeValue, float64(len(all)-len(shown)))
}

// failure is an object that fails.
type failure struct {
	key          types.NamespacedName
	kind, reason string
	since        time.Time
}

// compare orders failures by namespace, then by time, the oldest first. So a new failure does not displace an
// existing series.
func (f failure) compare(o failure) int {
	return cmp.Or(cmp.Compare(f.key.Namespace, o.key.Namespace), f.since.Compare(o.since), cmp.Compare(f.kind, o.kind), cmp.Compare(f.key.Name, o.key.Name))
}

// failing returns each failing object once: two ledgers can hold one object while it moves from one controller to
// another.
func (c *ledgers) failing() []failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []failure
	for l := range c.all {
		all = l.failing(all)
	}
	slices.SortFunc(all, func(a, b failure) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name), b.since.Compare(a.since))
	})
	return slices.CompactFunc(all, func(a, b failure) bool { return a.kind == b.kind && a.key == b.key })
}

// failing appends the objects of a Ledger that fail.
func (l *Ledger) failing(to []failure) []failure {
	if !l.counts() {
		return to
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, s := range l.m {
		if fails := s.fails(now); fails && !l.restarts || l.restarts && !s.Wrong.IsZero() {
			to = append(to, failure{key, l.kind, s.Reason, s.Wrong})
		}
	}
	return to
}

// fails reports whether an object is out of sync with its spec, by its status.
func (s State) fails(now time.Time) bool {
	switch s.Status {
	case metav1.ConditionTrue:
		return false
	case metav1.ConditionFalse:
		return s.Reason != v1alpha1.ReasonSuspended
	}
	return !s.Wrong.IsZero() && now.Sub(s.Wrong) >= settling
}

// share returns up to most of the failures. Namespaces get equal shares; the unused part of a share goes to the other
// namespaces. So no namespace can crowd out another one.
func share(all []failure, most int) []failure {
	if len(all) <= most {
		return all
	}
	slices.SortFunc(all, failure.compare)
	var namespaces [][]failure
	for start, i := 0, 1; i <= len(all); i++ {
		if i == len(all) || all[i].key.Namespace != all[start].key.Namespace {
			namespaces = append(namespaces, all[start:i])
			start = i
		}
	}
	slices.SortStableFunc(namespaces, func(a, b []failure) int { return cmp.Compare(len(a), len(b)) })
	shown := make([]failure, 0, most)
	for i, of := range namespaces {
		left, takers := most-len(shown), len(namespaces)-i
		shown = append(shown, of[:min(len(of), (left+takers-1)/takers)]...)
	}
	return shown
}
