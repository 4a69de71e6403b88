package kit

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// notes are the moments at which an object was first and last notified.
type notes struct{ first, last int64 }

// Moment returns the number of a moment, which is higher than those of all earlier ones.
func (w *Walks) Moment() int64 { return w.moments.Add(1) }

// Started reports whether all controllers have a queue, so that they can be notified.
func (w *Walks) Started() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.started) == int(w.made.Load())
}

// Oldest returns the moment of the oldest notification by a source that no walk has answered; 0 if all are.
func (w *Walks) Oldest(source any) (oldest int64) {
	w.mu.Lock()
	all := w.started
	w.mu.Unlock()
	for _, c := range all {
		if at := c.oldest(source); at != 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	return oldest
}

// Notify queues an object because of an event of a source. It is answered by a walk that begins from now on and comes to a result,
// which may be a failure in the status of the object.
func (c *Controller[T]) Notify(req T, source any, after time.Duration) {
	c.mu.Lock()
	if c.notified[source] == nil {
		c.notified[source] = map[T]notes{}
	}
	n := notes{last: c.walks.Moment()}
	if n.first = n.last; c.notified[source][req].first != 0 {
		n.first = c.notified[source][req].first
	}
	c.notified[source][req] = n
	c.mu.Unlock()
	c.EnqueueAfter(req, queue.High, after)
}

// answered ends the notifications of an object before a moment at which a walk began.
func (c *Controller[T]) answered(req T, began int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for source, objects := range c.notified {
		n, ok := objects[req]
		switch {
		case !ok:
		case n.last > began:
			objects[req] = notes{max(n.first, began), n.last}
		default:
			if delete(objects, req); len(objects) == 0 {
				delete(c.notified, source)
			}
		}
	}
}

// oldest is Walks.Oldest for one controller.
func (c *Controller[T]) oldest(source any) (oldest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.notified[source] {
		if oldest == 0 || n.first < oldest {
			oldest = n.first
		}
	}
	return oldest
}

// queued returns the number of queued objects.
func (c *Controller[T]) queued() int { return c.queue.Len() }
