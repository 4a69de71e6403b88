package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// errFailed means that a store has answered with an error.
var errFailed = errors.New("a store has answered with an error")

// Urgent reports whether a read comes before others: requested and changed objects come before periodic refreshes. After a failure every
// read comes last.
func Urgent(why policy.Why, failed bool) bool {
	switch why {
	case policy.Requested, policy.Changed, policy.First, policy.TargetLost, policy.Notified:
		return !failed
	case policy.Retry, policy.Elapsed, policy.NotDue:
	}
	return false
}

// After returns the time after which a read must start. A user writes a value before the object that reads it, so that is when the
// object was first seen as it is now. After an event, it is the time of the event. Periodic refreshes can share any read.
func After(why policy.Why, of *kit.Attempts) time.Time {
	switch why {
	case policy.Requested, policy.Changed, policy.First:
		return of.Seen()
	case policy.Notified:
		return of.Notified()
	case policy.TargetLost, policy.Retry, policy.Elapsed, policy.NotDue:
	}
	return time.Time{}
}

// Refused returns a verdict if one of the stores that this operator reads cannot be used now; otherwise nil.
func (s Stores) Refused() *status.Verdict {
	for _, ref := range s.Plan.Stores() {
		if st := s.all[ref]; !st.foreign && st.refusal != nil {
			return &kit.Refused(ref, st.Handle, st.refusal).Verdict
		}
	}
	return nil
}

// Read asks all stores that this operator reads, at the same time, and waits for their answers, of reads that start after the
// given time. The caller calls release
// when it no longer needs the values. The error is kit.ErrParked, kit.ErrInterrupted, or that of ctx.
func (s Stores) Read(ctx context.Context, pool *dispatch.Pool, urgent bool, after time.Time) (values render.Values, release func(), err error) {
	var mu sync.Mutex
	var releases []func()
	answers, failed := map[render.Source]provider.Answer{}, false
	read := func(ctx context.Context, ref v1alpha1.StoreRef, wanted []provider.Read) {
		st := s.all[ref]
		found, done, err := pool.Loader(st.Kind, st.Store, st.CredentialsNamespace).Read(ctx, wanted, urgent, after)
		if err != nil {
			return // ctx has ended.
		}
		mu.Lock()
		defer mu.Unlock()
		releases = append(releases, done)
		for read, a := range found {
			answers[render.Source{Store: ref, Read: read}] = a
			failed = failed || a.Err != nil
		}
	}
	reads, places := s.reads()
	if len(reads) > 0 {
		err = kit.Wait(ctx, places, func(ctx context.Context) (err error) {
			ctx, span := trace.Start(ctx, trace.Fetch)
			defer func() { span.End(trace.Result(err)) }()
			var calls sync.WaitGroup
			for ref, wanted := range reads {
				calls.Go(func() { read(ctx, ref, wanted) })
			}
			calls.Wait()
			if ctx.Err() == nil && failed {
				return errFailed
			}
			return ctx.Err()
		})
	}
	release = func() {
		for _, f := range releases {
			f()
		}
	}
	if err != nil && !errors.Is(err, errFailed) {
		release()
		return nil, nil, err
	}
	return s.within(func(src render.Source) provider.Answer {
		a, ok := answers[src]
		if !ok {
			a.Err = provider.NewError(provider.Unavailable, "it was not read; retrying")
		}
		return a
	}), release, nil
}

// reads returns what to read of each store that this operator reads, and the place of each store. Values that are stored
// in a part are left out.
func (s Stores) reads() (reads map[v1alpha1.StoreRef][]provider.Read, places []kit.Place) {
	reads = map[v1alpha1.StoreRef][]provider.Read{}
	for _, src := range s.Plan.Sources {
		st := s.all[src.Store]
		if st.foreign || src.Generator {
			continue
		}
		if reads[src.Store] == nil {
			places = append(places, kit.Place{Store: st.Store.GetUID(), Credentials: st.CredentialsNamespace, Tenant: s.namespace})
		}
		reads[src.Store] = append(reads[src.Store], src.Read)
	}
	return reads, places
}
