package provider

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/internal/trace"
)

// The metrics are here, in the functions that make all calls: a wrapper around the client would hide its optional
// interfaces.
var (
	calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "directsecrets_provider_calls_total",
		Help: "Calls to a provider, by store kind, call and result.",
	}, []string{"kind", "call", "result"})
	callSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "directsecrets_provider_call_duration_seconds",
		Help:    "Duration of calls to a provider, including retries inside the call.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"kind", "call"})
	batchSize = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "directsecrets_fetch_batch_size",
		Help:    "Number of secrets read by one call to a provider.",
		Buckets: []float64{1, 2, 5, 10, 20, 50, 100},
	}, []string{"kind"})
)

func init() {
	metrics.Registry.MustRegister(calls, callSeconds, batchSize)
}

// Capability names, as shown in the status of a store or generator.
const (
	CapabilityRead     = "Read"
	CapabilityBatch    = "BatchRead"
	CapabilityFind     = "Find"
	CapabilityGenerate = "Generate"
	CapabilityRenew    = "Renew"
	CapabilityCleanup  = "Cleanup"
	CapabilityCheck    = "Check"
	CapabilityWrite    = "Write"
	CapabilityReceive  = "Receive"
)

// Capabilities returns the capabilities of a Client or Generator, by the interfaces that it implements.
func Capabilities(c any) (caps []string) {
	for _, of := range []struct {
		name string
		has  bool
	}{
		{CapabilityRead, is[Client](c)},
		{CapabilityBatch, is[Batcher](c)},
		{CapabilityFind, is[Finder](c)},
		{CapabilityGenerate, is[Generator](c)},
		{CapabilityRenew, is[Renewer](c)},
		{CapabilityCleanup, is[Cleaner](c)},
		{CapabilityCheck, is[Checker](c)},
		{CapabilityWrite, is[Writer](c)},
		{CapabilityReceive, is[EventSource](c)},
	} {
		if of.has {
			caps = append(caps, of.name)
		}
	}
	return caps
}

func is[I any](c any) bool {
	_, ok := c.(I)
	return ok
}

// BatchSize returns how many secrets one call to GetBatch reads; 1 for a client without batches.
func (l *Link) BatchSize() int {
	if b, ok := l.made.(Batcher); ok {
		return max(1, b.BatchSize())
	}
	return 1
}

// GetBatch reads refs, at most BatchSize of them, and returns a result for each. Without a Batcher it reads them one by
// one.
func (l *Link) GetBatch(ctx context.Context, refs []Ref) (results []Result) {
	b, ok := l.made.(Batcher)
	if !ok {
		for _, ref := range refs {
			v, err := l.Get(ctx, ref)
			results = append(results, Result{Value: v, Err: err})
		}
		return results
	}

	batchSize.WithLabelValues(l.kind).Observe(float64(len(refs)))
	ctx, done := begin(ctx, l, "GetBatch")
	results, err := guard("reading a batch", func() ([]Result, error) { return b.GetBatch(ctx, refs), nil })
	if err == nil && len(results) != len(refs) {
		err = NewError(Unavailable, "the provider returned %d of %d secrets", len(results), len(refs))
	}
	if err != nil {
		results = make([]Result, len(refs))
		for i := range results {
			results[i].Err = err
		}
	}
	done(worst(results))
	return results
}

// Get reads one secret. Its data count for the tenant until ctx ends.
func (l *Link) Get(ctx context.Context, ref Ref) (Value, error) {
	c, err := as[Client](l, "read")
	if err != nil {
		return Value{}, err
	}
	v, err := call(ctx, l, "Get", "reading", nil, func(ctx context.Context) (Value, error) { return c.Get(ctx, ref) })
	hold(ctx, l, len(v.Data))
	return v, err
}

// Find yields every matching secret, or errors.ErrUnsupported if the client is not a Finder.
func (l *Link) Find(ctx context.Context, q Query) iter.Seq2[Value, error] {
	f, err := as[Finder](l, "find")
	if err != nil {
		return func(yield func(Value, error) bool) { yield(Value{}, err) }
	}
	return func(yield func(Value, error) bool) {
		ctx, done := begin(ctx, l, "Find")
		var last error
		stopped := false
		_, failed := guard("finding", func() (struct{}, error) {
			for v, err := range f.Find(ctx, q) {
				last = err
				if stopped = !yield(v, err) || err != nil; stopped {
					break
				}
			}
			return struct{}{}, nil
		})
		if failed == nil && last == nil {
			// A list that ended because of the timeout is incomplete.
			failed = ctx.Err()
		}
		if failed != nil && !stopped {
			last = failed
			yield(Value{}, failed)
		}
		done(last)
	}
}

// Check checks whether the Client, Generator or EventSource works. It returns nil for one that is not a Checker. An EventSource
// whose last Receive has failed does not work.
func (l *Link) Check(ctx context.Context) error {
	if receivesNothing(l) {
		return Warnings{"the operator runs with --no-remote-changes, so it receives no messages"}
	}
	if err := lastReceived(l); err != nil {
		return err
	}
	ch, ok := l.made.(Checker)
	if !ok {
		return nil
	}
	ctx, done := begin(ctx, l, "Check")
	_, err := guard("checking", func() (struct{}, error) { return struct{}{}, ch.Check(ctx) })
	var w Warnings
	if errors.As(err, &w) {
		done(nil)
		return err
	}
	done(err)
	return err
}

// receivesNothing reports whether this is an EventSource of an operator that refuses remote changes, which include receiving.
func receivesNothing(l *Link) bool { return l.Can(CapabilityReceive) && l.refused != nil }

// Close releases the resources of a Client or Generator, if it is an io.Closer.
func Close(c any) error {
	cl, ok := c.(io.Closer)
	if !ok {
		return nil
	}
	_, err := guard("closing", func() (struct{}, error) { return struct{}{}, cl.Close() })
	return err
}

func guard[T any](doing string, f func() (T, error)) (v T, err error) {
	defer recoverTo(&err, doing)
	return f()
}

// begin starts a call of the contract. It returns the context of the call, and a function to call with its error.
func begin(ctx context.Context, l *Link, call string) (context.Context, func(error)) {
	start, kind := time.Now(), l.kind
	ctx, span := trace.Start(l.context(ctx), trace.Call, "directsecrets.kind", kind, "directsecrets.call", call)
	return ctx, func(err error) {
		result := "ok"
		if err != nil {
			result = string(ClassOf(err))
		}
		calls.WithLabelValues(kind, call, result).Inc()
		callSeconds.WithLabelValues(kind, call).Observe(time.Since(start).Seconds())
		span.End(result)
	}
}

// worst returns the first error that is not NotFound, because NotFound is a normal answer. Without one, it returns
// the last NotFound.
func worst(results []Result) error {
	var missing error
	for _, r := range results {
		if r.Err != nil && !IsNotFound(r.Err) {
			return r.Err
		}
		if r.Err != nil {
			missing = r.Err
		}
	}
	return missing
}
