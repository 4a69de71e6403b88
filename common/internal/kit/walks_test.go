package kit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

var errBoom = errors.New("boom")

// harness runs a controller whose walks wait for the stores that their names begin with: "a/1" waits for store a.
type harness struct {
	*Controller[string]
	walks *Walks
	// A call of a store returns when it receives from its channel.
	hangs map[string]chan struct{}
	// done are the walks that have ended, in order. Walks of store x do not wait.
	done    chan string
	results map[string]error
	// idle are the walks that need no store.
	idle map[string]bool
}

// run runs f in a bubble with a controller that runs.
func run(t *testing.T, slots, inFlight int, f func(t *testing.T, w *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &harness{walks: NewWalks(&quota.Quotas{Slots: slots}, inFlight), hangs: map[string]chan struct{}{}, done: make(chan string, 100), results: map[string]error{}, idle: map[string]bool{}}
		for _, s := range []string{"a", "b"} {
			w.hangs[s] = make(chan struct{})
		}
		w.Controller = NewController(w.walks, w.walk)
		stop := start(t, w.Controller)
		f(t, w)
		stop()
	})
}

// start runs a controller of controller-runtime until stop is called.
func start(t *testing.T, c *Controller[string]) (stop func()) {
	t.Helper()
	o := c.Options(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute), func(*string) logr.Logger { return logr.Discard() })
	o.SkipNameValidation, o.EnableWarmup = new(true), new(false)
	runs, err := controller.NewTypedUnmanaged("test", o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- runs.Start(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := errors.Join(<-ended, c.walks.Start(ctx)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	}
}

func (w *harness) walk(ctx context.Context, req string) (reconcile.Result, error) {
	store, _, _ := strings.Cut(req, "/")
	hang := w.hangs[store]
	if hang == nil {
		w.done <- req
		return reconcile.Result{}, w.results[req]
	}
	if w.idle[req] {
		return reconcile.Result{}, nil
	}
	err := Wait(ctx, []Place{{Store: types.UID(store), Tenant: "team-" + store}}, func(ctx context.Context) error {
		select {
		case <-hang:
			return w.results[req]
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err == nil || errors.Is(err, errBoom) {
		w.done <- req
	}
	return reconcile.Result{}, err
}

func (w *harness) add(priority int, names ...string) {
	for _, n := range names {
		w.Enqueue(n, priority)
		synctest.Wait()
	}
}

// answer ends one call of a store, if there is one.
func (w *harness) answer(store string) {
	select {
	case w.hangs[store] <- struct{}{}:
	default:
	}
	synctest.Wait()
}

// ended returns the walks that have ended since the last call.
func (w *harness) ended() (all []string) {
	synctest.Wait()
	for len(w.done) > 0 {
		all = append(all, <-w.done)
	}
	return all
}

// flying returns the number of walks in flight.
func (w *harness) flying() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.flights)
}

func names(store string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s/%d", store, i))
	}
	return all
}

func TestWaitingWalksHoldNoSlot(t *testing.T) {
	run(t, 1, 16, func(t *testing.T, w *harness) {
		w.add(queue.High, "a/0", "b/0", "x/0")
		if diff := cmp.Diff([]string{"x/0"}, w.ended()); diff != "" {
			t.Errorf("while two walks wait for stores: -want, +got:\n%s", diff)
		}
		if got := w.walks.Load(); got != 0 {
			t.Errorf("Load(): %d while all walks wait, want 0", got)
		}
		close(w.hangs["b"])
		if diff := cmp.Diff([]string{"b/0"}, w.ended()); diff != "" {
			t.Errorf("after store b has answered: -want, +got:\n%s", diff)
		}
	})
}

func TestShares(t *testing.T) {
	run(t, 4, 16, func(t *testing.T, w *harness) { // A store has two places.
		w.add(queue.Low, names("a", 5)...)
		w.add(queue.High, "a/new", "b/0", "x/0")
		if diff := cmp.Diff([]string{"x/0"}, w.ended()); diff != "" {
			t.Errorf("while store a hangs: -want, +got:\n%s", diff)
		}
		if got := w.flying(); got != 3 {
			t.Errorf("%d walks are in flight, want 3: two at store a and one at store b", got)
		}
		for range 6 {
			w.answer("a")
		}
		if diff := cmp.Diff([]string{"a/0", "a/1", "a/new", "a/2", "a/3", "a/4"}, w.ended()); diff != "" {
			t.Errorf("store a answers one walk after the other, new objects first: -want, +got:\n%s", diff)
		}
	})
}

// TestWakeIsPassedOn frees a place while the parked objects that come first no longer need one.
func TestWakeIsPassedOn(t *testing.T) {
	run(t, 4, 8, func(t *testing.T, w *harness) { // A store has one place.
		w.add(queue.Low, names("a", 4)...)
		w.idle["a/1"], w.idle["a/2"] = true, true
		for range 2 {
			w.answer("a")
		}
		if diff := cmp.Diff([]string{"a/0", "a/3"}, w.ended()); diff != "" {
			t.Errorf("an object is stuck behind others that need no place any longer: -want, +got:\n%s", diff)
		}
		if s := w.walks.shares; len(s.used)+len(s.held)+len(s.waiting)+len(s.parked) > 0 {
			t.Errorf("shares are left at the end: %v, %v, %v, %v", s.used, s.held, s.waiting, s.parked)
		}
	})
}

func TestInterrupt(t *testing.T) {
	run(t, 64, 64, func(t *testing.T, w *harness) {
		w.add(queue.High, "a/0", "a/1")
		w.Interrupt("a/0")
		w.Interrupt("a/unknown")
		synctest.Wait()
		if got := w.flying(); got != 1 {
			t.Errorf("%d walks are in flight after one of two was interrupted, want 1", got)
		}
		close(w.hangs["a"])
		time.Sleep(time.Second) // The interrupted object is queued again within 100 ms.
		if diff := cmp.Diff([]string{"a/1", "a/0"}, w.ended()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestBusyObjectIsQueuedAgain(t *testing.T) {
	run(t, 64, 64, func(t *testing.T, w *harness) {
		w.add(queue.High, "a/0", "a/0", "a/0")
		close(w.hangs["a"])
		if diff := cmp.Diff([]string{"a/0", "a/0"}, w.ended()); diff != "" {
			t.Errorf("an object that is queued during its walk has one more: -want, +got:\n%s", diff)
		}
	})
}

func TestErrorsAreRetried(t *testing.T) {
	run(t, 1, 64, func(t *testing.T, w *harness) {
		w.results["x/0"] = errBoom
		w.add(queue.High, "x/0")
		time.Sleep(8 * time.Second)
		if diff := cmp.Diff([]string{"x/0", "x/0", "x/0", "x/0"}, w.ended()); diff != "" {
			t.Errorf("after 1, 3 and 7 s: -want, +got:\n%s", diff)
		}
	})
}

func TestStopJoinsWalks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		c := NewController(NewWalks(&quota.Quotas{}, InFlight), func(ctx context.Context, _ string) (reconcile.Result, error) {
			err := Wait(ctx, nil, func(ctx context.Context) error {
				time.Sleep(time.Second) // A write that has begun ends, whatever ctx.
				return ctx.Err()
			})
			ended = true
			return reconcile.Result{}, err
		})
		stop := start(t, c)
		c.Enqueue("a", queue.High)
		synctest.Wait()
		if stop(); !ended {
			t.Error("the controller has stopped before its walk has ended")
		}
	})
}

func TestWalkHidesWhatIsNoError(t *testing.T) {
	cases := map[string]struct {
		reason string
		walk   func() error
		want   error
		again  bool
	}{
		"Parked":      {"A parked object is queued when a place is free.", func() error { return errors.Wrap(ErrParked, "cannot read") }, nil, false},
		"Interrupted": {"An object that has changed is queued again.", func() error { return ErrInterrupted }, nil, true},
		"Error":       {"Another error is returned.", func() error { return errBoom }, errBoom, false},
		"Panic":       {"A panic is an error without its value.", func() error { panic("c4n4ry") }, cmpopts.AnyError, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := NewController(NewWalks(&quota.Quotas{}, InFlight), func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, tc.walk() })
			res, err := c.Walk(t.Context(), "a")
			if !cmp.Equal(tc.want, err, cmpopts.EquateErrors()) || res.RequeueAfter > 0 != tc.again {
				t.Errorf("\n%s\nWalk(): %v, %v, want error %v, again %t", tc.reason, res, err, tc.want, tc.again)
			}
			if err != nil && strings.Contains(err.Error(), "c4n4ry") {
				t.Errorf("Walk(): the error %q has the value of the panic", err)
			}
		})
	}
}

// TestBackOffGrows lets the walks over an object fail.
func TestBackOffGrows(t *testing.T) {
	run(t, 64, 64, func(t *testing.T, w *harness) {
		w.results["x/1"] = errBoom
		w.Enqueue("x/1", queue.High)
		start := time.Now()
		for range 5 {
			<-w.done
		}
		if took := time.Since(start).Round(time.Second); took != 15*time.Second {
			t.Errorf("four retries took %s, want 1 + 2 + 4 + 8 s", took)
		}
	})
}

// TestHeavy has objects of two tenants do heavy work at the same time. Each tenant does one thing after another.
func TestHeavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		works, most := map[string]int{}, map[string]int{}
		c := NewController(NewWalks(&quota.Quotas{}, InFlight), func(ctx context.Context, req string) (reconcile.Result, error) {
			tenant, _, _ := strings.Cut(req, "/")
			_, err := Heavy(ctx, tenant, func() (int, error) {
				mu.Lock()
				works[tenant]++
				most[tenant], most["both"] = max(most[tenant], works[tenant]), max(most["both"], works["a"]+works["b"])
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				works[tenant]--
				return 0, nil
			})
			return reconcile.Result{}, err
		})
		stop := start(t, c)
		for _, req := range append(names("a", 5), names("b", 5)...) {
			c.Enqueue(req, queue.High)
		}
		time.Sleep(time.Minute)
		stop()
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "both": 2}, most); diff != "" {
			t.Errorf("works at the same time: -want, +got:\n%s", diff)
		}
	})
}
