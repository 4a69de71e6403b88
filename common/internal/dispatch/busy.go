package dispatch

import (
	"sync/atomic"
	"time"
)

// Limits of the adaptive window: how long a request can wait for others to join its batch.
const (
	// Reads at a store without recent batches are sent almost at once.
	idleWindow = 2 * time.Millisecond
	// While many requests come at the same time, waiting fills the batches.
	busyWindow = 50 * time.Millisecond
	// While many objects are written, they wait for the API server. Another answer would only make that queue longer.
	loadedWindow = 250 * time.Millisecond
	// A batch of more than one read makes the stores of the process busy for this long.
	busyFor = 500 * time.Millisecond
)

// Busy reports whether many requests are likely at the same time, at any store. It covers all stores because hundreds
// of due objects can be spread over many stores, each of which sees only a few of them.
type Busy struct {
	last atomic.Int64
	// load returns how many objects are due or in work, without those that wait for a store. slots is how many can be in
	// work. While there are such objects, more requests are likely.
	load  func() int
	slots int
}

// NewBusy returns a Busy for a process. load returns how many objects are due or in work, and slots is how many can be in
// work.
func NewBusy(load func() int, slots int) *Busy { return &Busy{load: load, slots: slots} }

// loaded reports whether at least two objects, and a quarter of the slots, are due or in work.
func (b *Busy) loaded() bool { return b.load() >= max(2, b.slots/4) }

func (b *Busy) mark(now time.Time) { b.last.Store(now.UnixNano()) }

func (b *Busy) is(now time.Time) bool {
	return now.Sub(time.Unix(0, b.last.Load())) < busyFor || b.load() > 0
}

// window returns how long the oldest of count reads waits for more reads to join its batch. A full batch has size
// reads.
func (b *Busy) window(now time.Time, count, size int) time.Duration {
	switch {
	case count >= size:
		return 0
	case b.loaded():
		return loadedWindow
	case count > 1 || b.is(now):
		return busyWindow
	}
	return idleWindow
}
