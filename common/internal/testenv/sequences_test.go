package testenv

import (
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestSequences runs two models in one process. Flags that the first one sets must not count as flags of the command
// line.
func TestSequences(t *testing.T) {
	for _, s := range []Sequences{{Workers: 2, Each: 4, Seeds: []uint64{1, 2}}, {Workers: 2, Each: 6, Seeds: []uint64{1, 2, 3}}} {
		var all atomic.Int64
		s.Run(t, func(*testing.T, int) func(*rapid.T) { return func(*rapid.T) { all.Add(1) } })
		if want := int64(s.Each * (len(s.Seeds) + 1)); all.Load() != want {
			t.Errorf("%d sequences were run, want %d", all.Load(), want)
		}
	}
}
