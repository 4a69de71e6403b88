package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestVolume(t *testing.T) {
	t.Parallel()
	const full = volumeBurst
	type wait struct{ Periodic, Urgent time.Duration }
	cases := map[string]struct {
		reason string
		spent  []int64
		after  time.Duration
		want   wait
	}{
		"Nothing":   {"a store starts with all that it may", nil, 0, wait{}},
		"Burst":     {"a burst is answered at once", []int64{full}, 0, wait{}},
		"More":      {"what exceeds it is made up for", []int64{full, volumeRate}, 0, wait{Periodic: time.Second}},
		"Urgent":    {"urgent reads have as much again", []int64{full, full, volumeRate}, 0, wait{Periodic: (full/volumeRate + 1) * time.Second, Urgent: time.Second}},
		"Later":     {"a second makes up for some", []int64{full, 2 * volumeRate}, time.Second, wait{Periodic: time.Second}},
		"MuchLater": {"and never for more than was spent", []int64{full}, time.Hour, wait{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v volume
			now := time.Now()
			for _, n := range tc.spent {
				v.spend(now, n)
			}
			now = now.Add(tc.after)
			got := wait{v.wait(now, false), v.wait(now, true)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVolumeOfAStore has objects read as often as they can. The store is asked no more often than its volume allows, and a new
// object is not held back by that.
func TestVolumeOfAStore(t *testing.T) {
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
		if want := (reads*callCost - volumeBurst) / volumeRate * time.Second; took < want {
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
