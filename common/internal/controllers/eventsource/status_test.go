package eventsource_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
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

// TestRecreated deletes an event source, and creates one of its name with another queue, while the operator's watch is broken. Both
// have the generation 1.
func TestRecreated(t *testing.T) {
	e := testenv.NewIdle(t)
	other := e.Server.Backend("other")
	watch := testenv.NewBreak("fakeeventsources")
	e.Config.Wrap(watch.Wrap)
	e.Start()
	e.Create(source(e, "events"))
	wantEvent := func(b *fake.Backend, value string) {
		t.Helper()
		e.Backend.Put("db", []byte(value))
		b.Queue.Changed("", "db")
		wantEmpty(e, &b.Queue)
		e.WantSecret("db", "value", value)
	}
	e.Backend.Put("db", []byte("first"))
	e.Create(e.ExternalSecret("db", seldom))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	wantEvent(e.Backend, "second")

	restore := watch.Start()
	e.Delete(source(e, "events"))
	again := source(e, "events")
	again.Spec.Backend = "other"
	e.Create(again)
	restore()
	e.Want(again, v1alpha1.ReasonStoreValid)
	wantEvent(other, "third")
	e.Backend.Queue.Changed("", "db")
	wantEvent(other, "fourth")
	if n := e.Backend.Queue.Left(); n != 1 {
		t.Errorf("the queue of the deleted event source has %d messages, want 1 that is not received", n)
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

// TestMissed changes a secret without an event whose changes were reported before. The event source says so when polling finds it.
func TestMissed(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("first"))
	e.Create(e.ExternalSecret("db", func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = "2s" }))
	e.WantSecret("db", "value", "first")
	for n := 0; e.Get("db").Status.EventSource == ""; n++ { // A poll can find a change before its event comes.
		value := fmt.Sprintf("reported-%d", n)
		e.Backend.Put("db", []byte(value))
		e.Backend.Queue.Changed("", "db")
		e.WantSecret("db", "value", value)
		wantEmpty(e, &e.Backend.Queue)
	}
	ready := func() string {
		o := source(e, "events")
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error()
		}
		return meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReady).Message
	}
	const warning = "that no event reported"
	if is := ready(); strings.Contains(is, warning) {
		t.Errorf("before, the condition says %q", is)
	}
	e.Backend.Put("db", []byte("silent"))
	e.WantSecret("db", "value", "silent")
	e.Eventually(func() string {
		if is := ready(); !strings.Contains(is, warning) {
			return "the condition says " + is
		}
		return ""
	})
}
