package dispatch

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the adaptive window: how long a request may wait for others to join its batch.
const (
	// A store that nobody has read of late answers almost at once.
	idleWindow = 2 * time.Millisecond
	// While requests keep coming together, batches are worth waiting for.
	busyWindow = 50 * time.Millisecond
	// While many objects are written, the API server is what they wait for, and an answer more
	// would only make the line longer.
	loadedWindow = 250 * time.Millisecond
	// A batch of more than one request makes the stores of the process busy for this long.
	busyFor = 500 * time.Millisecond
)

// Busy says whether requests are likely to come together, at any store: objects that are due by the
// hundred are spread over many stores, and each store sees but a few of them.
type Busy struct {
	last  atomic.Int64
	adds  sync.Mutex // Held while lines are added.
	lines atomic.Pointer[[]line]
}

// line is what waits for the workers of one controller.
type line struct {
	queued  func() int
	workers int
}

// Watch tells how many objects of one controller are due or being worked on, and how many workers it has. While
// there are any, more requests are on their way. It is called before any request.
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

// loaded reports whether a quarter of the workers of a controller, or more objects, are busy. Nothing blocks a worker
// but the API server.
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

// window is how long the first of count reads waits for more to join its batch, of which size make a full one.
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
