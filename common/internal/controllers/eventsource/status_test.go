package eventsource_test

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestSameName sends events about secrets that share one of their names, as those of two accounts do, within a second.
func TestSameName(t *testing.T) {
	e := newEnv(t)
	ids := []string{"id-0", "id-1", "id-2"}
	for _, id := range ids {
		e.Backend.Put(id, []byte("old"))
		e.Create(e.ExternalSecret(id, seldom, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].RemoteRef.Key = id }))
		e.WantReady(id, v1alpha1.ReasonSecretSynced)
	}
	for _, id := range ids {
		e.Backend.Put(id, []byte("new"))
		e.Backend.Queue.Send(provider.Message{Events: []provider.Event{{Kind: "FakeStore", Names: []string{"db", id}}}})
	}
	wantEmpty(e, &e.Backend.Queue)
	for _, id := range ids {
		e.WantSecret(id, "value", "new")
	}
}

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
