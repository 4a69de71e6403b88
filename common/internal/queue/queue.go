// Package queue is controller-runtime's priority queue with two additions. It limits how long an object of low
// priority can wait behind others. And it has a metric with the age of the oldest waiting object, which shows a queue
// that is stuck.
package queue

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Priorities. A higher number goes first; within one priority the queue is first in, first out.
const (
	// Low is for periodic refreshes, retries, and objects listed at a restart.
	Low = -100
	// High is for new and changed objects.
	High = 0
)

// StarvationBound is how long an object of low priority waits before its priority is raised.
const StarvationBound = 10 * time.Second

var oldestWaiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "directsecrets_queue_oldest_waiting_seconds",
	Help: "Time that the longest waiting object has been due without a worker.",
}, []string{"controller"})

func init() { metrics.Registry.MustRegister(oldestWaiting) }

// A Queue is a priority queue that records since when its items are due.
type Queue[T comparable] struct {
	priorityqueue.PriorityQueue[T]
	name    string
	limiter workqueue.TypedRateLimiter[T]
	stop    chan struct{}
	once    sync.Once

	mu sync.Mutex
	// Bound: one per object.
	due map[T]item
	// active are the items that workers have taken.
	// Bound: one per worker.
	active map[T]work
	// taken is true once a worker has asked for an item. The queue of a standby replica has no workers, and the
	// leader processes the same items.
	taken bool
}

type item struct {
	at     time.Time
	raised bool
}

// work is an item that a worker has taken.
type work struct {
	priority int
	// due is when it was due, as long as the work on it has not begun; otherwise zero.
	due time.Time
}

// New returns a running queue.
func New[T comparable](name string, limiter workqueue.TypedRateLimiter[T]) *Queue[T] {
	q := &Queue[T]{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[T]) { o.RateLimiter = limiter }),
		name:          name,
		limiter:       limiter,
		stop:          make(chan struct{}),
		due:           map[T]item{},
		active:        map[T]work{},
	}
	go q.watch()
	return q
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *Queue[T]) AddWithOpts(o priorityqueue.AddOpts, items ...T) {
	for _, i := range items {
		one := o
		if o.RateLimited {
			one.RateLimited = false
			if wait := q.limiter.When(i); one.After == 0 || wait < one.After {
				one.After = wait
			}
		}
		q.note(i, time.Now().Add(one.After))
		q.PriorityQueue.AddWithOpts(one, i)
	}
}

// Add implements workqueue.TypedInterface.
func (q *Queue[T]) Add(i T) { q.AddWithOpts(priorityqueue.AddOpts{}, i) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *Queue[T]) AddAfter(i T, d time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: d}, i)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *Queue[T]) AddRateLimited(i T) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, i)
}

// AddTo adds items, with a priority and after a delay, to the queue of an event handler. A queue without priorities
// uses only the delay.
func AddTo[T comparable](q workqueue.TypedRateLimitingInterface[T], priority int, after time.Duration, items ...T) {
	if pq, ok := q.(priorityqueue.PriorityQueue[T]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, items...)
		return
	}
	for _, i := range items {
		q.AddAfter(i, after)
	}
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *Queue[T]) GetWithPriority() (T, int, bool) {
	q.mu.Lock()
	q.taken = true
	q.mu.Unlock()
	i, priority, shutdown := q.PriorityQueue.GetWithPriority()
	q.mu.Lock()
	if !shutdown {
		q.active[i] = work{priority, q.due[i].at}
	}
	delete(q.due, i)
	q.mu.Unlock()
	return i, priority, shutdown
}

// Get implements workqueue.TypedInterface.
func (q *Queue[T]) Get() (T, bool) {
	i, _, shutdown := q.GetWithPriority()
	return i, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *Queue[T]) Done(i T) {
	q.mu.Lock()
	delete(q.active, i)
	q.mu.Unlock()
	q.PriorityQueue.Done(i)
}

// Priority returns the priority of an item in work.
func (q *Queue[T]) Priority(i T) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.active[i].priority
}

// Begun records that the work on an item has begun. Until then the item waits, although a worker has taken it.
func (q *Queue[T]) Begun(i T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w, ok := q.active[i]; ok {
		w.due = time.Time{}
		q.active[i] = w
	}
}

// ShutDown implements workqueue.TypedInterface. It may be called more than once.
func (q *Queue[T]) ShutDown() {
	q.once.Do(func() {
		close(q.stop)
		q.PriorityQueue.ShutDown()
	})
}

// ShutDownWithDrain implements workqueue.TypedInterface. Like the queue below it does not drain.
func (q *Queue[T]) ShutDownWithDrain() { q.ShutDown() }

func (q *Queue[T]) note(i T, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if old, ok := q.due[i]; !ok || at.Before(old.at) {
		q.due[i] = item{at: at, raised: old.raised}
	}
}

func (q *Queue[T]) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-q.stop:
			return
		case now := <-tick.C:
			oldest, starving := q.inspect(now)
			oldestWaiting.WithLabelValues(q.name).Set(oldest.Seconds())
			high := High
			q.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: &high}, starving...)
		}
	}
}

// inspect returns how long the oldest due item has waited, and the items to raise, each once.
func (q *Queue[T]) inspect(now time.Time) (oldest time.Duration, starving []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.taken {
		return 0, nil
	}
	for i, it := range q.due {
		age := now.Sub(it.at)
		oldest = max(oldest, age)
		if age > StarvationBound && !it.raised {
			it.raised = true
			q.due[i] = it
			starving = append(starving, i)
		}
	}
	for _, w := range q.active {
		if !w.due.IsZero() {
			oldest = max(oldest, now.Sub(w.due))
		}
	}
	return oldest, starving
}
