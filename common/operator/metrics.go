package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// buildInfo identifies the module independently of a scraper's target names.
var buildInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "directsecrets_build_info",
	Help: "Always 1, with the module, its controller class and the version of common that it was built with.",
}, []string{"module", "class", "version"})

// refusedRequests are those of senders to event receivers.
var refusedRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "directsecrets_event_requests_refused_total",
	Help: "Requests to event receivers that were refused, by reason.",
}, []string{"reason"})

func init() {
	metrics.Registry.MustRegister(buildInfo, refusedRequests)
	refusedRequests.WithLabelValues("Unauthenticated") // From 0 on, so that the first refusal is an increase.
}
