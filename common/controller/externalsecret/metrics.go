package externalsecret

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var syncs = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "directsecrets_syncs_total",
	Help: "Outcomes of reconciles, by kind of object and reason of its Ready condition.",
}, []string{"kind", "result"})

func init() { metrics.Registry.MustRegister(syncs) }
