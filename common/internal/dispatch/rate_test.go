package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// TestRate has objects read as often as they can. The store is asked no more often than its tenant may ask, and a new
// object is not held back by that.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(1, fake.BatchSize(1))
		l := connected(t, connectTo(b), Options{})
		begin := time.Now()
		const reads = 10_000
		for range reads {
			a := ask(l, Periodic, "k0")
			for a.done.Load() == 0 {
				time.Sleep(ms)
				synctest.Wait()
			}
			a.take()
		}
		took := time.Since(begin)
		if want := (reads*budget.Call - budget.Burst) / budget.Rate * time.Second; took < want {
			t.Errorf("%d reads took %s, want at least %s", reads, took, want)
		}
		begin = time.Now()
		a := ask(l, New, "k0")
		time.Sleep(10 * ms)
		synctest.Wait()
		if a.done.Load() == 0 {
			t.Errorf("a new object waits for longer than %s", time.Since(begin))
		}
		a.take()
		idle(t, l)
	})
}
