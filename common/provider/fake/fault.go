package fake

import (
	"context"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
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

// Timing implements the constraint of Faults.
func (f Fault) Timing() Timing { return Timing{Times: f.Times, Latency: f.Latency, Hang: f.Hang} }

// begin records a call and applies the fault of the whole call, if there is one.
func (b *Backend) begin(ctx context.Context, r Record) error {
	end, err := quota.Of(ctx).Call(ctx)
	if err != nil {
		return err
	}
	end(0)
	r.Time = time.Now()
	b.Record(r)
	return b.suffer(ctx, r.Call, "")
}

// entry reads one secret and applies its fault, if there is one.
func (b *Backend) entry(ctx context.Context, c Call, ref provider.Ref) provider.Result {
	if err := b.suffer(ctx, c, ref.Key); err != nil {
		return provider.Result{Err: err}
	}
	v, err := b.read(ref)
	return provider.Result{Value: v, Err: err}
}

// suffer applies the fault of a call, or of a key in it, if there is one.
func (b *Backend) suffer(ctx context.Context, c Call, key string) error {
	in := b.Take(func(f Fault) bool { return f.Key == key && (f.Call == "" || f.Call == c) })
	if err := ctx.Err(); err != nil || in == nil {
		return err
	}
	if err := in.Delay(ctx); err != nil {
		return err
	}
	f := in.Fault
	if f.Panic != nil {
		panic(f.Panic)
	}
	if f.Drop && f.Err == nil {
		return provider.NewError(provider.Unavailable, "the answer lacks secret %q", f.Key)
	}
	return f.Err
}
