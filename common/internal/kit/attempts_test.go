package kit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBegin(t *testing.T) {
	a := Attempt{Generation: 1, Request: "r"}
	cases := map[string]struct {
		reason string
		next   Attempt
		after  time.Duration
		want   time.Duration
	}{
		"Same":       {"The same attempt waits for the full delay.", a, 0, time.Minute},
		"Meanwhile":  {"The same attempt waits for the rest of the delay.", a, 20 * time.Second, 40 * time.Second},
		"Over":       {"After the delay the same attempt starts.", a, time.Minute, 0},
		"Generation": {"A new spec does not wait.", Attempt{Generation: 2, Request: "r"}, 0, 0},
		"Request":    {"A new request does not wait.", Attempt{Generation: 1, Request: "s"}, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &Attempts{}
				if wait, changed := o.Begin(a); wait > 0 || changed {
					t.Errorf("Begin(): the first attempt waits %s, changed %t", wait, changed)
				}
				o.Fail(time.Minute)
				time.Sleep(tc.after)
				wait, changed := o.Begin(tc.next)
				if wait != tc.want || changed == (tc.next == a) {
					t.Errorf("\n%s\nBegin(): %s, changed %t, want %s", tc.reason, wait, changed, tc.want)
				}
			})
		})
	}
}

func TestFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Attempts{}
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
			if got := a.Fail(0); got != want*time.Second {
				t.Errorf("Fail(): %s, want %s", got, want*time.Second)
			}
		}
		a.Free()
		if wait, _ := a.Begin(Attempt{}); wait != 0 || !a.Failed() {
			t.Errorf("after Free(): wait %s, failed %t, want 0 and true", wait, a.Failed())
		}
		if a.Succeed(); a.Failed() || a.Fail(0) != time.Second {
			t.Error("Succeed(): the next delay is not the first one")
		}
	})
}

// TestSeen checks when an attempt counts as new to the process: a read for a change of the object starts after it, and objects
// with a common template can share one.
func TestSeen(t *testing.T) {
	before := Attempt{Generation: 1, Metadata: "a", Request: "1", Sources: "x"}
	cases := map[string]struct {
		reason string
		next   Attempt
		later  bool
	}{
		"Same":       {"A retry is of the same object.", before, false},
		"Sources":    {"A template in a ConfigMap is not the object.", Attempt{Generation: 1, Metadata: "a", Request: "1", Sources: "y"}, false},
		"Generation": {"Its spec has changed.", Attempt{Generation: 2, Metadata: "a", Request: "1", Sources: "x"}, true},
		"Metadata":   {"Its labels or annotations have changed.", Attempt{Generation: 1, Metadata: "b", Request: "1", Sources: "x"}, true},
		"Request":    {"A refresh is requested.", Attempt{Generation: 1, Metadata: "a", Request: "2", Sources: "x"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a Attempts
				a.Begin(before)
				first := a.Seen()
				time.Sleep(time.Second)
				a.Begin(tc.next)
				if later := a.Seen().After(first); later != tc.later {
					t.Errorf("%s seen later: %t", tc.reason, later)
				}
			})
		})
	}
}

// TestNotify reports events about the remote secrets of an object, between attempts.
func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, start := &Attempts{}, time.Now()
		attempt := func() {
			o.Begin(Attempt{Generation: 1})
			o.Succeed()
		}
		steps := []struct {
			reason string
			do     func() time.Duration
			// wait is how long the next try waits, and due the seconds since the start of the event that is due; -1 for none.
			wait time.Duration
			due  int
		}{
			{"The first event is due at once.", func() time.Duration { return o.Notify(time.Now(), "") }, 0, 0},
			{"An attempt answers it.", func() time.Duration { attempt(); return 0 }, 0, -1},
			{"Another one in the same second waits.", func() time.Duration { return o.Notify(time.Now(), "") }, time.Second, -1},
			{"An attempt for another reason does not answer it.", func() time.Duration { attempt(); return 0 }, 0, -1},
			{"All of a second are one.", func() time.Duration { return o.Notify(start.Add(time.Second/2), "") }, time.Second, -1},
			{"It is due at the planned time.", func() time.Duration { time.Sleep(time.Second); o.Begin(Attempt{Generation: 1}); return 0 }, 0, 0},
			{"An event during the attempt waits for the next second.", func() time.Duration { return o.Notify(time.Now(), "") }, time.Second, 0},
			{"The attempt answers the former.", func() time.Duration { o.Succeed(); return 0 }, 0, -1},
			{"The latter is due later.", func() time.Duration { time.Sleep(time.Second); return 0 }, 0, 1},
			{"A later one is due at once.", func() time.Duration { attempt(); time.Sleep(time.Minute); return o.Notify(time.Now(), "") }, 0, 62},
		}
		for _, s := range steps {
			wait, due := s.do(), -1
			if at := o.Notified(); !at.IsZero() {
				due = int(at.Sub(start) / time.Second)
			}
			if wait != s.wait || due != s.due {
				t.Errorf("%s: waits %s, want %s; due is the event of second %d, want %d", s.reason, wait, s.wait, due, s.due)
			}
		}
	})
}
