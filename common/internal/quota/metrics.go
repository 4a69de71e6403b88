package quota

import "github.com/prometheus/client_golang/prometheus"

// waitingDesc has no series for a tenant without callers that wait, but always one for each resource, with an empty tenant.
var waitingDesc = prometheus.NewDesc("directsecrets_share_waiting",
	"Callers that wait because their tenant has used up its share, by what they wait for: calls, lists, rate, memory, work, slots or walks. "+
		"With --metrics-per-object also by tenant, which is a namespace or a cluster store.",
	[]string{"tenant", "resource"}, nil)

// resources are what callers can wait for.
var resources = []string{"calls", "lists", "memory", "rate", "slots", "walks", "work"}

// Waits counts a caller that waits for something, until it calls done.
func (t *Tenant) Waits(what string) (done func()) {
	if t == nil {
		return func() {}
	}
	t.count(what, 1)
	return func() { t.count(what, -1) }
}

func (t *Tenant) count(what string, n int) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if t.waiting == nil {
		t.waiting = map[string]int{}
	}
	if t.waiting[what] += n; t.waiting[what] == 0 {
		delete(t.waiting, what)
	}
}

// Describe implements prometheus.Collector.
func (q *Quotas) Describe(descs chan<- *prometheus.Desc) { descs <- waitingDesc }

// Collect implements prometheus.Collector.
func (q *Quotas) Collect(series chan<- prometheus.Metric) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := func(tenant, what string, n int) {
		series <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(n), tenant, what)
	}
	sum := map[string]int{}
	for name, t := range q.tenants {
		for what, n := range t.waiting {
			if sum[what] += n; q.PerTenant {
				waiting(name, what, n)
			}
		}
	}
	for _, what := range resources {
		waiting("", what, sum[what])
	}
}
