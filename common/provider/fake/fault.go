package fake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Fault is what goes wrong with the calls that it matches. It waits for Latency, hangs, panics
// and fails in this order, as far as each is set; the zero Fault matches every call and does
// nothing to it.
type Fault struct {
	// Call that is affected. Empty: all but Close.
	Call Call

	// Key limits the fault to one secret, whatever its version: its entry of a batch or of a list,
	// and Get of it. The other entries are not affected, except that they wait. Connect and Check
	// name no key. Empty: the call as a whole.
	Key string

	// Times is how many calls, or entries, are affected; 0 means until the fault is removed.
	Times int

	// Latency delays the call, or until its context ends.
	Latency time.Duration

	// Hang holds the call until its context ends or the fault is removed.
	Hang bool

	// Panic is the value of a panic.
	Panic any

	// Err is returned as it is; provider.NewError makes one of any class.
	Err error

	// Drop leaves the secret out of the answer, which is Unavailable. Use it with Key.
	Drop bool
}

type injected struct {
	Fault
	left    int
	removed chan struct{}
}

// Inject adds a fault. Of several that match, the oldest acts. The function returned removes it,
// and lets go of what hangs in it.
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

// begin records a call and goes through the fault of the call as a whole, if there is one.
func (b *Backend) begin(ctx context.Context, r Record) error {
	b.record(r)
	return b.take(r.Call, "").act(ctx)
}

// entry reads one secret and goes through its fault, if there is one.
func (b *Backend) entry(ctx context.Context, c Call, ref provider.Ref) provider.Result {
	if err := b.take(c, ref.Key).act(ctx); err != nil {
		return provider.Result{Err: err}
	}
	v, err := b.read(ref)
	return provider.Result{Value: v, Err: err}
}

// take finds the fault for a call, or for a key in it, and counts it down.
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

// wait holds the call for as long as the fault says; an error means that ctx ended before.
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
