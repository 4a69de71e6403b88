package kit

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// TestOldest notifies objects, and lets walks over them begin and end.
func TestOldest(t *testing.T) {
	w := NewWalks(&quota.Quotas{}, InFlight)
	c := NewController[string](w, nil)
	if w.Started() {
		t.Error("a controller counts as started before it has a queue")
	}
	c.NewQueue("test", workqueue.DefaultTypedControllerRateLimiter[string]())
	t.Cleanup(c.queue.Load().ShutDown)
	if !w.Started() {
		t.Error("a controller with a queue does not count as started")
	}
	at := map[string]int64{}
	notify := func(step, object, source string) {
		c.Notify(object, source, 0)
		at[step] = w.Moment()
	}
	begin := func(step string) { at[step] = w.Moment() }
	steps := []struct {
		reason string
		do     func()
		// after is the step after which all notifications by "mine" are answered; empty if all are.
		before string
	}{
		{"Nothing was notified.", func() {}, ""},
		{"A notification has no answer yet.", func() { begin("early"); notify("first", "a", "mine") }, "first"},
		{"Those of other sources do not count.", func() { notify("other", "b", "theirs") }, "first"},
		{"A walk that began before does not answer.", func() { c.answered("a", at["early"], time.Now()) }, "first"},
		{"A later notification needs a later walk.", func() { begin("walk"); notify("second", "a", "mine"); c.answered("a", at["walk"], time.Now()) }, "second"},
		{"A walk over another object does not answer.", func() { begin("last"); c.answered("b", at["last"], time.Now()) }, "second"},
		{"A walk that begins before the planned time does not answer.", func() { c.answered("a", at["last"], time.Now().Add(-time.Minute)) }, "second"},
		{"All are answered.", func() { c.answered("a", at["last"], time.Now()) }, ""},
	}
	for _, s := range steps {
		s.do()
		oldest := w.Oldest("mine")
		switch {
		case s.before == "" && oldest != 0:
			t.Errorf("%s: the oldest is %d, want none", s.reason, oldest)
		case s.before == "second" && (oldest <= at["first"] || oldest > at["second"]), s.before == "first" && (oldest <= at["early"] || oldest > at["first"]):
			t.Errorf("%s: the oldest is %d, at %v", s.reason, oldest, at)
		}
	}
	if len(c.notified) > 0 {
		t.Errorf("%v is left", c.notified)
	}
}
