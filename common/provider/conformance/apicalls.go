package conformance

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// APICalls returns the number of counted requests for a kind, by operation and code with a space between them. Each
// test should use its own kind, so that it does not see the requests of other tests.
func APICalls(t testing.TB, kind string) map[string]int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, f := range families {
		if f.GetName() != "directsecrets_provider_api_calls_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["kind"] == kind {
				counts[labels["operation"]+" "+labels["code"]] = int(m.GetCounter().GetValue())
			}
		}
	}
	return counts
}
