package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// attempt is what a push rests on: a failure is no reason to wait once any of it has changed.
type attempt struct {
	generation      int64
	request, source string
}

// job is what is to be done to one remote secret.
type job struct {
	target provider.Target
	want   []push.Value
	// known are the entries of the status that the decision goes by; kept stay as they are.
	known, kept []v1alpha1.PushEntryStatus
}

// result is what has come of a push to one store.
type result struct {
	attempt
	// generated is the version of the values, if a generator made them.
	generated string
	at        time.Time
	entries   []v1alpha1.PushEntryStatus
	exists    []string
	left      []v1alpha1.PushEntryStatus
	err       error
	// retryAfter is how long a provider asked to wait.
	retryAfter time.Duration
}

// jobOf returns the place of the job for a remote secret; -1 for none.
func jobOf(jobs []job, key string) int {
	return slices.IndexFunc(jobs, func(j job) bool { return j.target.Key == key })
}

// jobFor is jobOf that adds one that wants nothing where there is none.
func jobFor(jobs []job, key string) ([]job, int) {
	if i := jobOf(jobs, key); i >= 0 {
		return jobs, i
	}
	return append(jobs, job{target: provider.Target{Key: key}}), len(jobs)
}

// start pushes to one store, beside this pass. The object comes back when it has ended.
func (p *pass) start(ctx context.Context, d *destination, sources []pushed, a attempt, generated string) {
	jobs, err := p.jobs(d, sources, a.source)
	if err != nil {
		d.conclude(failure(d.name(), err), p.ps.Generation)
		p.again(lastBackoff)
		return
	}
	p.launch(ctx, d, jobs, a, generated)
}

// jobs returns what the spec wants of a store, and what is to be removed from it. An error means that
// nothing may be pushed.
func (p *pass) jobs(d *destination, sources []pushed, hash string) ([]job, error) {
	var plain []push.Source
	for _, s := range sources {
		if s.labels[d.label(p.ps.Namespace)] != "" {
			return nil, provider.NewError(provider.Invalid, "Secret %q came from this store, and pushing it back would go round in circles; push another Secret, or to another store", s.Name)
		}
		plain = append(plain, s.Source)
	}
	remotes, err := p.plan.Desire(d.ref(), plain)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, r := range remotes {
		if d.grant != nil {
			if err := d.grant.Writes(r.Target.Key); err != nil {
				return nil, provider.NewError(provider.Denied, "%s", err)
			}
		}
		jobs = append(jobs, job{target: r.Target, want: r.Values})
	}
	for _, e := range d.status.Entries {
		i := jobOf(jobs, e.RemoteKey)
		wanted := i >= 0 && slices.ContainsFunc(jobs[i].want, func(v push.Value) bool { return v.Property == e.Property })
		switch {
		case wanted:
			jobs[i].known = append(jobs[i].known, e)
			continue
		case !e.Created || p.ps.Spec.DeletionPolicy != v1alpha1.PushDeletionDelete:
			continue // It is let go.
		}
		jobs, i = jobFor(jobs, e.RemoteKey)
		if p.takenOut(d, e, sources, hash) && (d.grant == nil || d.grant.Writes(e.RemoteKey) == nil) {
			jobs[i].known = append(jobs[i].known, e)
		} else {
			e.Source = "" // It stays until the object goes, also when the spec changes later.
			jobs[i].kept = append(jobs[i].kept, e)
		}
	}
	return jobs, nil
}

// takenOut reports whether an entry that is not wanted any more was taken out of the spec, with all else as it
// was when the store last was in step. That its Secret is gone, or lacks keys, deletes nothing.
func (p *pass) takenOut(d *destination, e v1alpha1.PushEntryStatus, sources []pushed, hash string) bool {
	return d.status.ObservedGeneration != p.ps.Generation && d.status.ObservedSource == hash && slices.ContainsFunc(sources, func(s pushed) bool {
		return s.Name == e.Source && len(s.Data) > 0
	})
}

// launch has jobs done in the lane of a store; if that is full, the object comes back when it is its turn.
func (p *pass) launch(ctx context.Context, d *destination, jobs []job, a attempt, generated string) {
	lane := d.lane(p.ps.Namespace)
	if !p.lanes.Enter(lane, p.key) {
		p.again(holdInterval) // Whose turn it is may be gone by then, and nobody else be named.
		return
	}
	p.obj.mu.Lock()
	s := p.obj.store(idOf(d.status))
	ctx, cancel := context.WithCancel(ctx)
	s.running, s.attempt, s.cancel = true, a, cancel
	p.obj.mu.Unlock()

	pusher := push.Pusher{Kind: d.route.GoName(), Policies: push.Policies{
		Update: p.ps.Spec.UpdatePolicy, Adoption: p.ps.Spec.AdoptionPolicy, Mark: string(p.ps.UID),
		Deletes: p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete,
		Settled: p.ps.Spec.Template != nil && a.generation == d.status.ObservedGeneration && a.source == d.status.ObservedSource,
	}}
	loader := p.pool.Loader(d.route.Kind, d.store, resolve.Beside(d.store, p.ps.Namespace))
	obj, key, at, timeout := p.obj, p.key, p.now, p.opts.CallTimeout
	go func() {
		res := carryOut(ctx, loader, pusher, jobs, timeout)
		cancel()
		res.attempt, res.generated, res.at = a, generated, at
		if next, waits := p.lanes.Leave(lane); waits {
			p.enqueue(next, queue.High)
		}
		obj.mu.Lock()
		s.running, s.result = false, res
		obj.mu.Unlock()
		p.enqueue(key, queue.High)
	}()
}

// carryOut does jobs one after another. What fails for the whole store ends it; the other jobs then leave
// the status as it is.
func carryOut(ctx context.Context, loader *dispatch.Loader, pusher push.Pusher, jobs []job, timeout time.Duration) (res *result) {
	defer func() {
		// Nobody else could: this is a goroutine of its own. What panicked may hold a secret.
		if recover() != nil {
			res = &result{err: provider.NewError(provider.Unavailable, "the operator's code failed during the push")}
			for _, j := range jobs {
				res.entries = append(res.entries, slices.Concat(j.known, j.kept)...)
			}
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res = &result{}
	err := connect(ctx, loader, &pusher, timeout)
	var errs []error
	missed := 0 // Answers that did not come, in a row.
	for _, j := range jobs {
		if err != nil || ctx.Err() != nil {
			res.entries = append(res.entries, slices.Concat(j.known, j.kept)...)
			continue
		}
		o := apply(ctx, pusher, j, timeout)
		res.entries = append(res.entries, slices.Concat(o.Entries, j.kept)...)
		res.left = append(res.left, o.Left...)
		for _, property := range o.Exists {
			res.exists = append(res.exists, place(j.target.Key, property))
		}
		if o.Err == nil {
			missed = 0
			continue
		}
		errs = append(errs, about(j.target.Key, o.Err))
		res.retryAfter = max(res.retryAfter, provider.RetryAfter(o.Err))
		switch provider.ClassOf(o.Err) { //nolint:exhaustive // The others concern the one secret.
		case provider.Throttled:
			err = o.Err
		case provider.Unavailable:
			if missed++; missed > 1 {
				err = o.Err
			}
		}
	}
	if len(errs) == 0 && err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 && ctx.Err() != nil {
		errs = append(errs, ctx.Err())
	}
	res.err = errors.Join(errs...)
	return res
}

func connect(ctx context.Context, loader *dispatch.Loader, pusher *push.Pusher, timeout time.Duration) error {
	type made struct {
		client provider.Client
		err    error
	}
	// The client is lent for as long as ctx, which is that of all jobs.
	answer := make(chan made, 1)
	go func() {
		c, err := loader.Client(ctx)
		answer <- made{c, err}
	}()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-t.C:
		return provider.NewError(provider.Unavailable, "the provider did not answer in time")
	case m := <-answer:
		if m.err != nil {
			return m.err
		}
		w, err := provider.AsWriter(m.client)
		if err != nil {
			return provider.NewError(provider.Invalid, "not implemented: this store cannot be written; use another")
		}
		pusher.Writer, pusher.Features = w, w.Features()
		return nil
	}
}

func apply(ctx context.Context, pusher push.Pusher, j job, timeout time.Duration) push.Outcome {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return pusher.Apply(ctx, j.target, j.want, j.known)
}

// about names the key in an error of a provider.
func about(key string, err error) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && len(joined.Unwrap()) > 0 {
		err = joined.Unwrap()[0]
	}
	safe := provider.Safe(err)
	e := provider.NewError(safe.Class, "%q: %s", key, safe.Message)
	e.RetryAfter = safe.RetryAfter
	return e
}

// place names a remote secret or a property of it.
func place(key, property string) string {
	if property == "" {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("property %q of %q", property, key)
}

// refreshed notes a success. The times are written only with another change or as a heartbeat.
func refreshed(st, before *v1alpha1.PushStoreStatus, res *result, next time.Time) {
	if !heartbeat(st, before, res.at) {
		return
	}
	st.RefreshTime, st.NextRefreshTime = &metav1.Time{Time: res.at.Truncate(time.Second)}, nil
	if !next.IsZero() {
		st.NextRefreshTime = &metav1.Time{Time: next.Truncate(time.Second)}
	}
}
