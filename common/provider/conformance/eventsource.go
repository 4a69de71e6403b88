package conformance

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A QueueHarness connects an event source to a queue of a server.
type QueueHarness struct {
	// Kind is the event source Kind, and Service the name and version of the server, for the table of results.
	Kind, Service string
	// Connect returns the event source. The test closes it.
	Connect func(t *testing.T) provider.EventSource
	// Change changes a secret at the service, so that a message is in the queue. It returns the event.
	Change func(t *testing.T) provider.Event
	// Send puts a message into the queue that no service has sent.
	Send func(t *testing.T, body string)
	// Redeliver ends the hold of all messages.
	Redeliver func(t *testing.T)
	// Left returns the number of messages in the queue.
	Left func(t *testing.T) int
}

// queueCheck is a check of an event source with an empty queue.
type queueCheck struct {
	name, reason string
	run          func(t *testing.T, h QueueHarness, q provider.EventSource)
}

var queueChecks = []queueCheck{
	{"events", "A message says which secret has changed, and when it was sent.", func(t *testing.T, h QueueHarness, q provider.EventSource) {
		want := h.Change(t)
		m := receive(t, q, 1)[0]
		if len(m.Events) != 1 || m.Malformed != "" || m.Receipt == "" || time.Since(m.Sent) > time.Minute {
			t.Fatalf("the message is %+v, want one event, a receipt, and the time at which it was sent", m)
		}
		got := m.Events[0]
		if missing := slices.DeleteFunc(slices.Clone(want.Names), func(n string) bool { return slices.Contains(got.Names, n) }); got.Kind != want.Kind || got.Version != want.Version || len(missing) > 0 {
			t.Errorf("the event is %+v, want %+v", got, want)
		}
	}},
	{"held", "A message is delivered once until its hold ends.", func(t *testing.T, h QueueHarness, q provider.EventSource) {
		h.Change(t)
		first := receive(t, q, 1)[0]
		h.Change(t)
		if again := receive(t, q, 1)[0]; again.Receipt == first.Receipt {
			t.Error("the same message is delivered twice")
		}
	}},
	{"redelivered", "A message that is not acknowledged is delivered again.", func(t *testing.T, h QueueHarness, q provider.EventSource) {
		h.Change(t)
		receive(t, q, 1)
		h.Redeliver(t)
		receive(t, q, 1)
	}},
	{"extended", "Extend keeps a message from being delivered again, and does not remove it.", func(t *testing.T, h QueueHarness, q provider.EventSource) {
		h.Change(t)
		held := receive(t, q, 1)
		h.Redeliver(t)
		if err := q.Extend(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		h.Change(t)
		receive(t, q, 1)
		if n := h.Left(t); n != 2 {
			t.Errorf("%d messages are left, want 2", n)
		}
	}},
	{"acknowledged", "Ack removes messages, and only those.", func(t *testing.T, h QueueHarness, q provider.EventSource) {
		for range 3 {
			h.Change(t)
		}
		all := receive(t, q, 3)
		if err := q.Ack(t.Context(), all[:2]); err != nil {
			t.Fatal(err)
		}
		if n := h.Left(t); n != 1 {
			t.Errorf("%d messages are left, want 1", n)
		}
		if err := q.Ack(t.Context(), all[:2]); err != nil {
			t.Errorf("Ack of removed messages: %v", err)
		}
	}},
	{"malformed", "A foreign message is malformed, and is not quoted.", func(t *testing.T, h QueueHarness, q provider.EventSource) {
		for _, body := range []string{secretText, "{" + secretText, `{"` + secretText + `":1}`, `[]`, `null`, `{}`, "\x01"} {
			h.Send(t, body)
			m := receive(t, q, 1)[0]
			if len(m.Events) > 0 || m.Malformed == "" || strings.Contains(m.Malformed, secretText) {
				t.Errorf("message %q is %+v", body, m)
			}
			if err := q.Ack(t.Context(), []provider.Message{m}); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"canceled", "Receive ends with its context.", func(t *testing.T, _ QueueHarness, q provider.EventSource) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		messages, _ := q.Receive(ctx) // There may be an error.
		if took := time.Since(start); len(messages) > 0 || took > 5*time.Second {
			t.Errorf("it returned %d messages after %s", len(messages), took)
		}
	}},
}

// secretText stands for what a message could contain.
const secretText = "hunter2"

// RunQueue checks an event source.
func RunQueue(t *testing.T, h QueueHarness) {
	t.Helper()
	var failed atomic.Int64
	for _, c := range queueChecks {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					failed.Add(1)
					t.Log(c.reason)
				}
			}()
			q := h.Connect(t)
			t.Cleanup(func() { _ = provider.Close(q) }) // The test does not depend on a clean end.
			c.run(t, h, q)
			h.Redeliver(t)
			for h.Left(t) > 0 {
				if err := q.Ack(t.Context(), receive(t, q, 1)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	Result{Kind: h.Kind, Service: h.Service, Capability: provider.CapabilityReceive, Passed: len(queueChecks) - int(failed.Load()), Failed: int(failed.Load())}.Log(t)
}

// receive returns n messages or more.
func receive(t *testing.T, q provider.EventSource, n int) (all []provider.Message) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(all) < n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages arrived, want %d", len(all), n)
		}
		messages, err := q.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, messages...)
	}
	return all
}
