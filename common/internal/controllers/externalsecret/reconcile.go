// Package externalsecret is the loop that keeps the Secrets of ExternalSecrets in step: claim, gate,
// due?, fetch, render, decide, apply, status.
package externalsecret

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/recovery"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// holdInterval is how often an object that its store holds looks again.
const holdInterval = 45 * time.Second

// manyMisses is how often in a row parts may not be what the cache shows before it is said.
const manyMisses = 6

// Reconciler keeps the Secrets of the ExternalSecrets that this module claims.
type Reconciler struct {
	// client is live, cache is not.
	client client.Client
	cache  client.Reader
	events events.EventRecorder
	writer *target.Writer
	pool   *dispatch.Pool
	// watches are of Secrets that are somebody else's.
	watches *watch.Watches
	routes  *routes
	opts    Options

	objects *objects
	ledger  *metrics.Ledger
	// elected is closed once this replica leads.
	elected <-chan struct{}
	backoff workqueue.TypedRateLimiter[reconcile.Request]
	// enqueueAfter adds an object with a priority to the queue.
	enqueueAfter func(key types.NamespacedName, priority int, after time.Duration)
	started      time.Time
}

func (r *Reconciler) templates() templateReader {
	return templateReader{r.client, r.watches, r.enqueue}
}

// leads reports whether this replica is the one that works.
func (r *Reconciler) leads() bool {
	select {
	case <-r.elected:
		return true
	default:
		return false
	}
}

func (r *Reconciler) enqueue(key types.NamespacedName, priority int) {
	r.enqueueAfter(key, priority, 0)
}

// pass is one reconcile of one object.
type pass struct {
	*Reconciler
	es     *v1alpha1.ExternalSecret
	obj    *object
	plan   render.Plan
	census *census
	// seen is the status to go by, next the one to be written.
	seen *v1alpha1.ExternalSecretStatus
	next *v1alpha1.ExternalSecretStatus
	why  policy.Why
	// yields is true while other ExternalSecrets still hold keys that this one wants.
	yields bool
	// lost is true if the target is not as this object left it.
	lost bool
	// resolved are the stores of the plan, foreign those that other operators read.
	resolved map[v1alpha1.StoreRef]resolved
	foreign  map[v1alpha1.StoreRef]bool
	// handed is what is known of the values that lie in parts.
	handed handed
	// written is true once the target was written.
	written bool
}

func (r *Reconciler) pass(es *v1alpha1.ExternalSecret, obj *object, seen *v1alpha1.ExternalSecretStatus) *pass {
	return &pass{
		Reconciler: r, es: es, obj: obj, seen: seen, next: seen.DeepCopy(),
		census: &census{cache: r.cache, live: r.client, es: es},
	}
}

// Reconcile brings one ExternalSecret a step on.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (res reconcile.Result, err error) {
	defer func() {
		if ctx.Err() != nil {
			res, err = reconcile.Result{}, nil // The operator ends; what failed for that is no error.
		}
	}()
	defer recovery.ToError(ctx, &err)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil // The answer to a write may be missing, so the state is not known.
	}
	es := &v1alpha1.ExternalSecret{}
	if err := r.cache.Get(ctx, req.NamespacedName, es); err != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, errors.Wrap(client.IgnoreNotFound(err), "cannot read the ExternalSecret")
	}
	mine, err := r.mine(ctx, es)
	if err != nil {
		return reconcile.Result{}, err
	}
	contributes := false
	if !mine {
		if contributes, err = r.contributes(ctx, es); err != nil {
			return reconcile.Result{}, err
		}
	}
	if !mine && !contributes || es.DeletionTimestamp != nil {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if old := r.objects.peek(req.NamespacedName); old != nil && old.contributes.Load() != contributes {
		r.forget(req.NamespacedName) // It was claimed by another operator, or is so now.
	} else if old != nil && old.uid != es.UID {
		r.watches.Remove(templateOwner(req.NamespacedName)) // They are those of the object before it.
	}
	obj := r.objects.get(req.NamespacedName, es.UID)
	obj.contributes.Store(contributes)
	var seen *v1alpha1.ExternalSecretStatus
	if err := obj.whileLocked(func() error {
		es = &v1alpha1.ExternalSecret{}
		err := r.cache.Get(ctx, req.NamespacedName, es)
		seen = obj.latestLocked(es)
		return err
	}); err != nil || es.UID != obj.uid {
		return soon(), client.IgnoreNotFound(err)
	}
	p := r.pass(es, obj, seen)
	res, err = p.run(ctx)
	p.account()
	return res, err
}

// mine reports whether this operator is the one that reconciles an object: its module serves the
// leading store, and that store is of its class. A store that does not exist is of every class, so
// that somebody says so.
func (r *Reconciler) mine(ctx context.Context, es *v1alpha1.ExternalSecret) (bool, error) {
	ref := es.LeadingStore()
	if ref == nil {
		return false, nil
	}
	_, refusal, err := r.routes.Lookup(ctx, *ref, es.Namespace)
	return err == nil && (refusal == nil || refusal.Why == resolve.ClusterKind || refusal.Why == resolve.Absent), err
}

func (p *pass) run(ctx context.Context) (reconcile.Result, error) {
	if p.obj.contributes.Load() {
		return p.contribute(ctx)
	}
	if p.es.Spec.Suspend {
		p.obj.forget()
		return p.done(ctx, verdict{Reason: v1alpha1.ReasonSuspended, Message: "spec.suspend is true: nothing is read or written"}, 0)
	}
	var err error
	if p.plan, err = render.NewPlan(p.es); err != nil {
		p.obj.forget()
		return p.done(ctx, status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error()), 0)
	}
	switch err := p.resolve(ctx); {
	case missing(err):
		return soon(), nil // The namespace is new.
	case err != nil:
		return reconcile.Result{}, err
	}

	switch end, err := p.outset(ctx); {
	case err != nil:
		return reconcile.Result{}, err
	case end != nil:
		return *end, nil
	}
	decision, secret, err := p.look(ctx)
	if err == nil && decision.Action == policy.Own {
		// If this generation has had it as it shall be, somebody else has changed it.
		p.lost = p.observe(ctx, secret).Mark.Generation == p.es.Generation
		if wait := p.obj.fight.Wait(p.opts.Now()); p.lost && wait > 0 {
			return p.fighting(ctx, wait)
		}
		if err = p.own(ctx); err == nil {
			p.lost = false
			decision, secret, err = p.look(ctx)
		}
		if err != nil {
			return p.failure(ctx, err)
		}
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := p.stop(decision, secret); err != nil {
		p.obj.forget() // What was read for a reason that is gone would be stale at the next one.
		return p.failure(ctx, err)
	}
	switch decision.Action { //nolint:exhaustive // Without an answer there are no others.
	case policy.Read:
		return p.consult(ctx)
	case policy.Own:
		return soon(), nil // Somebody moves it the other way.
	}
	p.obj.forget()
	if err := p.leave(ctx); err != nil {
		return p.failure(ctx, err)
	}
	return p.rest(ctx)
}

// rest is for an object for which nothing is to be read or written but its status.
func (p *pass) rest(ctx context.Context) (reconcile.Result, error) {
	if p.why != policy.NotDue {
		// It is immutable, so reading has stopped.
		p.next.ObservedMetadataHash, p.next.ObservedRefreshRequest = p.metadata(), p.es.Annotations[v1alpha1.RefreshRequestAnnotation]
		p.next.NextRefreshTime, p.next.Binding = nil, &v1alpha1.Binding{Name: p.plan.Target}
		return p.done(ctx, synced("the Secret is in step; it is immutable, and so the provider is not read"), 0)
	}
	if v := p.handed.problem; v != nil && !p.yields && !p.complete() {
		if !p.shown(*v) {
			return p.done(ctx, *v, p.idle().RequeueAfter)
		}
		return p.idle(), nil
	}
	if p.seen.ObservedGeneration != p.es.Generation || p.reason() == v1alpha1.ReasonSecretMissing {
		if p.obj.next.IsZero() {
			p.next.NextRefreshTime = nil
		}
		return p.done(ctx, p.standing(), p.idle().RequeueAfter) // What changed asks for nothing more.
	}
	if err := p.prune(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return p.idle(), nil
}

// complete reports whether an object is in step for good: it was made once, and asks for nothing more.
func (p *pass) complete() bool {
	c := meta.FindStatusCondition(p.seen.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && p.seen.RefreshTime != nil &&
		policy.Once(p.es.Spec.RefreshPolicy, p.plan.Interval)
}

// outset is what comes before anything is decided: may the namespace use the stores, and what is the
// template? It returns how the pass ends, or nil if it goes on.
func (p *pass) outset(ctx context.Context) (*reconcile.Result, error) {
	if refused := p.admit(); refused != nil {
		p.obj.forget()
		end, err := p.done(ctx, *refused, policy.Jitter(holdInterval, p.opts.Random()))
		return &end, err
	}
	if unread := p.templates().follow(ctx, p.es, p.plan.Texts, &p.obj.templates); unread != nil {
		end, err := p.unread(ctx, unread)
		return &end, err
	}
	return nil, p.regard(ctx)
}

// consult reads the provider; if that is only since somebody changed the target, then not again and
// again.
func (p *pass) consult(ctx context.Context) (reconcile.Result, error) {
	conflict := p.why == policy.Retry && p.reason() == v1alpha1.ReasonConflict
	drift := p.why == policy.NotDue && p.reason() != v1alpha1.ReasonSecretMissing
	if p.why == policy.NotDue || conflict {
		p.why = policy.TargetLost
	}
	if wait := p.obj.fight.Wait(p.opts.Now()); drift && wait > 0 {
		return p.fighting(ctx, wait)
	}
	p.lost = drift || (conflict && len(p.obj.yielded) == 0)
	return p.refresh(ctx)
}

// look decides by what the caches show, and notes why the provider is due. The API server is asked
// where the Secret may be somebody else's, so that a watch by name may have shown more than the cache
// has, and where the cache lacks a Secret that there was: it may have lost its label only.
func (p *pass) look(ctx context.Context) (policy.Decision, metav1.Object, error) {
	secret, err := p.cached(ctx)
	if err != nil {
		return policy.Decision{}, nil, err
	}
	decide := func() policy.Decision {
		p.yields = secret != nil && p.stillYields(ctx, secret)
		p.why = p.due()
		return policy.Decide(p.self(p.why), p.observe(ctx, secret), nil)
	}
	decision := decide()
	others := p.reason() == v1alpha1.ReasonConflict || decision.Action == policy.Missing ||
		decision.Action == policy.Yield || decision.Action == policy.Refuse || decision.Action == policy.Wait
	lost := secret == nil && p.seen.Binding != nil && p.seen.Binding.Name == p.plan.Target
	if others || lost {
		if secret, err = p.peek(ctx); err != nil {
			return policy.Decision{}, nil, err
		}
		decision = decide()
	}
	return decision, secret, nil
}

// stillYields reports whether the keys that others held are held by them still.
func (p *pass) stillYields(ctx context.Context, secret metav1.Object) bool {
	if len(p.obj.yielded) == 0 || p.reason() != v1alpha1.ReasonConflict {
		return false
	}
	d := target.Named(policy.Mark{Name: p.es.Name, UID: p.es.UID}, p.obj.yielded)
	_, still := d.Yield(secret.GetManagedFields(), p.census.contest(ctx, secret))
	return len(still) == len(p.obj.yielded)
}

// due says why the provider is to be read.
func (p *pass) due() policy.Why {
	now := p.opts.Now()
	switch {
	case !policy.Periodic(p.es.Spec.RefreshPolicy, p.plan.Interval):
		p.obj.next = time.Time{} // It may have been periodic before.
	case p.obj.next.IsZero():
		p.obj.next = p.resume(now)
	}
	ready := meta.FindStatusCondition(p.seen.Conditions, v1alpha1.ConditionReady)
	failing := ready != nil && ready.Status == metav1.ConditionFalse
	switch {
	case p.yields, p.handed.problem != nil,
		p.reason() == v1alpha1.ReasonSecretMissing && p.es.Spec.Target.CreationPolicy == v1alpha1.CreateMerge,
		p.reason() == v1alpha1.ReasonConflict && p.obj.fight.Wait(now) > 0:
		failing = false // The provider is not the cause.
	}
	return policy.RefreshDue(policy.RefreshInput{
		Policy:               p.es.Spec.RefreshPolicy,
		Interval:             p.plan.Interval,
		Now:                  now,
		Refreshed:            p.seen.RefreshTime != nil,
		Failing:              failing,
		Next:                 p.obj.next,
		Generation:           p.es.Generation,
		ObservedGeneration:   p.observedGeneration(),
		MetadataHash:         p.metadata(),
		ObservedMetadataHash: p.seen.ObservedMetadataHash,
		Request:              p.es.Annotations[v1alpha1.RefreshRequestAnnotation],
		ObservedRequest:      p.seen.ObservedRefreshRequest,
	})
}

// observedGeneration returns the latest generation that asks for no other values than the one that
// was served: a change of cleanupPolicy is none that the provider must be read for. It looks one step
// back only; of what was in between, another operator may have served what this one has not seen.
func (p *pass) observedGeneration() int64 {
	observed := p.seen.ObservedGeneration
	if observed == p.es.Generation {
		p.noteContent()
	}
	if p.obj.generation == observed && p.es.Generation == observed+1 && p.obj.content == content(p.es) {
		return p.es.Generation
	}
	return observed
}

// noteContent remembers what the generation asks for that the status describes.
func (p *pass) noteContent() {
	if p.obj.generation != p.es.Generation {
		p.obj.generation, p.obj.content = p.es.Generation, content(p.es)
	}
}

// metadata is the hash of all that lies outside of the spec and has the object refreshed.
func (p *pass) metadata() string {
	versions := append(p.obj.templates.versions(p.plan.Texts), p.handed.versions...)
	if p.obj.contributes.Load() {
		versions = append(versions, content(p.es)) // A part knows no generation.
	}
	return metadataHash(p.es, versions...)
}

// reason returns the reason of the Ready condition to go by.
func (p *pass) reason() string {
	if c := meta.FindStatusCondition(p.seen.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// standing is the verdict on an object for which there is nothing to do.
func (p *pass) standing() verdict {
	c := meta.FindStatusCondition(p.seen.Conditions, v1alpha1.ConditionReady)
	if c != nil && (p.yields || (c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonSuspended)) {
		return verdict{Status: c.Status, Reason: c.Reason, Message: c.Message, Stalled: p.yields}
	}
	return synced("")
}

// resume returns when an object is refreshed next that this process has not refreshed yet.
func (p *pass) resume(now time.Time) time.Time {
	if n := p.seen.NextRefreshTime; n != nil && n.After(now) {
		return n.Time
	}
	return policy.Spread(p.started, p.plan.Interval, p.opts.Random())
}

// refresh reads the provider, and goes on when it has answered. A worker never waits for it: the
// first call asks, and a later one, after the answer has come, finds it here.
func (p *pass) refresh(ctx context.Context) (reconcile.Result, error) {
	a := attempt{
		generation: p.es.Generation, metadata: p.metadata(),
		request: p.es.Annotations[v1alpha1.RefreshRequestAnnotation],
	}
	known := p.obj.attempt != (attempt{})
	wait, again := p.obj.begin(a)
	if !again {
		p.backoff.Forget(p.request())
		if known && p.why == policy.Retry {
			p.why = policy.Changed // Somebody may have mended what it failed for.
		}
	}
	if f := p.obj.fetch; f != nil && f.attempt == a {
		values, ok := f.take()
		if !ok {
			return reconcile.Result{}, nil // Its answer enqueues the object.
		}
		p.obj.fetch = nil
		return p.arrived(ctx, p.within(values), f.at)
	}
	if wait > 0 {
		return later(wait), nil
	}
	p.obj.forget()
	loaders, v := p.stores()
	switch {
	case v != nil:
		// An event of the store brings the object back. If it came before the status that says so
		// was written, it passed the object over; so look again after a while. That reads caches only.
		return p.done(ctx, *v, policy.Jitter(holdInterval, p.opts.Random()))
	case !p.handed.ready:
		return p.awaitParts(ctx)
	}

	key := client.ObjectKeyFromObject(p.es)
	urgency, priority := p.urgency()
	// What has its answer goes behind what has yet to ask, so that batches fill. What failed goes
	// behind everything, so that a store that fails a thousand objects at once delays no other.
	done := func(failed bool) {
		if failed {
			p.enqueue(key, queue.Low)
			return
		}
		p.enqueue(key, priority-1)
	}
	f := read(a, p.opts.Now(), p.plan, loaders, urgency, done)
	p.obj.fetch = f
	f.start(done)
	return reconcile.Result{}, nil
}

// awaitParts waits for what other operators contribute. A part brings the object back, and what the status says of it.
func (p *pass) awaitParts(ctx context.Context) (reconcile.Result, error) {
	wait := policy.Jitter(holdInterval, p.opts.Random())
	if p.handed.wait > 0 {
		wait = min(wait, p.handed.wait)
	}
	if v := p.handed.problem; v != nil {
		return p.done(ctx, *v, wait)
	}
	return later(wait), nil
}

// arrived goes on with what the stores have answered, and with what lies in parts.
func (p *pass) arrived(ctx context.Context, values render.Values, at time.Time) (reconcile.Result, error) {
	if p.obj.contributes.Load() {
		return p.hand(ctx, values, at)
	}
	values, there, err := p.withParts(ctx, values)
	switch {
	case err == nil && there:
		return p.answered(ctx, values, at)
	case err == nil && p.obj.misses >= manyMisses:
		p.obj.misses = 0
		return p.retry(ctx, syncFailed(provider.NewError(provider.Unavailable, "a part that status.parts records does not hold what it says; its module has yet to mend it")), 0)
	}
	return p.again(), err
}

// unread is what comes of a source of templates that cannot be read.
func (p *pass) unread(ctx context.Context, err error) (reconcile.Result, error) {
	p.obj.forget()
	if kerrors.IsForbidden(err) {
		return p.retry(ctx, status.Failed(v1alpha1.ReasonForbidden, "spec.target.template.templateFrom: "+err.Error()), 0)
	}
	return reconcile.Result{}, err
}

// answered goes on with the values that were read.
func (p *pass) answered(ctx context.Context, values render.Values, at time.Time) (reconcile.Result, error) {
	texts, err := p.templates().read(ctx, p.es, p.plan.Texts, &p.obj.templates)
	if err != nil {
		return p.unread(ctx, err)
	}
	a := &answer{at: at}
	a.read, a.err = render.Read(p.es, p.plan, values)
	a.shape = sync.OnceValues(func() (render.Output, error) { return render.Shape(p.es, p.plan, a.read, texts) })
	if inputs := render.Inputs(p.es, p.plan, a.read, texts); inputs != nil {
		a.inputs = target.HashInputs(p.es.UID, inputs)
	}
	return p.write(ctx, a)
}

// urgency ranks the read: what a person waits for goes before what merely is due, and after a first
// failure everything is low.
func (p *pass) urgency() (dispatch.Urgency, int) {
	if p.backoff.NumRequeues(p.request()) > 0 {
		return dispatch.Periodic, queue.Low
	}
	switch p.why {
	case policy.Requested:
		return dispatch.Fresh, queue.High
	case policy.Changed, policy.First, policy.TargetLost:
		return dispatch.New, queue.High
	case policy.Retry, policy.Elapsed, policy.NotDue:
	}
	return dispatch.Periodic, queue.Low
}

// stores returns the Loader of every store of the plan, or a verdict.
func (p *pass) stores() (map[v1alpha1.StoreRef]*dispatch.Loader, *verdict) {
	loaders := map[v1alpha1.StoreRef]*dispatch.Loader{}
	for _, ref := range p.plan.Stores() {
		if p.foreign[ref] {
			continue // Another operator reads it.
		}
		r := p.resolved[ref]
		if r.refusal != nil {
			v := refused(ref, r)
			return nil, &v
		}
		if s, ok := r.Store.(provider.StoreObject); ok { // What a generator makes lies in a part.
			loaders[ref] = p.pool.Loader(r.Kind, s, r.Beside)
		}
	}
	return loaders, nil
}

// refused is the verdict on an object that may not use a store now.
func refused(ref v1alpha1.StoreRef, r resolved) verdict {
	name := ref.Name
	if r.refusal.Why == resolve.Absent {
		name = r.Key.String()
	}
	message := fmt.Sprintf("%s %q %s", ref.Kind, name, r.refusal.Message)
	switch r.refusal.Why { //nolint:exhaustive // For these only a person can help.
	case resolve.WrongKind:
		return status.Stalled(v1alpha1.ReasonInvalidSpec, message)
	case resolve.ClusterKind, resolve.NotAdmitted:
		return status.Stalled(v1alpha1.ReasonForbidden, message)
	case resolve.Absent:
		return status.Failed(v1alpha1.ReasonStoreNotFound, message)
	}
	return status.Failed(v1alpha1.ReasonStoreNotReady, message)
}

// succeed notes that the target is as the answer of the provider wants it, and plans the next
// refresh.
func (p *pass) succeed(ctx context.Context, a *answer, e effect) (reconcile.Result, error) {
	p.backoff.Forget(p.request())
	p.obj.next, p.obj.yielded, p.obj.yieldsAll, p.obj.misses = time.Time{}, e.yielded, e.yieldsAll, 0
	p.obj.good = a.at
	p.took(a)
	if policy.Periodic(p.es.Spec.RefreshPolicy, p.plan.Interval) {
		p.obj.next = a.at.Add(policy.Jitter(p.plan.Interval, p.opts.Random()))
	}
	v := p.verdict(a.read, e)
	if failure := p.handed.problem; failure != nil && v.Status == metav1.ConditionTrue {
		v = *failure // The values in place stay, but others were due.
	}
	p.next.Sources = a.read.Sources
	p.next.Binding = nil
	if p.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone && !e.absent {
		p.next.Binding = &v1alpha1.Binding{Name: p.plan.Target}
	}
	p.next.ObservedMetadataHash = p.metadata()
	p.next.ObservedRefreshRequest = p.es.Annotations[v1alpha1.RefreshRequestAnnotation]
	conclude(p.next, p.es.Generation, v)
	refreshed(p.next, p.seen, a.at, p.obj.next)
	if err := p.prune(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if len(e.yielded) > 0 {
		return p.awaitUntil(ctx, v, e.version, p.remaining())
	}
	return p.done(ctx, v, p.remaining())
}

// verdict says what has come of an answer.
func (p *pass) verdict(out render.Output, e effect) verdict {
	switch {
	case len(e.yielded) > 0:
		return status.Stalled(v1alpha1.ReasonConflict, fmt.Sprintf("%q of Secret %q: another ExternalSecret writes them; choose other keys or another spec.target.name", e.yielded, p.plan.Target))
	case e.absent:
		return verdict{
			Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSecretDeleted,
			Message: "the provider has nothing of what the spec names, so by deletionPolicy Delete there is no Secret",
		}
	case p.es.Spec.Target.CreationPolicy == v1alpha1.CreateNone:
		return synced("all values can be read; by creationPolicy None no Secret is written")
	case out.Gone != nil:
		return synced("the Secret is in step; without what is gone: " + out.Gone.Message)
	}
	return synced("")
}

// await writes a verdict, and waits until somebody else changes the target.
func (p *pass) await(ctx context.Context, v verdict, version string) (reconcile.Result, error) {
	return p.awaitUntil(ctx, v, version, 0)
}

// awaitUntil is await with a time at which the object is looked at again; 0 for none. Not every
// change that helps is one of the Secret, so it is looked at now and then in any case.
func (p *pass) awaitUntil(ctx context.Context, v verdict, version string, wait time.Duration) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(p.es)
	if was := p.objects.await(key, p.plan.Target); was != "" && was != p.plan.Target {
		p.watches.Remove(watchOwner(key))
	}
	p.watches.Add(watch.SecretRef(p.es.Namespace, p.plan.Target), watchOwner(key), version, func() { p.enqueue(key, queue.High) })
	again := policy.Jitter(holdInterval, p.opts.Random())
	if wait > 0 {
		again = min(again, wait)
	}
	return p.conclude(ctx, v, again)
}

// watchOwner owns the watches of one ExternalSecret.
type watchOwner types.NamespacedName

// forget drops what is remembered of an object that is gone or not ours.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.unwatch(key)
	r.watches.Remove(templateOwner(key))
	r.objects.forget(key)
	r.ledger.Forget(key)
	r.backoff.Forget(reconcile.Request{NamespacedName: key})
}

// unwatch ends the watch of a target whose change was awaited.
func (r *Reconciler) unwatch(key types.NamespacedName) {
	if r.objects.await(key, "") != "" {
		r.watches.Remove(watchOwner(key))
	}
}

// fighting holds the next revert back, since somebody keeps changing what is ours.
func (p *pass) fighting(ctx context.Context, wait time.Duration) (reconcile.Result, error) {
	p.obj.forget()
	return p.done(ctx, status.Failed(v1alpha1.ReasonConflict, fmt.Sprintf("somebody keeps changing the keys of Secret %q that this object writes, or deletes it; it is put right with back-off", p.plan.Target)), wait)
}

// retry writes a verdict, and tries again with back-off.
func (p *pass) retry(ctx context.Context, v verdict, atLeast time.Duration) (reconcile.Result, error) {
	wait := max(p.backoff.When(p.request()), atLeast)
	p.obj.hold(time.Now().Add(wait))
	return p.done(ctx, v, wait)
}

// done writes a verdict on an object that awaits nobody, and comes back after wait; zero means that
// only an event brings it back.
func (p *pass) done(ctx context.Context, v verdict, wait time.Duration) (reconcile.Result, error) {
	if p.obj.contributes.Load() {
		return p.say(ctx, v, wait)
	}
	p.unwatch(client.ObjectKeyFromObject(p.es))
	return p.conclude(ctx, v, wait)
}

// conclude writes the status if it changed.
func (p *pass) conclude(ctx context.Context, v verdict, wait time.Duration) (reconcile.Result, error) {
	conclude(p.next, p.es.Generation, v)
	metrics.Synced("ExternalSecret", v.Reason)
	if err := p.patchStatus(ctx, p.es, p.obj, p.next); err != nil {
		return reconcile.Result{}, err
	}
	p.noteContent()
	if wait <= 0 {
		return reconcile.Result{}, nil
	}
	return later(wait), nil
}

// idle waits for the next refresh. Who awaits somebody else looks at the target now and then.
func (p *pass) idle() reconcile.Result {
	if p.yields {
		return later(policy.Jitter(holdInterval, p.opts.Random()))
	}
	if wait := p.remaining(); wait > 0 {
		return later(wait)
	}
	return reconcile.Result{}
}

// remaining is the time until the next periodic refresh, or until there is something to say of what other operators
// contribute; 0 if there is none.
func (p *pass) remaining() time.Duration {
	if p.obj.next.IsZero() {
		return p.handed.wait
	}
	wait := max(p.obj.next.Sub(p.opts.Now()), time.Millisecond)
	if p.handed.wait > 0 {
		wait = min(wait, p.handed.wait)
	}
	return wait
}

func (p *pass) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p.es)}
}

// later comes back at low priority, so that new objects go first.
func later(d time.Duration) reconcile.Result {
	low := queue.Low
	return reconcile.Result{RequeueAfter: d, Priority: &low}
}

// soon comes back when the world has moved on under a write.
func soon() reconcile.Result {
	return reconcile.Result{RequeueAfter: 20*time.Millisecond + rand.N(80*time.Millisecond)}
}

// again is soon, but later each time: who is behind the API server for long would read the provider
// again and again. The event that is missing brings the object back at once.
func (p *pass) again() reconcile.Result {
	res := soon()
	res.RequeueAfter <<= min(p.obj.misses, 6)
	p.obj.misses++
	return res
}
