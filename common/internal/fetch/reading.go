package fetch

import (
	"sync/atomic"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// reading is a read under way for one object: a ticket for each store.
type reading struct {
	attempt Attempt
	// at is when it was asked for, basis what was stored then.
	at      time.Time
	basis   string
	tickets map[v1alpha1.StoreRef]*dispatch.Ticket
	missing atomic.Int32
}

// read asks the stores for which there are loaders for their secrets. done is called when all have answered, and
// told whether one of them failed.
func read(w Want, at time.Time, loaders map[v1alpha1.StoreRef]*dispatch.Loader, u dispatch.Urgency, done func(failed bool)) *reading {
	reads := map[v1alpha1.StoreRef][]provider.Read{}
	for _, s := range w.Stores.Plan.Sources {
		if loaders[s.Store] == nil || s.Generator {
			continue // It lies in a part.
		}
		reads[s.Store] = append(reads[s.Store], s.Read)
	}
	r := &reading{attempt: w.Attempt, at: at, basis: w.Basis, tickets: make(map[v1alpha1.StoreRef]*dispatch.Ticket, len(reads))}
	// One more than there are stores, so that done does not run before the tickets are kept.
	r.missing.Store(int32(len(reads)) + 1)
	arrived := func() {
		if r.missing.Add(-1) == 0 {
			done(r.failed())
		}
	}
	for s, wanted := range reads {
		r.tickets[s] = loaders[s].Request(wanted, u, arrived)
	}
	return r
}

// start lets done run; until then it is held back.
func (r *reading) start(done func(failed bool)) {
	if r.missing.Add(-1) == 0 {
		done(r.failed())
	}
}

// take returns the results of all stores; false while some are missing.
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
			a.Err = provider.NewError(provider.Unavailable, "it was not read")
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
	for _, t := range r.tickets {
		t.Drop()
	}
}
