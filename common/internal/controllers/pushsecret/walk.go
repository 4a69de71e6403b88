package pushsecret

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A unit is one object at one of its stores.
type unit struct {
	types.NamespacedName
	store storeID
}

// unitPass is one walk over a unit.
type unitPass struct {
	*pass
	id storeID
	// carried is true if a task was carried out.
	carried bool
}

// Push is one walk over a unit. It writes what the spec wants at the store, or removes what was created there for an object
// that is being deleted, and then the status entry of the store.
func (r *reconciler) Push(ctx context.Context, u unit) (again reconcile.Result, err error) {
	obj := r.memory.Peek(u.NamespacedName)
	if obj == nil {
		return again, nil
	}
	ps := &v1alpha1.PushSecret{}
	if err := r.cache.Get(ctx, u.NamespacedName, ps); err != nil || ps.UID != obj.uid {
		return again, errors.Wrap(client.IgnoreNotFound(err), "cannot read the PushSecret")
	}
	found := obj.survey.Load()
	if found == nil || found.generation != ps.Generation || !slices.Contains(found.open, u.store) {
		return again, nil // The walk over the object comes first, and starts this one.
	}
	ctx, span := trace.Start(ctx, trace.Reconcile, trace.Of("PushSecret", ps)...)
	defer func() { span.End(trace.Result(err)) }()
	p := &unitPass{pass: &pass{reconciler: r, ps: ps, key: u.NamespacedName, obj: obj, now: r.opts.Now(), survey: *found}, id: u.store}
	defer func() {
		if p.values != nil {
			p.values.Release()
		}
	}()
	again, err = p.walk(ctx)
	if obj.survey.Load() != found || ps.DeletionTimestamp != nil && p.carried {
		r.wake(u.NamespacedName) // The walk over the object goes on.
	}
	return again, err
}

// walk is Push for an object that was read.
func (p *unitPass) walk(ctx context.Context) (reconcile.Result, error) {
	at := p.pushAt
	if p.ps.DeletionTimestamp != nil {
		at = p.removalAt
	}
	t, err := at(ctx)
	switch {
	case errors.Is(err, errNotMade): // The object is requeued when the status records the part.
		return queue.Later(gracePeriod), p.list(ctx, nil)
	case err != nil:
		return reconcile.Result{}, err
	case t == nil:
		return queue.Later(p.wait), nil
	case t.refused != nil:
		return p.end(ctx, t)
	}
	if p.values != nil {
		p.values.Keep(t.bytes())
	}
	t.pusher.List = p.lister(t)
	err = kit.Wait(ctx, t.to.places(p.ps.Namespace), func(ctx context.Context) error {
		slow := time.AfterFunc(slowStore, func() { _ = t.pusher.List(ctx) }) // A user sees what a store that hangs holds up.
		defer slow.Stop()
		p.runner.run(ctx, t)
		return nil
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	p.carried = true
	return p.end(ctx, t)
}

// places returns the place of a walk that waits for the store.
func (d *destination) places(namespace string) []kit.Place {
	return []kit.Place{{Store: d.store.GetUID(), Credentials: resolve.CredentialsNamespace(d.store, namespace), Tenant: namespace}}
}

// bytes returns the size of the values to push.
func (t *task) bytes() (n int64) {
	for _, j := range t.jobs {
		for _, v := range slices.Concat(j.want, j.unrecorded) {
			n += int64(len(v.Data))
		}
	}
	return n
}

// pushAt returns the task that pushes to a store; nil if nothing is due.
func (p *unitPass) pushAt(ctx context.Context) (*task, error) {
	plan, err := push.NewPlan(&p.ps.Spec)
	if err != nil {
		return nil, nil //nolint:nilerr // The walk over the object reports it.
	}
	p.plan = plan
	d, err := p.stores.destination(ctx, p.ps.Namespace, p.id, p.known())
	if err != nil || d == nil {
		return nil, err
	}
	if d.refusal != nil { // The store is refused since the walk over the object. That one reports it, and no event of the store wakes it.
		p.wake(p.key)
		return nil, nil
	}
	from, seen, err := p.followSources(ctx)
	if err != nil {
		return nil, err
	}
	if due := p.due(d, seen.refs); !due {
		return nil, p.waits(ctx, d)
	}
	read := time.Now()
	t := p.task(d, p.attempt(d, seen.refs))
	is, held, err := from.load(ctx, seen.refs)
	if err != nil {
		var known *provider.Error
		if errors.Is(err, errNotMade) || !errors.As(err, &known) {
			return nil, err
		}
		return t.refuse("", known), nil
	}
	p.values = held
	t.Attempt = p.attempt(d, is.refs)
	if t.jobs, err = p.jobs(ctx, t, is.secrets); err != nil || t.refused != nil {
		return t, err
	}
	if may, err := p.stores.mayRun(ctx, p.ps, p.id, t.jobs); err != nil || !may {
		return nil, err
	}
	p.obj.stores.with(p.id, func(s *storeState) { s.asked = false })
	t.errs = p.plan.Unmatched(d.ref(), sourcesOf(is.secrets)) // A misspelt pattern must not remove what the former one has pushed.
	t.generated, t.pusher.Current = is.generated, unchanged(p.ps, from, is.refs, read)
	t.origins, err = p.stores.origins(ctx, d, p.ps.Namespace, is.secrets)
	return t, err
}

// attempt returns the attempt of a push to a store.
func (p *unitPass) attempt(d *destination, is refs) kit.Attempt {
	return kit.AttemptOf(p.ps, "", d.source(is.hash()))
}

// due reports whether a store must be compared now, and otherwise plans the next look at it.
func (p *unitPass) due(d *destination, is refs) (due bool) {
	a, sch := p.attempt(d, is), p.schedule()
	p.obj.stores.with(p.id, func(s *storeState) {
		inSync := d.inSync(a)
		if cause := p.dry(p.ps); cause != notDry {
			inSync = d.compared(cause, a, s.compared)
		}
		var wait time.Duration
		due, wait = d.due(s, a, inSync, p.removeAt(d), sch)
		p.again(wait)
	})
	return due
}

// removeAt returns when the next removal is due; zero for never. A dry run removes nothing.
func (p *unitPass) removeAt(d *destination) time.Time {
	if p.dry(p.ps) != notDry {
		return time.Time{}
	}
	return removeAt(d.status.Entries)
}

// waits writes until when the sync windows hold back a comparison, and what an earlier walk could not write.
func (p *unitPass) waits(ctx context.Context, d *destination) error {
	p.obj.edit(p.ps, p.id, func(s *v1alpha1.PushStoreStatus) bool {
		changed := !s.NextWindowTime.Equal(d.status.NextWindowTime) || !s.NextRefreshTime.Equal(d.status.NextRefreshTime)
		s.NextWindowTime, s.NextRefreshTime = d.status.NextWindowTime, d.status.NextRefreshTime
		return changed
	})
	if _, unsaved := p.obj.present(p.ps); unsaved[p.id] == nil {
		return nil
	}
	return p.conclude(ctx, nil)
}

// refuse records why there is nothing to push. store is the name of the store; empty if the cause is the same at all stores.
func (t *task) refuse(store string, err error) *task {
	v := failure(store, err)
	t.refused = &v
	return t
}

// removalAt returns the task that removes what was created at a store; nil if nothing is due.
func (p *unitPass) removalAt(ctx context.Context) (*task, error) {
	d, err := p.stores.destination(ctx, p.ps.Namespace, p.id, p.known())
	if err != nil || d == nil || d.refusal != nil {
		return nil, err
	}
	now := removalOf(p.ps)
	since := p.ps.DeletionTimestamp.Add(p.opts.RemoveDelay)
	t := p.task(d, now)
	if t.jobs, err = d.removals(since); err != nil || len(t.jobs) == 0 {
		return nil, nil //nolint:nilerr // The walk over the object reports it.
	}
	p.obj.stores.with(p.id, func(s *storeState) {
		wait, _ := s.attempts.Begin(now)
		p.wait = max(wait, since.Sub(p.now), s.again.Sub(p.now))
	})
	if p.wait > 0 {
		return nil, nil
	}
	return t, unrecorded(ctx, p, d, t.jobs)
}

// task returns a task at one store.
func (p *unitPass) task(d *destination, a kit.Attempt) *task {
	t := &task{to: d, result: result{Attempt: a, started: p.now}}
	t.others = &others{reconciler: p.reconciler, self: p.obj, ps: p.ps, unit: unit{p.key, p.id}, successors: map[string]unit{}}
	p.obj.stores.with(p.id, func(s *storeState) {
		if s.since.IsZero() {
			s.since = p.now
		}
		t.others.since = s.since
	})
	t.pusher = push.Pusher{DryRun: p.dry(p.ps) != notDry, Others: t.others, Policies: push.Policies{
		Update: p.ps.Spec.UpdatePolicy, Adoption: p.ps.Spec.AdoptionPolicy, Mark: string(p.ps.UID),
		Deletes:         p.ps.Spec.DeletionPolicy == v1alpha1.PushDeletionDelete,
		InputsUnchanged: p.ps.Spec.Template != nil && a.Generation == d.status.ObservedGeneration && a.Sources == d.status.ObservedSource,
	}}
	return t
}

// slowStore is after how long the status shows that a store is compared.
const slowStore = time.Second

// lister returns a function that lists what a task wants, once, before anything is created: otherwise a crash could make that unknown.
func (p *unitPass) lister(t *task) func(context.Context) error {
	var wanted []v1alpha1.PushEntryStatus
	for _, j := range t.jobs {
		for _, v := range j.want {
			if !t.pusher.DryRun {
				wanted = append(wanted, v1alpha1.PushEntryStatus{RemoteKey: j.target.Key, Property: v.Property, Source: v.Source})
			}
		}
	}
	var err error
	return func(ctx context.Context) error {
		t.lists.Do(func() { err = p.list(ctx, wanted) })
		return err
	}
}

// list adds entries to the status.
func (p *unitPass) list(ctx context.Context, wanted []v1alpha1.PushEntryStatus) error {
	p.obj.edit(p.ps, p.id, func(s *v1alpha1.PushStoreStatus) bool {
		listed := map[v1alpha1.PushRemoteRef]bool{}
		for _, e := range s.Entries {
			listed[refOf(e)] = true
		}
		added := slices.DeleteFunc(slices.Clone(wanted), func(e v1alpha1.PushEntryStatus) bool { return listed[refOf(e)] })
		s.Entries = slices.Concat(s.Entries, added)
		return len(added) > 0 || len(s.Conditions) == 0
	})
	return p.conclude(ctx, nil)
}

// end writes the result of a task into the status, and plans the next comparison.
func (p *unitPass) end(ctx context.Context, t *task) (reconcile.Result, error) {
	d, sch := t.to, p.schedule()
	t.lists.Do(func() {}) // The result is recorded, and nothing else any more.
	var next time.Time
	var again bool
	p.obj.stores.with(p.id, func(s *storeState) {
		again = s.attempts.Failed()
		s.take(&t.result, sch)
		next = s.next
	})
	if t.old() {
		p.obj.sources.stale()
	}
	p.obj.edit(p.ps, p.id, func(s *v1alpha1.PushStoreStatus) bool {
		was := *s
		if t.refused == nil && !t.pusher.DryRun {
			s.Entries = t.entries
		}
		d.status = *s.DeepCopy()
		d.take(&t.result, p.dry(p.ps), next, again)
		*s = d.status
		return !equality.Semantic.DeepEqual(was, *s)
	})
	p.report(d, &t.result) // Before the status no longer lists it.
	if err := p.conclude(ctx, nil); err != nil {
		return reconcile.Result{}, err
	}
	if t.err != nil && provider.ClassOf(t.err) == provider.Denied {
		p.opts.Suspect(d.route.Kind, d.key(p.ps.Namespace))
	}
	switch {
	case p.ps.DeletionTimestamp != nil:
		return reconcile.Result{}, nil // The walk over the object goes on.
	case t.old():
		return queue.Soon(), nil
	}
	p.obj.stores.with(p.id, func(s *storeState) {
		inSync := t.err == nil && t.refused == nil
		if due, wait, _ := s.due(t.Attempt, inSync, d.status.NextRefreshTime, p.removeAt(d), sch); due {
			p.again(time.Millisecond)
		} else {
			p.again(wait)
		}
	})
	return queue.Later(p.wait), nil
}

// report emits events for what a push leaves behind.
func (p *unitPass) report(d *destination, res *result) {
	if len(res.released) > 0 {
		p.warn(p.ps, "Released", "%s: released: %s", d.name(), strings.Join(res.released, ", "))
	}
	for why, entries := range res.stays {
		for _, e := range entries {
			p.warn(p.ps, "LeftBehind", "%s: %s was not deleted, because %s", d.name(), place(e.RemoteKey, e.Property), why)
		}
	}
}
