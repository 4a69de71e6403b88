package dispatch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// TestDay counts the calls of a day for ten thousand objects of one store, by a simulated clock. With events, and polling each day, they
// are at most a twentieth of those with polling each hour.
func TestDay(t *testing.T) {
	t.Parallel()
	const objects, changes = 10_000, 500
	var hourly, daily int
	synctest.Test(t, func(t *testing.T) { hourly = callsOfADay(t, objects, time.Hour, 0) })
	synctest.Test(t, func(t *testing.T) { daily = callsOfADay(t, objects, 24*time.Hour, changes) })
	if daily < objects/2 || daily*20 > hourly {
		t.Errorf("a day of polling each hour has %d calls, and one of polling each day with %d changes has %d", hourly, changes, daily)
	}
	t.Logf("%d calls with polling each hour, %d with %d events and polling each day", hourly, daily, changes)
}

// callsOfADay returns the calls of one day for objects that are refreshed at an interval, and some of them again after a change. The
// first refreshes are spread over the interval before.
func callsOfADay(t *testing.T, objects int, interval time.Duration, changes int) int {
	const day = 24 * time.Hour
	random := rand.New(rand.NewPCG(1, 2))
	var due []time.Duration
	for range objects {
		for at := time.Duration(random.Int64N(int64(interval))); at < day; at += policy.Jitter(interval, random.Float64()) {
			due = append(due, at)
		}
	}
	for range changes {
		due = append(due, time.Duration(random.Int64N(int64(day))))
	}
	slices.Sort(due)
	all := keys(0, objects)
	b := filled(objects)
	l := connected(t, connectTo(b), Options{})
	start := time.Now()
	for _, at := range due {
		time.Sleep(time.Until(start.Add(at)))
		key := all[random.IntN(objects)]
		go func() {
			_, release, err := l.Read(t.Context(), readsOf(key), false, time.Time{})
			if err != nil {
				t.Error(err)
				return
			}
			release()
		}()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	return b.Reads()
}
