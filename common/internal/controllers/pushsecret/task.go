package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// task is a push of one object to one store, and its state.
type task struct {
	result

	to     *destination
	pusher push.Pusher
	others *others
	jobs   []job
	// lists lets the wanted entries be listed once.
	lists sync.Once
	// origins are other stores that the pushed Secrets were read from.
	origins []origin
	// location is where the store keeps its secrets.
	location location

	// errs are errors of single secrets, and of entries of spec.dataTo that match no key. failed is the error of the whole store.
	errs   []error
	failed error
	// held are the errors of secrets with a value that another object holds.
	held []error
	// missed counts the unavailable answers in a row.
	missed int
	// changes are what a push would do, by key.
	changes map[string][]push.Change
}

// result is the result of a task.
type result struct {
	kit.Attempt

	// generated is the version of the values, if a generator made them.
	generated string
	started   time.Time
	// refused is why there was nothing to push; nil for a push. Otherwise only the attempt is set.
	refused *status.Verdict
	// entries are those for the status.
	entries []v1alpha1.PushEntryStatus
	exists  []string
	// stays are entries that this object created and neither removes nor records any longer, by the reason.
	stays map[string][]v1alpha1.PushEntryStatus
	err   error
	// conflict is true if another object holds a wanted value, and all else is in sync.
	conflict bool
	// released are the entries that another object takes over, for messages.
	released []string
	// again is the time until a removal that waits for other objects is decided again; 0 for none.
	again time.Duration
	// retryAfter is how long a provider asked to wait.
	retryAfter time.Duration
	// difference is what a push would do; nil if the task was a push.
	difference *v1alpha1.PushDifference
	// place is where the store keeps its secrets; empty if it is unknown.
	place string
}

// Reasons why something stays behind.
const (
	changedSince = "another client changed it after this object created it"
	usedByOthers = "another PushSecret pushes to it and does not take it over, or was not compared within a minute; delete it by hand once it is not needed"
	otherPlace   = "the store leads to another place than when this object created it; delete it by hand"
	ownerless    = "its owner has released it, and the login of this store is not allowed to mark it; delete it by hand once it is not needed"
)

// old reports whether the object or its sources have changed during the push. They must be read again.
func (r *result) old() bool { return errors.Is(r.err, push.ErrOld) }

// stay records entries that stay behind.
func (r *result) stay(entries []v1alpha1.PushEntryStatus, why string) {
	if r.stays == nil {
		r.stays = map[string][]v1alpha1.PushEntryStatus{}
	}
	r.stays[why] = append(r.stays[why], entries...)
}

// runner runs tasks.
type runner struct {
	pool *dispatch.Pool
	// sites let one push or removal at a time work on a remote secret.
	sites provider.Locks[string]
	// incomplete reports whether a wanted value could not be written.
	incomplete func(*task) bool
	// timeout is the time limit for the calls to one remote secret.
	timeout time.Duration
}

// run runs a task.
func (r *runner) run(ctx context.Context, t *task) {
	r.carryOut(ctx, r.pool.Loader(t.to.route.Kind, t.to.store, resolve.CredentialsNamespace(t.to.store, t.others.unit.Namespace)), t)
}

// carryOut runs the jobs of a task one after another. An error of the whole store ends the task; the status entries of the remaining
// jobs stay as they are. Removals come last, and none is made if a wanted value could not be written.
func (r *runner) carryOut(ctx context.Context, loader *dispatch.Loader, t *task) {
	defer func() {
		if recover() != nil { // Its value is dropped because it may hold a secret.
			t.panicked()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.failed = r.open(ctx, loader, t)
	t.stay(t.move(), otherPlace)
	t.identify(ctx)
	removals := t.write(ctx, r)
	incomplete := r.incomplete(t)
	for _, j := range removals {
		if incomplete || t.failed != nil || ctx.Err() != nil {
			t.keepEntries(j)
			continue
		}
		t.note(j, r.apply(ctx, t, j, false))
	}
	switch {
	case errors.Is(t.failed, push.ErrOld):
		t.errs = []error{t.failed}
	case len(t.errs) > 0:
	case t.failed != nil:
		t.errs = []error{t.failed}
	case ctx.Err() != nil:
		t.errs = []error{ctx.Err()}
	}
	t.conflict = len(t.errs) == 0 && len(t.held) > 0
	t.err = errors.Join(append(t.errs, t.held...)...)
	t.differ()
}

// panicked ends a task that has panicked. The recorded entries must not be lost.
func (t *task) panicked() {
	t.err = provider.NewError(provider.Unavailable, "the operator failed during the push; see its log")
	for _, j := range t.jobs {
		if !slices.ContainsFunc(t.entries, func(e v1alpha1.PushEntryStatus) bool { return e.RemoteKey == j.target.Key }) {
			t.entries = append(t.entries, slices.Concat(j.known, j.kept)...)
		}
	}
	t.differ()
}

// differ sets the difference of a dry run.
func (t *task) differ() {
	if t.pusher.DryRun {
		t.difference = differenceOf(t.changes)
	}
}

// incomplete reports whether a wanted value could not be written.
func incomplete(t *task) bool { return len(t.errs)+len(t.held) > 0 }

// write runs the jobs with wanted values, and returns the removals to make afterwards. If only one remote secret is written, the same
// write also removes its obsolete properties.
func (t *task) write(ctx context.Context, r *runner) (removals []job) {
	wanted := len(t.errs)
	for _, j := range t.jobs {
		if len(j.want) > 0 {
			wanted++
		}
	}
	for _, j := range t.jobs {
		switch {
		case len(j.want)+len(j.known) == 0:
			t.keepEntries(j) // The job only keeps entries.
		case len(j.want) == 0:
			removals = append(removals, j)
		case t.failed != nil || ctx.Err() != nil:
			t.keepEntries(j)
		case j.removes() && wanted > 1:
			o := r.apply(ctx, t, j, true)
			t.change(j, o.Changes)
			t.outcome(j, o)
			j.known = o.Entries
			removals = append(removals, j)
		default:
			t.note(j, r.apply(ctx, t, j, false))
		}
	}
	return removals
}

// keepEntries keeps the entries of a job as they are.
func (t *task) keepEntries(j job) {
	t.entries = append(t.entries, slices.Concat(j.known, j.kept)...)
	if _, decided := t.changes[j.target.Key]; !decided {
		t.change(j, push.Failing(j.want))
	}
}

// change records what a push would do with the remote secret of a job. A later decision replaces the former one.
func (t *task) change(j job, changes []push.Change) {
	if t.changes == nil {
		t.changes = map[string][]push.Change{}
	}
	t.changes[j.target.Key] = changes
}

// note adds the outcome of a job.
func (t *task) note(j job, o push.Outcome) {
	t.change(j, o.Changes)
	t.entries = append(t.entries, slices.Concat(o.Entries, j.kept)...)
	t.stay(o.Left, changedSince)
	t.stay(o.Released, usedByOthers)
	t.stay(o.Ownerless, ownerless)
	for _, e := range o.Used {
		t.released = append(t.released, place(e.RemoteKey, e.Property)+" to "+o.By)
	}
	for _, property := range o.Exists {
		t.exists = append(t.exists, place(j.target.Key, property))
	}
	if o.Postponed {
		t.again = push.Behind{Waited: t.others.waited}.Again()
	}
	t.outcome(j, o)
}

// outcome adds the error of an outcome, if any. That another object holds a value is certain, and does not change by itself.
func (t *task) outcome(j job, o push.Outcome) {
	if o.Held && o.Err != nil {
		t.held = append(t.held, about(j.target.Key, o.Err))
		return
	}
	t.failures(j, o.Err)
}

// failures adds the error of a job, if any.
func (t *task) failures(j job, err error) {
	if err == nil {
		t.missed = 0
		return
	}
	if errors.Is(err, push.ErrOld) {
		t.failed = err
		return
	}
	t.errs = append(t.errs, about(j.target.Key, err))
	t.retryAfter = max(t.retryAfter, provider.RetryAfter(err))
	switch provider.ClassOf(err) { //nolint:exhaustive // Other classes concern only this secret.
	case provider.Throttled:
		t.failed = err
	case provider.Unavailable:
		if t.missed++; t.missed > 1 {
			t.failed = err
		}
	}
}

// apply runs a job; later leaves its removals to a later call. Pushes to a remote secret and removals from it exclude each other until
// the entries are recorded: otherwise a value that was found in sync could be removed a moment later. A dry run keeps no other task
// waiting.
func (r *runner) apply(ctx context.Context, t *task, j job, later bool) push.Outcome {
	if t.pusher.DryRun {
		return r.call(ctx, t, j, later)
	}
	unlock, err := r.lock(ctx, t.location.site(j.target.Key))
	if err != nil {
		return push.Outcome{Entries: j.known, Err: err}
	}
	defer unlock()
	out := r.call(ctx, t, j, later)
	// An entry that stays behind is recorded until the end of the task reports it.
	t.others.self.record(t.others.ps, idOf(t.to.status), j.target.Key, slices.Concat(out.Entries, j.kept, out.Left, out.Released))
	return out
}

func (r *runner) call(ctx context.Context, t *task, j job, later bool) push.Outcome {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if since := j.removesSince(); !since.IsZero() {
		now := t.others.opts.Now()
		t.others.waited = min(now.Sub(since), now.Sub(t.others.since))
	}
	pusher := t.pusher
	if t.pusher.DryRun {
		t.others.waited = push.Near // It shows what is removed later.
	}
	pusher.Unrecorded, pusher.Later = j.unrecorded, later
	return pusher.Apply(ctx, j.target, j.want, j.known)
}

// lock waits for other tasks at the same remote secret, up to the timeout. That time does not count for the calls that
// follow.
func (r *runner) lock(ctx context.Context, site string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.sites.Lock(ctx, site)
}

// about adds the key to an error of a provider.
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

// place formats a remote secret or a property of it for messages.
func place(key, property string) string {
	if property == "" {
		return fmt.Sprintf("%q", key)
	}
	return fmt.Sprintf("property %q of %q", property, key)
}
