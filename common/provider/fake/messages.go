package fake

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// Messages are the messages of a queue, until they are removed. A message is delivered again when the time for which it is hidden is
// over. It is safe for concurrent use. The zero Messages has none. A queue embeds it.
type Messages[B any] struct {
	mu     sync.Mutex
	serial int
	all    []*Delivery[B]
}

// A Delivery is a message with its latest delivery.
type Delivery[B any] struct {
	ID       string
	Body     B
	Sent     time.Time
	Receipt  string
	Received int
	// Hidden is when the message is delivered again.
	Hidden time.Time
}

// Send adds a message.
func (q *Messages[B]) Send(body B) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serial++
	q.all = append(q.all, &Delivery[B]{ID: strconv.Itoa(q.serial), Body: body, Sent: time.Now()})
}

// Change replaces the messages.
func (q *Messages[B]) Change(f func([]*Delivery[B]) []*Delivery[B]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = f(q.all)
}

// Left returns the number of messages that were not removed.
func (q *Messages[B]) Left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.all)
}

// Redeliver makes all received messages visible again.
func (q *Messages[B]) Redeliver() {
	q.Change(func(all []*Delivery[B]) []*Delivery[B] {
		for _, m := range all {
			m.Hidden = time.Time{}
		}
		return all
	})
}

// Take returns up to n visible messages, and hides them.
func (q *Messages[B]) Take(n int, hide time.Duration) (taken []Delivery[B]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, m := range q.all {
		if len(taken) < n && !now.Before(m.Hidden) {
			q.serial++
			m.Receipt, m.Hidden, m.Received = m.ID+"/"+strconv.Itoa(q.serial), now.Add(hide), m.Received+1
			taken = append(taken, *m)
		}
	}
	return taken
}

// Hide hides the message whose latest delivery has the receipt, from now.
func (q *Messages[B]) Hide(receipt string, hide time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.all {
		if m.Receipt == receipt {
			m.Hidden = time.Now().Add(hide)
		}
	}
}

// Remove removes the message whose latest delivery has the receipt, and reports whether there was one.
func (q *Messages[B]) Remove(receipt string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.all)
	q.all = slices.DeleteFunc(q.all, func(m *Delivery[B]) bool { return m.Receipt != "" && m.Receipt == receipt })
	return len(q.all) < before
}
