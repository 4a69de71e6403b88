package kit

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// notes are the moments at which an object was first and last notified. Only a walk that begins at a time, or later, answers them.
type notes struct {
	first, last int64
	from        time.Time
}

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
	n := notes{last: c.walks.Moment(), from: time.Now().Add(after)}
	if n.first = n.last; c.notified[source][req].first != 0 {
		n.first = c.notified[source][req].first
	}
	c.notified[source][req] = n
	c.mu.Unlock()
	c.EnqueueAfter(req, queue.High, after)
}

// answered ends the notifications of an object before a walk began, at a moment and a time. It returns until when an object waits that is to
// be queued again, because this walk came before the planned one, which shared its place in the queue; zero for none.
func (c *Controller[T]) answered(req T, began int64, at time.Time) (planned time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for source, objects := range c.notified {
		n, ok := objects[req]
		switch {
		case !ok:
		case n.from.After(at):
			planned = n.from
		case n.last > began:
			objects[req] = notes{max(n.first, began), n.last, n.from}
		default:
			if delete(objects, req); len(objects) == 0 {
				delete(c.notified, source)
			}
		}
	}
	return planned
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
func (c *Controller[T]) queued() int { return c.queue.Load().Len() }
