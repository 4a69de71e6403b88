package dispatch

import (
	"testing"
	"time"
)

// TestBusyOfSeveral has two controllers tell what waits for their workers.
func TestBusyOfSeveral(t *testing.T) {
	cases := map[string]struct {
		reason        string
		first, second int
		loaded, is    bool
	}{
		"Neither": {"Nothing waits.", 0, 0, false, false},
		"First":   {"What waits for one controller is on its way.", 1, 0, false, true},
		"Second":  {"Or for the other.", 0, 1, false, true},
		"Loaded":  {"Each controller has workers of its own.", 0, 2, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &Busy{}
			b.Watch(func() int { return tc.first }, 32)
			b.Watch(func() int { return tc.second }, 8)
			if loaded, is := b.loaded(), b.is(time.Now()); loaded != tc.loaded || is != tc.is {
				t.Errorf("\n%s\nloaded(): %t, want %t; is(): %t, want %t", tc.reason, loaded, tc.loaded, is, tc.is)
			}
		})
	}
}
