package fetch

import (
	"context"
	"sync"

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

// Urgency ranks a read: requested and changed objects come before periodic refreshes. After a failure every read comes
// last.
func Urgency(why policy.Why, failed bool) dispatch.Urgency {
	if failed {
		return dispatch.Periodic
	}
	switch why {
	case policy.Requested:
		return dispatch.Fresh
	case policy.Changed, policy.First, policy.TargetLost:
		return dispatch.New
	case policy.Retry, policy.Elapsed, policy.NotDue:
	}
	return dispatch.Periodic
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

// Read asks all stores that this operator reads, at the same time, and waits for their answers. The caller calls release
// when it no longer needs the values. The error is kit.ErrParked, kit.ErrInterrupted, or that of ctx.
func (s Stores) Read(ctx context.Context, pool *dispatch.Pool, u dispatch.Urgency) (values render.Values, release func(), err error) {
	reads := map[v1alpha1.StoreRef][]provider.Read{}
	var places []kit.Place
	for _, src := range s.Plan.Sources {
		st := s.all[src.Store]
		if st.foreign || src.Generator {
			continue // The value is stored in a part.
		}
		if reads[src.Store] == nil {
			places = append(places, kit.Place{Store: st.Store.GetUID(), Credentials: st.CredentialsNamespace, Tenant: s.namespace})
		}
		reads[src.Store] = append(reads[src.Store], src.Read)
	}
	r := reading{answers: map[render.Source]provider.Answer{}}
	if len(reads) > 0 {
		err = kit.Wait(ctx, places, func(ctx context.Context) (err error) {
			ctx, span := trace.Start(ctx, trace.Fetch)
			defer func() { span.End(trace.Result(err)) }()
			for ref, wanted := range reads {
				st := s.all[ref]
				r.Go(func() { r.read(ctx, pool.Loader(st.Kind, st.Store, st.CredentialsNamespace), ref, wanted, u) })
			}
			r.Wait()
			return r.result(ctx)
		})
	}
	if err != nil && !errors.Is(err, errFailed) {
		r.release()
		return nil, nil, err
	}
	return s.within(r.values), r.release, nil
}

// reading is a read under way at several stores.
type reading struct {
	sync.WaitGroup
	mu       sync.Mutex
	answers  map[render.Source]provider.Answer
	releases []func()
	failed   bool
}

func (r *reading) read(ctx context.Context, l *dispatch.Loader, ref v1alpha1.StoreRef, wanted []provider.Read, u dispatch.Urgency) {
	answers, release, err := l.Read(ctx, wanted, u)
	if err != nil {
		return // ctx has ended.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releases = append(r.releases, release)
	for read, a := range answers {
		r.answers[render.Source{Store: ref, Read: read}] = a
		r.failed = r.failed || a.Err != nil
	}
}

func (r *reading) result(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.failed:
		return errFailed
	}
	return nil
}

func (r *reading) values(s render.Source) provider.Answer {
	a, ok := r.answers[s]
	if !ok {
		a.Err = provider.NewError(provider.Unavailable, "it was not read; retrying")
	}
	return a
}

func (r *reading) release() {
	for _, f := range r.releases {
		f()
	}
}
