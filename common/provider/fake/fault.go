package fake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Fault affects the calls that it matches. It waits for Latency, hangs, panics and fails in this order, if each is
// set. The zero Fault matches every call and does nothing.
type Fault struct {
	// Call is the affected call. Empty: all but Close.
	Call Call

	// Key limits the fault to one secret, whatever its version: to its entry of a batch or of a list, and to Get.
	// Other entries only wait. Connect and Check have no key. Empty: the whole call.
	Key string

	// Times limits the affected calls, or entries; 0 means until the fault is removed.
	Times int

	// Latency delays the call, at most until its context ends.
	Latency time.Duration

	// Hang blocks the call until its context ends or the fault is removed.
	Hang bool

	// Panic is the value of a panic; nil for none.
	Panic any

	// Err is returned unchanged; provider.NewError makes an error of any class.
	Err error

	// Drop omits the secret from the answer, which makes it Unavailable. Use it with Key.
	Drop bool
}

type injected struct {
	Fault
	left    int
	removed chan struct{}
}

// Inject adds a fault. The oldest of several matching faults applies. The returned function removes the fault, and
// ends the calls that hang in it.
func (b *Backend) Inject(f Fault) (remove func()) {
	in := &injected{Fault: f, left: f.Times, removed: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, in)
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = slices.DeleteFunc(b.faults, func(x *injected) bool { return x == in })
		close(in.removed)
	})
}

// begin records a call and applies the fault of the whole call, if there is one.
func (b *Backend) begin(ctx context.Context, r Record) error {
	b.record(r)
	return b.take(r.Call, "").act(ctx)
}

// entry reads one secret and applies its fault, if there is one.
func (b *Backend) entry(ctx context.Context, c Call, ref provider.Ref) provider.Result {
	if err := b.take(c, ref.Key).act(ctx); err != nil {
		return provider.Result{Err: err}
	}
	v, err := b.read(ref)
	return provider.Result{Value: v, Err: err}
}

// take returns the fault for a call, or for a key in it, and counts it.
func (b *Backend) take(c Call, key string) *injected {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.faults, func(f *injected) bool {
		return f.Key == key && (f.Call == "" || f.Call == c) && (f.Times == 0 || f.left > 0)
	})
	if i < 0 {
		return nil
	}
	b.faults[i].left--
	return b.faults[i]
}

func (f *injected) act(ctx context.Context) error {
	if err := ctx.Err(); err != nil || f == nil {
		return err
	}
	if err := f.wait(ctx); err != nil {
		return err
	}
	if f.Panic != nil {
		panic(f.Panic)
	}
	if f.Drop && f.Err == nil {
		return provider.NewError(provider.Unavailable, "the answer lacks secret %q", f.Key)
	}
	return f.Err
}

// wait blocks the call as the fault specifies. An error means that ctx ended first.
func (f *injected) wait(ctx context.Context) error {
	if f.Latency > 0 {
		t := time.NewTimer(f.Latency)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
	if !f.Hang {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.removed:
		return nil
	}
}
