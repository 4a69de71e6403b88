package policy

import (
	"testing"
	"time"
)

// reverted returns the state after n reverts with a fixed interval between them, and the time of the last one.
func reverted(n int, every time.Duration) (RevertBackoff, time.Time) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var f RevertBackoff
	for i := range n {
		if i > 0 {
			now = now.Add(every)
		}
		f = f.Revert(now)
	}
	return f, now
}

func TestConflictBackoff(t *testing.T) {
	cases := map[string]struct {
		reason  string
		reverts int
		every   time.Duration
		later   time.Duration
		want    time.Duration
	}{
		"Peace":           {"Drift is reverted at once.", 0, 0, 0, 0},
		"One":             {"Five reverts do not wait.", 1, 0, 0, 0},
		"Four":            {"Five reverts do not wait.", 4, 0, 0, 0},
		"Five":            {"The sixth revert waits for a second.", 5, 0, 0, time.Second},
		"Six":             {"The wait doubles.", 6, 0, 0, 2 * time.Second},
		"Seven":           {"The wait doubles.", 7, 0, 0, 4 * time.Second},
		"Thirteen":        {"This is the last doubling below the maximum.", 13, 0, 0, 256 * time.Second},
		"Fourteen":        {"The wait is at most five minutes.", 14, 0, 0, 5 * time.Minute},
		"Hundred":         {"A large count does not overflow.", 100, 0, 0, 5 * time.Minute},
		"Elapsing":        {"The wait counts from the last revert.", 7, 0, time.Second, 3 * time.Second},
		"Elapsed":         {"After the wait, drift is reverted at once.", 7, 0, 4 * time.Second, 0},
		"LongElapsed":     {"The wait is never negative.", 7, 0, time.Minute, 0},
		"LongestElapsing": {"The longest wait ends, too.", 50, 0, 5*time.Minute - 1, 1},
		"LongestElapsed":  {"The longest wait ends, too.", 50, 0, 5 * time.Minute, 0},
		"Slow":            {"Reverts less than ten minutes apart count together.", 6, 10*time.Minute - 1, 0, 2 * time.Second},
		"Peaceful":        {"Reverts ten minutes apart do not count together.", 100, 10 * time.Minute, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, last := reverted(tc.reverts, tc.every)
			if got := f.Wait(last.Add(tc.later)); got != tc.want {
				t.Errorf("\n%s\nWait(): %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestConflictBackoffEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		pause  time.Duration
		want   time.Duration
	}{
		"AfterTheWait": {"A revert right after the wait is followed by a longer wait.", 5 * time.Minute, 5 * time.Minute},
		"Almost":       {"Less than ten minutes without a revert do not reset the count.", 10*time.Minute - 1, 5 * time.Minute},
		"Peace":        {"Ten minutes without a revert reset the count.", 10 * time.Minute, 0},
		"LongPeace":    {"More than ten minutes reset the count, too.", 24 * time.Hour, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, now := reverted(50, 0)
			now = now.Add(tc.pause)
			if got := f.Wait(now); got != 0 {
				t.Errorf("\n%s\nWait() before the revert: %s, want none", tc.reason, got)
			}
			if got := f.Revert(now).Wait(now); got != tc.want {
				t.Errorf("\n%s\nWait() after the revert: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	f, now := reverted(50, 0)
	now = now.Add(10 * time.Minute)
	for i := range 4 {
		if f = f.Revert(now); f.Wait(now) != 0 {
			t.Errorf("revert %d after the reset is followed by a wait of %s, want none", i+1, f.Wait(now))
		}
	}
	if got := f.Revert(now).Wait(now); got != time.Second {
		t.Errorf("after the fifth the wait is %s, want it to start again with a second", got)
	}
}

// TestConflictBackoffIsMonotone checks that more reverts never wait for less, and that waits get shorter over time.
func TestConflictBackoffIsMonotone(t *testing.T) {
	times := []time.Duration{0, 1, time.Second, time.Minute, 5*time.Minute - 1, 5 * time.Minute, 10*time.Minute - 1, 10 * time.Minute, time.Hour}
	shorter := make([]time.Duration, len(times))
	for n := range 30 {
		f, last := reverted(n, 0)
		before := 5 * time.Minute
		for i, d := range times {
			got := f.Wait(last.Add(d))
			if got < 0 || got > before {
				t.Errorf("%d reverts, %s later: Wait(): %s, want at least 0 and at most the %s of before", n, d, got, before)
			}
			if got < shorter[i] {
				t.Errorf("%d reverts, %s later: Wait(): %s, want at least the %s of fewer reverts", n, d, got, shorter[i])
			}
			before, shorter[i] = got, got
		}
	}
}
