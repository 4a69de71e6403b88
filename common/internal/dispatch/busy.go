package dispatch

import (
	"slices"
	"sync"
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
	last  atomic.Int64
	adds  sync.Mutex // It is held while lines are added.
	lines atomic.Pointer[[]line]
}

// line is the queue of one controller.
type line struct {
	queued  func() int
	workers int
}

// Watch adds the queue of one controller. queued returns how many objects are due or in work, workers is the number
// of its workers. While there are such objects, more requests are likely. Call it before the first request.
func (b *Busy) Watch(queued func() int, workers int) {
	b.adds.Lock()
	defer b.adds.Unlock()
	lines := append(slices.Clone(b.all()), line{queued, workers})
	b.lines.Store(&lines)
}

func (b *Busy) all() []line {
	if lines := b.lines.Load(); lines != nil {
		return *lines
	}
	return nil
}

// loaded reports whether a controller has at least two objects, and a quarter of the number of its workers, due or in
// work. A worker waits for nothing but the API server.
func (b *Busy) loaded() bool {
	return slices.ContainsFunc(b.all(), func(l line) bool { return l.queued() >= max(2, l.workers/4) })
}

func (b *Busy) mark(now time.Time) { b.last.Store(now.UnixNano()) }

func (b *Busy) is(now time.Time) bool {
	if now.Sub(time.Unix(0, b.last.Load())) < busyFor {
		return true
	}
	return slices.ContainsFunc(b.all(), func(l line) bool { return l.queued() > 0 })
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
