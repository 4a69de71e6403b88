package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func TestBusyIsShared(t *testing.T) {
	cases := map[string]struct {
		reason string
		shared bool
		want   []call
	}{
		"Shared": {"Objects created together can use different stores, so a batch at one store makes the requests at all stores wait.", true, []call{{150 * ms, keys(0, 1)}}},
		"Own":    {"Loaders that share no Busy do not affect each other.", false, []call{{102 * ms, keys(0, 1)}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := filled(2), filled(1)
				ao, bo := Options{}, Options{}
				if tc.shared {
					ao.Busy = NewBusy(func() int { return 0 }, 0)
					bo.Busy = ao.Busy
				}
				la, lb := connected(t, connectTo(a), ao), connected(t, connectTo(b), bo)
				start := time.Now()
				ask(la, New, keys(0, 2)...)
				time.Sleep(100 * ms)
				ask(lb, New, keys(0, 1)...)
				time.Sleep(time.Second)
				if diff := cmp.Diff(tc.want, calls(b, start)); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestFailures requests k0 and k1 in one batch, and then k2.
func TestFailures(t *testing.T) {
	type want struct {
		first map[string]string
		at    time.Duration
		later map[string]string
	}
	cases := map[string]struct {
		reason string
		fault  fake.Fault
		want   want
	}{
		"Hang": {
			"A call that hangs ends at its timeout with Unavailable, and later requests work.",
			fake.Fault{Call: fake.CallGetBatch, Hang: true, Times: 1},
			want{same("Unavailable", "k0", "k1"), 5*time.Second + 50*ms, same("k2", "k2")},
		},
		"Slow": {
			"An answer before the timeout counts.",
			fake.Fault{Call: fake.CallGetBatch, Latency: 4 * time.Second, Times: 1},
			want{map[string]string{"k0": "k0", "k1": "k1"}, 4*time.Second + 50*ms, same("k2", "k2")},
		},
		"OneDenied": {
			"One failed entry does not fail the others.",
			fake.Fault{Call: fake.CallGetBatch, Key: "k0", Times: 1, Err: provider.NewError(provider.Denied, "no")},
			want{map[string]string{"k0": "Denied", "k1": "k1"}, 50 * ms, same("k2", "k2")},
		},
		"OneMissing": {
			"A missing entry is Unavailable, never NotFound.",
			fake.Fault{Call: fake.CallGetBatch, Key: "k1", Times: 1, Drop: true},
			want{map[string]string{"k0": "k0", "k1": "Unavailable"}, 50 * ms, same("k2", "k2")},
		},
		"Unknown": {
			"An error without a class is Unavailable.",
			fake.Fault{Call: fake.CallGetBatch, Times: 1, Err: errBoom},
			want{same("Unavailable", "k0", "k1"), 50 * ms, same("k2", "k2")},
		},
		"Panic": {
			"A panic of the provider is an error of its call.",
			fake.Fault{Call: fake.CallGetBatch, Times: 1, Panic: "boom"},
			want{same("Unavailable", "k0", "k1"), 50 * ms, same("k2", "k2")},
		},
		"ConnectFails": {
			"All requests that wait for a connection fail with it, and the next request connects again.",
			fake.Fault{Call: fake.CallConnect, Times: 1, Err: provider.NewError(provider.Denied, "no")},
			want{same("Denied", "k0", "k1"), 0, same("k2", "k2")},
		},
		"ConnectHangs": {
			"A connection that hangs ends at its timeout.",
			fake.Fault{Call: fake.CallConnect, Times: 1, Hang: true},
			want{same("Unavailable", "k0", "k1"), 5 * time.Second, same("k2", "k2")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := filled(3)
				b.Inject(tc.fault)
				l := NewLoader(connectTo(b), Options{CallTimeout: 5 * time.Second})
				start := time.Now()
				first := ask(l, New, keys(0, 2)...)
				if first.values() != nil {
					t.Error("Take(): results before there are any")
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				later := ask(l, New, keys(2, 3)...)
				time.Sleep(time.Second)
				synctest.Wait()
				if first.done.Load() != 1 || later.done.Load() != 1 {
					t.Fatalf("\n%s\ndone was called %d and %d times, want once each", tc.reason, first.done.Load(), later.done.Load())
				}
				got := want{first.values(), first.at.Load().Sub(start), later.values()}
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestHangFailsOnlyItsOwn lets the first of two calls hang.
func TestHangFailsOnlyItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(40)
		b.Inject(fake.Fault{Call: fake.CallGetBatch, Hang: true, Times: 1})
		l := connected(t, connectTo(b), Options{})
		hung := ask(l, New, keys(0, 20)...)
		synctest.Wait()
		well := ask(l, New, keys(20, 40)...)
		mixed := ask(l, New, "k0", "k20")
		synctest.Wait()
		if n := well.done.Load(); n != 1 {
			t.Fatalf("a request next to one that hangs: done was called %d times, want once", n)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		got := []map[string]string{hung.values(), well.values(), mixed.values()}
		values := map[string]string{}
		for _, k := range keys(20, 40) {
			values[k] = k
		}
		want := []map[string]string{same("Unavailable", keys(0, 20)...), values, {"k0": "Unavailable", "k20": "k20"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// TestContextIgnored uses a provider whose code ignores its context. Its calls must end at their timeout.
func TestContextIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stuck{release: make(chan struct{})}
		l := connected(t, connects(c), Options{CallTimeout: time.Second, MaxCalls: 1})
		a, b := ask(l, New, "a"), ask(l, New, "b")
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := cmp.Diff(same("Unavailable", "a"), a.values()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if n := c.begun.Load(); n != 2 {
			t.Errorf("%d calls started, want 2: a call that has timed out must not count", n)
		}
		close(c.release)
		synctest.Wait()
		if diff := cmp.Diff(same("b", "b"), b.values()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if n := a.done.Load() + b.done.Load(); n != 2 {
			t.Errorf("done was called %d times, want 2: a late answer is dropped", n)
		}
	})
}

// TestConnectIgnoresContext uses a provider whose Connect ignores its context.
func TestConnectIgnoresContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, b := make(chan struct{}), filled(1)
		l := NewLoader(func(_ context.Context, tenant *quota.Tenant) (*provider.Link, error) {
			<-release
			return connectTo(b)(context.Background(), tenant)
		}, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Link(ctx); !cmp.Equal(err, context.DeadlineExceeded, cmpopts.EquateErrors()) {
			t.Errorf("Link(): %v, want %v", err, context.DeadlineExceeded)
		}
		l.Retire()
		close(release)
		synctest.Wait()
		if n := b.Closes(); n != 1 {
			t.Errorf("a client that came too late was closed %d times, want once", n)
		}
	})
}

// TestConcurrentClients connects from many goroutines at the same time.
func TestConcurrentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(1)
		b.Inject(fake.Fault{Call: fake.CallConnect, Latency: time.Second})
		l := NewLoader(connectTo(b), Options{})
		var mu sync.Mutex
		seen := map[*provider.Link]int{}
		for range 10 {
			go func() {
				c, err := l.Link(t.Context())
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[c]++
			}()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(seen) != 1 {
			t.Errorf("%d different clients were returned, want one", len(seen))
		}
		if open := b.Connects() - b.Closes(); open != 1 {
			t.Errorf("%d clients are open, want one: the others must be closed", open)
		}
	})
}

func TestRetire(t *testing.T) {
	type args struct {
		// retire and checkAt are times after the request.
		retire, checkAt time.Duration
		request         bool
		throttled       bool
		borrow          time.Duration
	}
	cases := map[string]struct {
		reason string
		args   args
		want   int
	}{
		"Idle":        {"An unused client is closed at once.", args{checkAt: 1}, 1},
		"During":      {"A client is not closed during a read.", args{request: true, retire: 100 * ms, checkAt: 900 * ms}, 0},
		"After":       {"A client is closed after its last read.", args{request: true, retire: 100 * ms, checkAt: 2 * time.Second}, 1},
		"BeforeSent":  {"A read that waits for its batch still uses the client.", args{request: true, retire: ms, checkAt: 900 * ms}, 0},
		"Borrowed":    {"A caller of Client keeps the client until its context ends.", args{borrow: time.Second, retire: ms, checkAt: 900 * ms}, 0},
		"BorrowEnds":  {"After the context has ended, the client is closed.", args{borrow: time.Second, retire: ms, checkAt: 1100 * ms}, 1},
		"HeldBack":    {"A client without waiting requests is closed, even if they failed without a call.", args{request: true, throttled: true, retire: 5 * time.Second, checkAt: 40 * time.Second}, 1},
		"HeldBackYet": {"A throttled request can still be read, so the client stays open.", args{request: true, throttled: true, retire: 5 * time.Second, checkAt: 20 * time.Second}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := filled(2)
				l := connected(t, connectTo(b), Options{})
				if tc.args.throttled {
					b.Inject(fake.Fault{Call: fake.CallGetBatch, Times: 1, Err: throttled(time.Hour)})
					ask(l, New, "k1")
					time.Sleep(3 * ms)
					synctest.Wait()
				}
				b.Inject(fake.Fault{Call: fake.CallGetBatch, Latency: time.Second})
				start := time.Now()
				if tc.args.borrow > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), tc.args.borrow)
					defer cancel()
					if _, err := l.Link(ctx); err != nil {
						t.Fatal(err)
					}
				}
				var a *asked
				if tc.args.request {
					a = ask(l, New, "k0")
				}
				time.Sleep(tc.args.retire)
				synctest.Wait()
				l.Retire()
				time.Sleep(time.Until(start.Add(tc.args.checkAt)))
				synctest.Wait()
				if got := b.Closes(); got != tc.want {
					t.Errorf("\n%s\nclosed %d times, want %d", tc.reason, got, tc.want)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := b.Closes(); got != 1 {
					t.Errorf("in the end it was closed %d times, want once", got)
				}
				if a != nil && a.done.Load() != 1 {
					t.Errorf("done was called %d times, want once", a.done.Load())
				}
				if n := b.Connects(); n != 1 {
					t.Errorf("connected %d times, want once", n)
				}
			})
		})
	}
}

// TestRetiredStillReads uses a retired Loader whose client is closed.
func TestRetiredStillReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := filled(1)
		l := connected(t, connectTo(b), Options{})
		l.Retire()
		synctest.Wait()
		a := ask(l, New, "k0")
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := cmp.Diff(same("k0", "k0"), a.values()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if b.Connects() != 2 || b.Closes() != 2 {
			t.Errorf("connected %d and closed %d times, want 2 and 2", b.Connects(), b.Closes())
		}
	})
}

// TestDropUnsent drops requests while their reads wait for a batch.
func TestDropUnsent(t *testing.T) {
	cases := map[string]struct {
		reason string
		others []string
		want   []call
	}{
		"Alone":   {"A read without a request is not sent.", nil, nil},
		"Shared":  {"A read with another request is sent.", []string{"k1"}, []call{{At: 150 * ms, Keys: []string{"k1"}}}},
		"Another": {"A read of another secret is sent alone.", []string{"k2"}, []call{{At: 150 * ms, Keys: []string{"k2"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := filled(3)
				l := connected(t, connectTo(b), Options{})
				start := time.Now()
				time.Sleep(100 * ms)
				a := ask(l, New, "k0", "k1")
				var other *asked
				if tc.others != nil {
					other = ask(l, New, tc.others...)
				}
				time.Sleep(ms)
				a.drop()
				time.Sleep(time.Second)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, calls(b, start)); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
				if n := a.done.Load(); n != 0 {
					t.Errorf("a dropped request has returned %d times", n)
				}
				if other != nil {
					other.values()
				}
				idle(t, l)
				l.Retire()
				synctest.Wait()
				if n := b.Closes(); n != 1 {
					t.Errorf("the client was closed %d times, want once: nothing is under way", n)
				}
			})
		})
	}
}

func TestDone(t *testing.T) {
	cases := map[string]struct {
		reason string
		keys   []string
		drop   time.Duration
		want   int32
	}{
		"One":           {"done is called once.", keys(0, 1), time.Hour, 1},
		"Duplicates":    {"A secret that is named twice counts once.", []string{"k0", "k0", "k1"}, time.Hour, 1},
		"NoRefs":        {"A request for no secrets is complete.", nil, time.Hour, 1},
		"TwoBatches":    {"done is called once, after the last batch.", keys(0, 30), time.Hour, 1},
		"DroppedBefore": {"A request has no results that is dropped before the call.", keys(0, 1), time.Millisecond, 0},
		"DroppedDuring": {"A request has no results that is dropped during the call.", keys(0, 1), 500 * ms, 0},
		"DroppedAfter":  {"A request that is dropped afterwards had its results.", keys(0, 1), 2 * time.Second, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := filled(30)
				b.Inject(fake.Fault{Call: fake.CallGetBatch, Latency: time.Second})
				l := connected(t, connectTo(b), Options{})
				a := ask(l, New, tc.keys...)
				other := ask(l, New, "k0")
				time.Sleep(tc.drop)
				synctest.Wait()
				a.drop()
				a.drop()
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := a.done.Load(); got != tc.want {
					t.Errorf("\n%s\ndone was called %d times, want %d", tc.reason, got, tc.want)
				}
				if diff := cmp.Diff(same("k0", "k0"), other.values()); diff != "" {
					t.Errorf("another request for the same secret: -want, +got:\n%s", diff)
				}
			})
		})
	}
}

// TestStress reads from many goroutines from a provider that fails at times, while clients are retired and contexts end.
// Every Read must return.
func TestStress(t *testing.T) {
	synctest.Test(t, stress)
}

func stress(t *testing.T) {
	b := filled(50, fake.BatchSize(7))
	for i := range 10 {
		key := fmt.Sprintf("k%d", i*5)
		b.Inject(fake.Fault{Call: fake.CallGetBatch, Key: key, Times: 20, Err: provider.NewError(provider.Unavailable, "no")})
	}
	b.Inject(fake.Fault{Call: fake.CallGetBatch, Times: 5, Err: provider.NewError(provider.Throttled, "slow down")})
	b.Inject(fake.Fault{Call: fake.CallFind, Times: 5, Err: provider.NewError(provider.Throttled, "slow down")})
	b.Inject(fake.Fault{Call: fake.CallFind, Key: "k17", Times: 5, Err: provider.NewError(provider.Unavailable, "no")})
	b.Inject(fake.Fault{Call: fake.CallConnect, Times: 2, Err: errBoom})
	b.Inject(fake.Fault{Call: fake.CallGetBatch, Latency: ms, Times: 1000})

	const workers, rounds = 16, 30
	l := NewLoader(connectTo(b), Options{MaxCalls: 3})
	var wg sync.WaitGroup
	var wrong atomic.Int32
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range rounds {
				var want []string
				for range r.IntN(12) {
					want = append(want, fmt.Sprintf("k%d", r.IntN(50)))
				}
				reads := readsOf(want...)
				if r.IntN(4) == 0 {
					reads = append(reads, searching(fmt.Sprintf("k%d", 1+r.IntN(3))))
				}
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(10) == 0 {
					cancel()
				}
				if r.IntN(50) == 0 {
					l.Retire()
				}
				results, release, err := l.Read(ctx, reads, r.IntN(2) == 1, []time.Time{{}, time.Now()}[r.IntN(2)])
				if release(); err != nil && ctx.Err() == nil {
					wrong.Add(1)
				}
				cancel()
				for read, a := range results {
					found := 0
					if read.Search.Path != "" {
						found = 11 // k1, and k10 to k19; k2 and k3 likewise.
					}
					if a.Err == nil && (string(a.Value.Data) != read.Ref.Key || len(a.Found) != found) {
						wrong.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	time.Sleep(time.Hour) // A read whose caller has left after it was sent still ends.
	synctest.Wait()
	if wrong.Load() != 0 {
		t.Errorf("%d wrong results, want none", wrong.Load())
	}
	idle(t, l)
}
