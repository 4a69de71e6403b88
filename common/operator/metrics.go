package operator

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// buildInfo tells modules apart whatever a scraper calls its targets.
var buildInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "directsecrets_build_info",
	Help: "1 for the module that runs, with the class of its stores and the version of common that it was built from.",
}, []string{"module", "class", "version"})

func init() { metrics.Registry.MustRegister(buildInfo) }
