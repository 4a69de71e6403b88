package eventsource

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	received = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "directsecrets_events_received_total",
		Help: "Messages received from the queues of event sources, by event source kind.",
	}, []string{"kind"})
	matchedEvents = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "directsecrets_events_matched_total",
		Help: "Messages about a secret that an object reads or pushes, by event source kind.",
	}, []string{"kind"})
	malformed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "directsecrets_events_malformed_total",
		Help: "Messages that report no change of a secret, by event source kind.",
	}, []string{"kind"})
	lag = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "directsecrets_event_lag_seconds",
		Help:    "Time from the send of a message to the end of the refreshes that it caused, by event source kind.",
		Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 30, 60, 300},
	}, []string{"kind"})
)

func init() { metrics.Registry.MustRegister(received, matchedEvents, malformed, lag) }
