package eventsource_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// TestStatus checks that the status names the event source that reported a change, and none if something else found it.
func TestStatus(t *testing.T) {
	e := newEnv(t)
	wants := func(name, value, by string) {
		t.Helper()
		e.WantSecret(name, "value", value)
		e.Eventually(func() string {
			if got := e.Get(name).Status.EventSource; got != by {
				return "the status of " + name + " with " + value + " names " + got + ", want " + by
			}
			return ""
		})
	}
	for name, interval := range map[string]v1alpha1.Duration{"db": "24h", "polled": "1s"} {
		e.Backend.Put(name, []byte("first"))
		e.Create(e.ExternalSecret(name, func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = interval }))
		wants(name, "first", "")
		e.Backend.Put(name, []byte("second"))
	}
	e.Backend.Queue.Changed("", "db")
	wants("db", "second", "FakeEventSource/events")
	wants("polled", "second", "")

	e.Backend.Put("db", []byte("third"))
	testenv.Update(e.Client, e.Get("db"), testenv.Request("now"))
	wants("db", "third", "")
}
