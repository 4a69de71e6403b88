package fetch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// reading is a read under way for one object, with one ticket for each store.
type reading struct {
	attempt Attempt
	// at is when the read was requested, basis the stored result at that time.
	at      time.Time
	basis   string
	tickets map[v1alpha1.StoreRef]*dispatch.Ticket
	missing atomic.Int32
	// asked is the pass that started the read, span the duration of the read.
	asked trace.Parent
	span  *trace.Span
}

// read asks the stores that have a loader. It calls done when all of them have answered, with failed true if one of
// them returned an error.
func read(w Want, at time.Time, loaders map[v1alpha1.StoreRef]*dispatch.Loader, u dispatch.Urgency, done func(failed bool)) *reading {
	reads := map[v1alpha1.StoreRef][]provider.Read{}
	for _, s := range w.Stores.Plan.Sources {
		if loaders[s.Store] == nil || s.Generator {
			continue // The value is stored in a part.
		}
		reads[s.Store] = append(reads[s.Store], s.Read)
	}
	_, span := trace.Start(trace.Under(context.Background(), w.Trace), trace.Fetch)
	r := &reading{asked: w.Trace, span: span, attempt: w.Attempt, at: at, basis: w.Basis, tickets: make(map[v1alpha1.StoreRef]*dispatch.Ticket, len(reads))}
	// One more than the number of stores, so that done does not run before all tickets are stored.
	r.missing.Store(int32(len(reads)) + 1)
	arrived := func() {
		if r.missing.Add(-1) == 0 {
			done(r.ended())
		}
	}
	for s, wanted := range reads {
		r.tickets[s] = loaders[s].RequestUnder(span.Parent(), wanted, u, arrived)
	}
	return r
}

// start allows done to run.
func (r *reading) start(done func(failed bool)) {
	if r.missing.Add(-1) == 0 {
		done(r.ended())
	}
}

// ended ends the span of the completed read, and reports whether one of the stores failed.
func (r *reading) ended() bool {
	failed := r.failed()
	if failed {
		r.span.End("failed")
	} else {
		r.span.End("")
	}
	return failed
}

// take returns the results of all stores; false while an answer is missing.
func (r *reading) take() (render.Values, bool) {
	if r.missing.Load() > 0 {
		return nil, false
	}
	all := map[render.Source]provider.Answer{}
	for s, t := range r.tickets {
		results, ok := t.Take()
		if !ok {
			return nil, false
		}
		for read, a := range results {
			all[render.Source{Store: s, Read: read}] = a
		}
	}
	return func(s render.Source) provider.Answer {
		a, ok := all[s]
		if !ok {
			a.Err = provider.NewError(provider.Unavailable, "it was not read; retrying")
		}
		return a
	}, true
}

// failed reports whether a store has answered with an error.
func (r *reading) failed() bool {
	for _, t := range r.tickets {
		if t.Failed() {
			return true
		}
	}
	return false
}

func (r *reading) drop() {
	if r.missing.Load() > 0 {
		r.span.End("dropped")
	}
	for _, t := range r.tickets {
		t.Drop()
	}
}
