package pushsecret

import (
	"context"
	"fmt"
	"slices"
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

// attempted is what a task and its result have in common.
type attempted struct {
	kit.Attempt

	// generated is the version of the values, if a generator made them.
	generated string
	started   time.Time
	// dry is why nothing is written; empty for a push.
	dry dryCause
}

// task is a push of one object to one store.
type task struct {
	attempted

	obj       *object
	namespace string
	to        *destination
	pusher    push.Pusher
	jobs      []job
	// unmatched are the errors of the entries of spec.dataTo that match no key.
	unmatched []error
	// origins are other stores that the pushed Secrets were read from.
	origins []origin
	// location is where the store keeps its secrets. recorded is the place for the status; empty if it is unknown.
	location location
	recorded string
}

// result is the result of a task.
type result struct {
	attempted

	// refused is why there was nothing to push; nil for a push. Otherwise only the attempt is set.
	refused *status.Verdict
	exists  []string
	// stays are entries that this object created and neither removes nor records any longer, by the reason.
	stays map[string][]v1alpha1.PushEntryStatus
	err   error
	// conflict is true if another object holds a wanted value, and all else is in sync.
	conflict bool
	// released are the entries that another object takes over, for messages.
	released []string
	// old is true if the object or its sources have changed during the push. They must be read again.
	old bool
	// waits is true if a removal waits until other objects were compared.
	waits bool
	// retryAfter is how long a provider asked to wait.
	retryAfter time.Duration
	// difference is what a push would do; nil if the task was a push.
	difference *v1alpha1.PushDifference
	// place is where the store keeps its secrets; empty if it is unknown.
	place string
	// compared is true if all that is wanted was compared, or refused for good.
	compared bool
}

// Reasons why something stays behind.
const (
	changedSince = "another client changed it after this object created it"
	usedByOthers = "another PushSecret pushes to it and does not take it over, or was not compared within a minute; delete it by hand once it is not needed"
	otherPlace   = "the store leads to another place than when this object created it; delete it by hand"
	ownerless    = "its owner has released it, and the login of this store is not allowed to mark it; delete it by hand once it is not needed"
)

// stay records entries that stay behind.
func (r *result) stay(entries []v1alpha1.PushEntryStatus, why string) {
	if r.stays == nil {
		r.stays = map[string][]v1alpha1.PushEntryStatus{}
	}
	r.stays[why] = append(r.stays[why], entries...)
}

// runner runs tasks.
type runner struct {
	pool      *dispatch.Pool
	siteLocks siteLocks
	// incomplete reports whether a wanted value could not be written.
	incomplete func(*carrying) bool
	// timeout is the time limit for the calls to one remote secret.
	timeout time.Duration
	// waits is how long removals wait for the comparisons of other objects; 0 if they do not.
	waits time.Duration
}

// run runs a task.
func (r *runner) run(ctx context.Context, t *task) *result {
	res := r.carryOut(ctx, r.pool.Loader(t.to.route.Kind, t.to.store, resolve.CredentialsNamespace(t.to.store, t.namespace)), *t)
	res.attempted = t.attempted
	return res
}

// carryOut runs jobs one after another. An error of the whole store ends the task; the status entries of the remaining
// jobs stay as they are. Removals come last, and none is made if a wanted value could not be written.
func (r *runner) carryOut(ctx context.Context, loader *dispatch.Loader, t task) (res *result) {
	var c carrying
	defer func() {
		if recover() != nil { // Its value is dropped because it may hold a secret.
			res = c.panicked(&t)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.failed = r.open(ctx, loader, &t)
	c.stay(t.move(), otherPlace)
	c.identify(ctx, &t)
	removals := c.write(ctx, t.jobs, len(t.unmatched) > 0, func(j job, later bool) push.Outcome {
		to := t
		to.pusher.Later = later
		return r.apply(ctx, &to, j)
	})
	c.errs = append(c.errs, t.unmatched...) // A misspelt pattern must not remove what the former one has pushed.
	incomplete := r.incomplete(&c) || c.holding
	for _, j := range removals {
		if incomplete || c.failed != nil || c.waits && !t.complete() || ctx.Err() != nil {
			c.keepEntries(j)
			continue
		}
		c.note(j, r.apply(ctx, &t, j))
	}
	switch {
	case len(c.errs) > 0:
	case c.failed != nil:
		c.errs = []error{c.failed}
	case ctx.Err() != nil:
		c.errs = []error{ctx.Err()}
	}
	c.compared = ctx.Err() == nil && c.isCompared()
	c.conflict = len(c.errs) == 0 && len(c.held) > 0
	c.err = errors.Join(append(c.errs, c.held...)...)
	return c.end(&t)
}

// isCompared reports whether all that is wanted was compared, or refused for good.
func (c *carrying) isCompared() bool {
	return !c.old && !slices.ContainsFunc(c.errs, func(err error) bool {
		class := provider.ClassOf(err)
		return class == provider.Unavailable || class == provider.Throttled || class == provider.Conflict
	})
}

// panicked returns the result of a task that has panicked. The recorded entries must not be lost.
func (c *carrying) panicked(t *task) *result {
	c.err = provider.NewError(provider.Unavailable, "the operator failed during the push; see its log")
	for _, j := range t.jobs {
		if !slices.ContainsFunc(c.entries, func(e v1alpha1.PushEntryStatus) bool { return e.RemoteKey == j.target.Key }) {
			c.entries = append(c.entries, slices.Concat(j.known, j.kept)...)
		}
	}
	return c.end(t)
}

// end records the entries, and returns the result.
func (c *carrying) end(t *task) *result {
	c.place = t.recorded
	if t.pusher.DryRun {
		c.difference = differenceOf(c.changes)
		return &c.result
	}
	was, is := byKey(t.to.status.Entries), byKey(c.entries)
	for key := range was {
		if _, kept := is[key]; !kept {
			is[key] = nil
		}
	}
	for key := range is {
		t.obj.entries.set(idOf(t.to.status), key, was[key], is[key])
	}
	return &c.result
}

// complete reports whether no removal waits for the comparisons of other objects.
func (t *task) complete() bool {
	o, ok := t.pusher.Others.(*others)
	return !ok || o.complete
}

// carrying is the state of a running task.
type carrying struct {
	result

	// entries are those for the status.
	entries []v1alpha1.PushEntryStatus
	// errs are errors of single secrets, and failed is the error of the whole store.
	errs   []error
	failed error
	// held are the errors of secrets with a value that another object holds. holding is true also before the holder has compared it.
	held    []error
	holding bool
	// missed counts the unavailable answers in a row.
	missed int
	// changes are what a push would do, by key.
	changes map[string][]push.Change
}

// incomplete reports whether a wanted value could not be written.
func incomplete(c *carrying) bool { return len(c.errs) > 0 }

// write runs the jobs with wanted values, and returns the removals to make afterwards. If only one remote secret is
// written, the same write also removes its obsolete properties, unless keep is true.
func (c *carrying) write(ctx context.Context, jobs []job, keep bool, apply func(j job, later bool) push.Outcome) (removals []job) {
	wanted := 0
	for _, j := range jobs {
		if len(j.want) > 0 {
			wanted++
		}
	}
	for _, j := range jobs {
		later := (wanted > 1 || keep) && j.removes()
		switch {
		case len(j.want)+len(j.known) == 0:
			c.keepEntries(j) // The job only keeps entries.
		case len(j.want) == 0:
			removals = append(removals, j)
		case c.failed != nil || ctx.Err() != nil:
			c.keepEntries(j)
		case later:
			o := apply(j, true)
			c.change(j, o.Changes)
			c.outcome(j, o)
			j.known = o.Entries
			removals = append(removals, j)
		default:
			o := apply(j, false)
			if errors.Is(o.Err, push.ErrWait) { // Wanted values do not wait for a removal.
				c.waits = true
				o = apply(j, true)
			}
			c.note(j, o)
		}
	}
	return removals
}

// keepEntries keeps the entries of a job as they are.
func (c *carrying) keepEntries(j job) {
	c.entries = append(c.entries, slices.Concat(j.known, j.kept)...)
	if _, decided := c.changes[j.target.Key]; !decided {
		c.change(j, push.Failing(j.want))
	}
}

// change records what a push would do with the remote secret of a job. A later decision replaces the former one.
func (c *carrying) change(j job, changes []push.Change) {
	if c.changes == nil {
		c.changes = map[string][]push.Change{}
	}
	c.changes[j.target.Key] = changes
}

// note adds the outcome of a job.
func (c *carrying) note(j job, o push.Outcome) {
	c.change(j, o.Changes)
	c.entries = append(c.entries, slices.Concat(o.Entries, j.kept)...)
	c.stay(o.Left, changedSince)
	c.stay(o.Released, usedByOthers)
	c.stay(o.Ownerless, ownerless)
	for _, e := range o.Used {
		c.released = append(c.released, place(e.RemoteKey, e.Property)+" to "+o.By)
	}
	for _, property := range o.Exists {
		c.exists = append(c.exists, place(j.target.Key, property))
	}
	c.outcome(j, o)
}

// outcome adds the error of an outcome, if any. That another object holds a value is certain, and does not change by itself.
func (c *carrying) outcome(j job, o push.Outcome) {
	c.holding = c.holding || o.Held
	if o.Held && o.Err != nil && !errors.Is(o.Err, push.ErrWait) {
		c.held = append(c.held, about(j.target.Key, o.Err))
		return
	}
	c.failures(j, o.Err)
}

// failures adds the error of a job, if any.
func (c *carrying) failures(j job, err error) {
	if err == nil {
		c.missed = 0
		return
	}
	if errors.Is(err, push.ErrOld) {
		c.old, c.failed = true, err
		return
	}
	if errors.Is(err, push.ErrWait) {
		c.waits = true
		return
	}
	c.errs = append(c.errs, about(j.target.Key, err))
	c.retryAfter = max(c.retryAfter, provider.RetryAfter(err))
	switch provider.ClassOf(err) { //nolint:exhaustive // Other classes concern only this secret.
	case provider.Throttled:
		c.failed = err
	case provider.Unavailable:
		if c.missed++; c.missed > 1 {
			c.failed = err
		}
	}
}

// apply runs a job. Pushes to a remote secret and removals from it exclude each other until the entries are recorded:
// otherwise a value that was found in sync could be removed a moment later. A dry run keeps no other task waiting.
func (r *runner) apply(ctx context.Context, t *task, j job) push.Outcome {
	if t.pusher.DryRun {
		return r.call(ctx, t, j)
	}
	unlock, err := r.lock(ctx, t.location.site(j.target.Key))
	if err != nil {
		return push.Outcome{Entries: j.known, Err: err}
	}
	defer unlock()
	defer t.obj.entries.call(idOf(t.to.status), j.target.Key)()
	out := r.call(ctx, t, j)
	// An entry that stays behind is recorded until the end of the task reports it.
	var was []v1alpha1.PushEntryStatus
	for _, e := range t.to.status.Entries {
		if e.RemoteKey == j.target.Key {
			was = append(was, e)
		}
	}
	t.obj.entries.set(idOf(t.to.status), j.target.Key, was, slices.Concat(out.Entries, j.kept, out.Left, out.Released))
	return out
}

// byKey returns entries by the key of their remote secret.
func byKey(entries []v1alpha1.PushEntryStatus) map[string][]v1alpha1.PushEntryStatus {
	out := map[string][]v1alpha1.PushEntryStatus{}
	for _, e := range entries {
		out[e.RemoteKey] = append(out[e.RemoteKey], e)
	}
	return out
}

func (r *runner) call(ctx context.Context, t *task, j job) push.Outcome {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	pusher := t.pusher
	pusher.Unrecorded = j.unrecorded
	out := pusher.Apply(ctx, j.target, j.want, j.known)
	out.Entries = slices.DeleteFunc(out.Entries, func(e v1alpha1.PushEntryStatus) bool { return e.Version == "" })
	return out
}

// lock waits for other tasks at the same remote secret, up to the timeout. That time does not count for the calls that
// follow.
func (r *runner) lock(ctx context.Context, site string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return r.siteLocks.enter(ctx, site)
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
