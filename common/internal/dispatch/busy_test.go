package dispatch

import (
	"testing"
	"time"
)

func TestBusy(t *testing.T) {
	cases := map[string]struct {
		reason     string
		load       int
		loaded, is bool
	}{
		"Idle":   {"Empty queues mean an idle process.", 0, false, false},
		"One":    {"An object that is due means more requests.", 1, false, true},
		"Some":   {"Fewer objects than a quarter of the slots do not delay batches.", 7, false, true},
		"Loaded": {"Objects for a quarter of the slots do.", 8, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := NewBusy(func() int { return tc.load }, 32)
			if loaded, is := b.loaded(), b.is(time.Now()); loaded != tc.loaded || is != tc.is {
				t.Errorf("\n%s\nloaded(): %t, want %t; is(): %t, want %t", tc.reason, loaded, tc.loaded, is, tc.is)
			}
		})
	}
}
