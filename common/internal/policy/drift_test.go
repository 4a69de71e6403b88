package policy

import (
	"testing"
	"time"
)

// fought returns a fight of n reverts, one every so often, and the time of the last.
func fought(n int, every time.Duration) (Fight, time.Time) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var f Fight
	for i := range n {
		if i > 0 {
			now = now.Add(every)
		}
		f = f.Revert(now)
	}
	return f, now
}

func TestFightWait(t *testing.T) {
	cases := map[string]struct {
		reason  string
		reverts int
		every   time.Duration
		later   time.Duration
		want    time.Duration
	}{
		"Peace":           {"Drift is reverted at once.", 0, 0, 0, 0},
		"One":             {"Five reverts are free.", 1, 0, 0, 0},
		"Four":            {"Five reverts are free.", 4, 0, 0, 0},
		"Five":            {"The one after the fifth waits for a second.", 5, 0, 0, time.Second},
		"Six":             {"The wait doubles.", 6, 0, 0, 2 * time.Second},
		"Seven":           {"The wait doubles.", 7, 0, 0, 4 * time.Second},
		"Thirteen":        {"The last doubling below the bound.", 13, 0, 0, 256 * time.Second},
		"Fourteen":        {"It never waits for more than five minutes.", 14, 0, 0, 5 * time.Minute},
		"Hundred":         {"A shift does not overflow.", 100, 0, 0, 5 * time.Minute},
		"Elapsing":        {"The wait counts from the last revert.", 7, 0, time.Second, 3 * time.Second},
		"Elapsed":         {"Then it is free.", 7, 0, 4 * time.Second, 0},
		"LongElapsed":     {"It is never negative.", 7, 0, time.Minute, 0},
		"LongestElapsing": {"Five minutes end, too.", 50, 0, 5*time.Minute - 1, 1},
		"LongestElapsed":  {"Five minutes end, too.", 50, 0, 5 * time.Minute, 0},
		"Slow":            {"Reverts less than ten minutes apart are one fight.", 6, 10*time.Minute - 1, 0, 2 * time.Second},
		"Peaceful":        {"Reverts ten minutes apart are none.", 100, 10 * time.Minute, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, last := fought(tc.reverts, tc.every)
			if got := f.Wait(last.Add(tc.later)); got != tc.want {
				t.Errorf("\n%s\nWait(): %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFightEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		pause  time.Duration
		want   time.Duration
	}{
		"AfterTheWait": {"Who goes on after the wait waits for longer.", 5 * time.Minute, 5 * time.Minute},
		"Almost":       {"Less than ten minutes are no peace.", 10*time.Minute - 1, 5 * time.Minute},
		"Peace":        {"Ten minutes of peace, and five reverts are free again.", 10 * time.Minute, 0},
		"LongPeace":    {"More is peace, too.", 24 * time.Hour, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, now := fought(50, 0)
			now = now.Add(tc.pause)
			if got := f.Wait(now); got != 0 {
				t.Errorf("\n%s\nWait() before the revert: %s, want none", tc.reason, got)
			}
			if got := f.Revert(now).Wait(now); got != tc.want {
				t.Errorf("\n%s\nWait() after the revert: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	f, now := fought(50, 0)
	now = now.Add(10 * time.Minute)
	for i := range 4 {
		if f = f.Revert(now); f.Wait(now) != 0 {
			t.Errorf("revert %d after the peace is followed by a wait of %s, want none", i+1, f.Wait(now))
		}
	}
	if got := f.Revert(now).Wait(now); got != time.Second {
		t.Errorf("after the fifth the wait is %s, want it to begin anew with a second", got)
	}
}

// TestFightIsMonotone checks that a longer fight never waits for less, and that time only helps.
func TestFightIsMonotone(t *testing.T) {
	times := []time.Duration{0, 1, time.Second, time.Minute, 5*time.Minute - 1, 5 * time.Minute, 10*time.Minute - 1, 10 * time.Minute, time.Hour}
	shorter := make([]time.Duration, len(times))
	for n := range 30 {
		f, last := fought(n, 0)
		before := 5 * time.Minute
		for i, d := range times {
			got := f.Wait(last.Add(d))
			if got < 0 || got > before {
				t.Errorf("%d reverts, %s later: Wait(): %s, want at least 0 and at most the %s of before", n, d, got, before)
			}
			if got < shorter[i] {
				t.Errorf("%d reverts, %s later: Wait(): %s, want at least the %s of a shorter fight", n, d, got, shorter[i])
			}
			before, shorter[i] = got, got
		}
	}
}
