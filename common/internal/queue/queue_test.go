package queue

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// newQueue returns the queue of a leader whose workers are all busy. Its back-off starts at one second.
func newQueue(name string) *Queue[string] {
	q := New(name, workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
	q.setTaken(true)
	return q
}

// setTaken sets whether a worker has asked for an item.
func (q *Queue[T]) setTaken(yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = yes
}

// TestNotLeading checks that no item counts as waiting in a queue without workers, however long it stays there.
func TestNotLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue("not-leading")
		q.setTaken(false)
		defer q.ShutDown()
		q.Add("a")
		time.Sleep(StarvationBound + 2*time.Second)
		synctest.Wait()
		if oldest, starving := q.inspect(time.Now()); oldest != 0 || len(starving) != 0 {
			t.Errorf("inspect(): oldest %s, starving %q before a worker asked", oldest, starving)
		}
	})
}

func at(priority int) *int { return &priority }

// add adds an item at a time after the start.
type add struct {
	at   time.Duration
	item string
	opts priorityqueue.AddOpts
}

// got is an item with the priority that it had.
type got struct {
	Item     string
	Priority int
}

func TestOrder(t *testing.T) {
	low := priorityqueue.AddOpts{Priority: at(Low)}
	high := priorityqueue.AddOpts{Priority: at(High)}
	const s = time.Second
	type args struct {
		adds []add
		// takeAt is the time at which all items are taken.
		takeAt time.Duration
	}
	cases := map[string]struct {
		reason string
		args   args
		want   []got
	}{
		"HighFirst": {
			"New items come before periodic ones, in whatever order they were added.",
			args{adds: []add{{0, "a", low}, {0, "b", low}, {0, "c", high}}},
			[]got{{"c", High}, {"a", Low}, {"b", Low}},
		},
		"FirstInFirstOut": {
			"Within one priority, items are first in, first out.",
			args{adds: []add{{0, "c", high}, {0, "a", high}, {0, "b", high}}},
			[]got{{"c", High}, {"a", High}, {"b", High}},
		},
		"Once": {
			"An item that is added twice is returned once.",
			args{adds: []add{{0, "a", high}, {0, "b", high}, {0, "a", high}}},
			[]got{{"a", High}, {"b", High}},
		},
		"HighestPriorityWins": {
			"An item has the highest priority with which it was added.",
			args{adds: []add{{0, "a", low}, {0, "b", low}, {0, "b", high}, {0, "b", low}}},
			[]got{{"b", High}, {"a", Low}},
		},
		"PlainAddIsHigh": {
			"Without a priority, an item counts as new.",
			args{adds: []add{{0, "a", low}, {0, "b", priorityqueue.AddOpts{}}}},
			[]got{{"b", High}, {"a", Low}},
		},
		"NotYetStarving": {
			"For ten seconds, an item of low priority comes after every new one.",
			args{adds: []add{{0, "old", low}, {5 * s, "b", high}, {9 * s, "c", high}}, takeAt: 9 * s},
			[]got{{"b", High}, {"c", High}, {"old", Low}},
		},
		"Starving": {
			"After ten seconds it is raised, and comes before later items.",
			args{adds: []add{{0, "old", low}, {5 * s, "b", high}, {12 * s, "c", high}}, takeAt: 12 * s},
			[]got{{"b", High}, {"old", High}, {"c", High}},
		},
		"StarvingCountsFromDue": {
			"The ten seconds start when the item is due.",
			args{adds: []add{{0, "old", priorityqueue.AddOpts{Priority: at(Low), After: 8 * s}}, {5 * s, "b", high}, {12 * s, "c", high}}, takeAt: 12 * s},
			[]got{{"b", High}, {"c", High}, {"old", Low}},
		},
		"After": {
			"An item that is not due is not returned.",
			args{adds: []add{{0, "a", priorityqueue.AddOpts{After: 2 * s}}, {0, "b", priorityqueue.AddOpts{After: 5 * s}}}, takeAt: 3 * s},
			[]got{{"a", High}},
		},
		"SoonerWins": {
			"Of two times, the earlier counts.",
			args{adds: []add{{0, "a", priorityqueue.AddOpts{After: time.Hour}}, {0, "a", priorityqueue.AddOpts{After: s}}}, takeAt: 2 * s},
			[]got{{"a", High}},
		},
		"LaterIsIgnored": {
			"A later time does not delay an item.",
			args{adds: []add{{0, "a", priorityqueue.AddOpts{After: s}}, {0, "a", priorityqueue.AddOpts{After: time.Hour}}}, takeAt: 2 * s},
			[]got{{"a", High}},
		},
		"NowWins": {
			"An event makes an item due that was planned for later.",
			args{adds: []add{{0, "a", priorityqueue.AddOpts{After: time.Hour, Priority: at(Low)}}, {s, "a", high}}, takeAt: s},
			[]got{{"a", High}},
		},
		"OrderOfBecomingDue": {
			"Within one priority, items are ordered by the time at which they became due.",
			args{adds: []add{{0, "a", priorityqueue.AddOpts{After: 2 * s}}, {0, "b", priorityqueue.AddOpts{After: s}}}, takeAt: 3 * s},
			[]got{{"b", High}, {"a", High}},
		},
		"RateLimited": {
			"After a failure, an item waits for the back-off: one second, and two after the second failure.",
			args{adds: []add{
				{0, "once", priorityqueue.AddOpts{RateLimited: true}},
				{0, "twice", priorityqueue.AddOpts{RateLimited: true, After: time.Hour}},
			}, takeAt: s},
			[]got{{"once", High}, {"twice", High}},
		},
		"RateLimitedButSooner": {
			"A time before the end of the back-off counts.",
			args{adds: []add{{0, "a", priorityqueue.AddOpts{RateLimited: true, After: 100 * time.Millisecond}}}, takeAt: 200 * time.Millisecond},
			[]got{{"a", High}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue("order")
				defer q.ShutDown()
				start := time.Now()
				for _, a := range tc.args.adds {
					time.Sleep(time.Until(start.Add(a.at)))
					q.AddWithOpts(a.opts, a.item)
					synctest.Wait()
				}
				time.Sleep(time.Until(start.Add(tc.args.takeAt)))
				synctest.Wait()
				var out []got
				for q.Len() > 0 {
					item, priority, _ := q.GetWithPriority()
					out = append(out, got{item, priority})
					q.Done(item)
					synctest.Wait()
				}
				if diff := cmp.Diff(tc.want, out); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestBackoff adds one item after several failures.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue("backoff")
		defer q.ShutDown()
		var waited []time.Duration
		fail := func() {
			start := time.Now()
			q.AddRateLimited("a")
			item, _ := q.Get()
			q.Done(item)
			waited = append(waited, time.Since(start))
		}
		fail()
		fail()
		fail()
		if n := q.NumRequeues("a"); n != 3 {
			t.Errorf("NumRequeues(): %d, want 3: each failure counts once", n)
		}
		q.Forget("a")
		fail()
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Second}
		if diff := cmp.Diff(want, waited); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// TestSustainedLoad keeps the only worker busy with new objects: they arrive faster than it works.
func TestSustainedLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("load", workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Second, time.Minute))
		defer q.ShutDown()
		const old = -1
		q.AddWithOpts(priorityqueue.AddOpts{Priority: at(Low)}, old)
		start := time.Now()
		for n := 0; ; n += 2 {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: at(High)}, n, n+1)
			synctest.Wait()
			item, _ := q.Get()
			time.Sleep(100 * time.Millisecond)
			q.Done(item)
			if item == old {
				break
			}
			if time.Since(start) > time.Minute {
				t.Fatal("an object of low priority starves behind new ones")
			}
		}
		// Ten seconds until it is raised, and another ten for items that were new before that.
		if d := time.Since(start); d > 23*time.Second {
			t.Errorf("an object of low priority waited %s, want at most 23s", d)
		}
	})
}

// oldest returns the metric of a queue.
func oldest(t *testing.T, name string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "directsecrets_queue_oldest_waiting_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == name {
					return m.GetGauge().GetValue()
				}
			}
		}
	}
	return -1
}

func TestOldestWaiting(t *testing.T) {
	const s = time.Second
	cases := map[string]struct {
		reason  string
		adds    []add
		checkAt time.Duration
		taken   int
		// begun is the number of taken items on which the work has begun.
		begun int
		want  float64
	}{
		"Empty":       {"An empty queue has no waiting item.", nil, 3 * s, 0, 0, 0},
		"Waits":       {"The oldest item counts.", []add{{0, "a", priorityqueue.AddOpts{}}, {2 * s, "b", priorityqueue.AddOpts{}}}, 5 * s, 0, 0, 5},
		"Next":        {"After the oldest is taken, the next oldest counts.", []add{{0, "a", priorityqueue.AddOpts{}}, {2 * s, "b", priorityqueue.AddOpts{}}}, 5 * s, 1, 1, 4},
		"AllTaken":    {"An item in work does not wait.", []add{{0, "a", priorityqueue.AddOpts{}}}, 5 * s, 1, 1, 0},
		"NotBegun":    {"An item that a worker has taken still waits until the work begins.", []add{{0, "a", priorityqueue.AddOpts{}}}, 5 * s, 1, 0, 6},
		"NotDue":      {"An item planned for later does not wait.", []add{{0, "a", priorityqueue.AddOpts{After: time.Hour}}}, 5 * s, 0, 0, 0},
		"DueMeantime": {"An item waits from the time at which it is due.", []add{{0, "a", priorityqueue.AddOpts{After: 3 * s}}}, 5 * s, 0, 0, 2},
		"AddedAgain":  {"Adding an item again does not reset its age.", []add{{0, "a", priorityqueue.AddOpts{}}, {3 * s, "a", priorityqueue.AddOpts{}}}, 5 * s, 0, 0, 5},
		"Raised":      {"Raising an item does not reset its age.", []add{{0, "a", priorityqueue.AddOpts{Priority: at(Low)}}}, 15 * s, 0, 0, 15},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue("oldest")
				defer q.ShutDown()
				start := time.Now()
				for _, a := range tc.adds {
					time.Sleep(time.Until(start.Add(a.at)))
					q.AddWithOpts(a.opts, a.item)
					synctest.Wait()
				}
				time.Sleep(time.Until(start.Add(tc.checkAt)))
				synctest.Wait()
				for n := range tc.taken {
					if i, _ := q.Get(); n < tc.begun {
						q.Begun(i)
					}
				}
				if tc.taken > 0 {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if diff := cmp.Diff(tc.want, oldest(t, "oldest")); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestLocked adds an item while a worker holds it.
func TestLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue("locked")
		defer q.ShutDown()
		q.Add("a")
		held, _ := q.Get()
		q.Add("a")
		q.Add("b")
		if item, _ := q.Get(); item != "b" {
			t.Errorf("Get(): %q, want the item that no worker holds", item)
		}
		q.Done(held)
		if item, _ := q.Get(); item != "a" {
			t.Errorf("Get(): %q, want the item that was added while it was held", item)
		}
	})
}

// TestShutDown shuts the queue down while workers wait. The synctest bubble fails if a goroutine stays.
func TestShutDown(t *testing.T) {
	cases := map[string]struct {
		reason string
		end    func(*Queue[string])
	}{
		"ShutDown":          {"All workers return.", func(q *Queue[string]) { q.ShutDown() }},
		"Twice":             {"A second call does nothing.", func(q *Queue[string]) { q.ShutDown(); q.ShutDown() }},
		"ShutDownWithDrain": {"ShutDownWithDrain shuts the queue down as well.", func(q *Queue[string]) { q.ShutDownWithDrain() }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue("shutdown")
				var notified atomic.Int32
				for range 4 {
					go func() {
						if _, shutdown := q.Get(); shutdown {
							notified.Add(1)
						}
					}()
				}
				synctest.Wait()
				q.AddAfter("late", time.Hour)
				synctest.Wait()
				tc.end(q)
				synctest.Wait()
				if n := notified.Load(); n != 4 {
					t.Errorf("\n%s\n%d of 4 workers returned", tc.reason, n)
				}
				if !q.ShuttingDown() {
					t.Errorf("\n%s\nShuttingDown(): false", tc.reason)
				}
				q.Add("after")
				if _, shutdown := q.Get(); !shutdown {
					t.Error("a queue that was shut down returns an item")
				}
			})
		})
	}
}

// TestStress adds items from many goroutines, at once and with delays, while workers take, add again and finish. Each
// item must be processed after its last addition, and never by two workers at a time.
func TestStress(t *testing.T) {
	synctest.Test(t, stress)
}

func stress(t *testing.T) {
	const items, producers, workers, rounds = 40, 8, 16, 400
	q := New("stress", workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Millisecond, time.Second))
	var added, seen [items]atomic.Int64
	var holders [items]atomic.Int32
	var both atomic.Int32

	insert := func(r *rand.Rand, item int) {
		added[item].Add(1)
		o := priorityqueue.AddOpts{Priority: at([]int{Low, High, High - 1}[r.IntN(3)])}
		switch r.IntN(4) {
		case 0:
			o.After = time.Duration(r.IntN(30)) * time.Second
		case 1:
			o.RateLimited = true
		}
		q.AddWithOpts(o, item)
	}
	for w := range workers {
		go func() {
			r := rand.New(rand.NewPCG(2, uint64(w)))
			for {
				item, shutdown := q.Get()
				if shutdown {
					return
				}
				if holders[item].Add(1) > 1 {
					both.Add(1)
				}
				seen[item].Store(added[item].Load())
				if r.IntN(3) == 0 {
					time.Sleep(time.Duration(r.IntN(3)) * time.Second)
				}
				if r.IntN(5) == 0 {
					insert(r, item)
				}
				q.Forget(item)
				holders[item].Add(-1)
				q.Done(item)
			}
		}()
	}
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(p)))
			for range rounds {
				insert(r, r.IntN(items))
				if r.IntN(10) == 0 {
					time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	time.Sleep(time.Hour)
	synctest.Wait()

	for i := range items {
		if seen[i].Load() != added[i].Load() {
			t.Errorf("item %d was added %d times, and the last time it was worked on was after the addition %d", i, added[i].Load(), seen[i].Load())
		}
	}
	if n := both.Load(); n != 0 {
		t.Errorf("an item was held by two workers %d times", n)
	}
	q.mu.Lock()
	left := len(q.due)
	q.mu.Unlock()
	if left != 0 || q.Len() != 0 {
		t.Errorf("in the end %d items are due and %d in the queue, want none", left, q.Len())
	}
	q.ShutDown()
}

func TestAddTo(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)
	cases := map[string]struct {
		reason string
		queue  func() workqueue.TypedRateLimitingInterface[string]
		want   []string
	}{
		"Priorities": {
			"A queue with priorities hands out the item of high priority first, once its delay has passed.",
			func() workqueue.TypedRateLimitingInterface[string] { return newQueue("add-to") },
			[]string{"high", "low"},
		},
		"Plain": {
			"A queue without priorities orders items by their delay alone.",
			func() workqueue.TypedRateLimitingInterface[string] {
				return workqueue.NewTypedRateLimitingQueue(limiter)
			},
			[]string{"low", "high"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := tc.queue()
				defer q.ShutDown()
				AddTo(q, Low, time.Second, "low")
				AddTo(q, High, 2*time.Second, "high")
				var early int
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				early = q.Len()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				var got []string
				for range 2 {
					i, _ := q.Get()
					got = append(got, i)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || early != 0 {
					t.Errorf("\n%s\nAddTo(): %d items were due too early; -want, +got:\n%s", tc.reason, early, diff)
				}
			})
		})
	}
}
