package fetch

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
				if wait, again := o.begin(a); wait > 0 || again {
					t.Errorf("begin(): the first attempt waits %s, again %t", wait, again)
				}
				o.Hold(time.Now().Add(time.Minute))
				time.Sleep(tc.after)
				wait, again := o.begin(tc.next)
				if got := max(0, wait); got != tc.want || again != (tc.next == a) {
					t.Errorf("\n%s\nbegin(): %s, again %t, want %s", tc.reason, got, again, tc.want)
				}
			})
		})
	}
}
