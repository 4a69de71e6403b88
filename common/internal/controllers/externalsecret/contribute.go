package externalsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// An object that another operator claims, and that names a store of this one, is contributed to: what it names
// there is read as if the object were ours, and kept in a part instead of the target.

// contributes reports whether this operator reads for an object that another one claims, or did.
func (r *Reconciler) contributes(ctx context.Context, es *v1alpha1.ExternalSecret) (contributes bool, err error) {
	if r.recorder().Of(es.Status.Parts) != nil {
		return true, nil
	}
	r.routes.eachStore(es, func(k resolve.Route, ref *v1alpha1.StoreRef, generator bool) {
		if contributes || err != nil || generator && k.Generator {
			return
		}
		contributes, err = r.reads(ctx, es, *ref, false)
	})
	return contributes, err
}

// reads reports whether this operator is the one that reads a store for an object, which it claims if mine is true.
// What does not exist is of every class, so that somebody says so: in the module that claims the object, the
// operator that does.
func (r *Reconciler) reads(ctx context.Context, es *v1alpha1.ExternalSecret, ref v1alpha1.StoreRef, mine bool) (bool, error) {
	_, refusal, err := r.routes.Lookup(ctx, ref, es.Namespace)
	return err == nil && !r.elsewhere(es, refusal, mine), err
}

// elsewhere reports whether a store is read by another operator, for an object that this one claims if mine is true.
func (r *Reconciler) elsewhere(es *v1alpha1.ExternalSecret, refusal *resolve.Refusal, mine bool) bool {
	if refusal == nil {
		return false
	}
	switch refusal.Why { //nolint:exhaustive // The others are of stores that this operator reads.
	case resolve.NotServed, resolve.OtherClass:
		return true
	case resolve.Absent:
		return !mine && r.routes.claims(es)
	}
	return false
}

// contributor is this operator, as it reads for an object that another one claims.
func (r *Reconciler) contributor() handoff.Contributor {
	return handoff.Contributor{Group: r.opts.Module, Class: r.opts.ControllerClass, Purpose: v1alpha1.PartRead}
}

// recorder records the part of what was read.
func (r *Reconciler) recorder() handoff.Recorder {
	return handoff.Recorder{Client: r.client, Contributor: r.contributor()}
}

// contribute is run for an object that another operator claims.
func (p *pass) contribute(ctx context.Context) (reconcile.Result, error) {
	if p.es.Spec.Suspend {
		p.obj.forget()
		return reconcile.Result{}, nil
	}
	p.obj.shared.Store(true)
	m, rec, err := p.cachedPart(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if p.plan, err = render.NewPlan(p.es); err != nil {
		p.obj.forget()
		return p.say(ctx, status.Stalled(v1alpha1.ReasonInvalidSpec, err.Error()), 0)
	}
	p.plan.Texts = nil
	switch err := p.resolve(ctx); {
	case missing(err):
		return soon(), nil // The namespace is new.
	case err != nil:
		return reconcile.Result{}, err
	}
	p.plan.Sources = slices.DeleteFunc(p.plan.Sources, func(s render.Source) bool {
		k, ok := p.routes.Serves(&s.Store)
		return p.foreign[s.Store] || ok && s.Generator && k.Generator // What is generated has a part of its own.
	})
	if len(p.plan.Sources) == 0 {
		return reconcile.Result{}, p.retract(ctx)
	}
	p.handed.ready = true
	if refused := p.admit(); refused != nil {
		p.obj.forget()
		return p.say(ctx, *refused, policy.Jitter(holdInterval, p.opts.Random()))
	}
	if p.why = p.readsDue(m, rec); p.why != policy.NotDue {
		return p.refresh(ctx)
	}
	p.obj.forget()
	if !p.fits(m) {
		if m, err = p.mend(ctx); err != nil {
			return p.failure(ctx, err)
		}
		if m == nil {
			return p.again(), nil
		}
	}
	return p.handedOver(ctx, m, false)
}

// resolved is a store of the plan, and why it may not be used; nil if it may.
type resolved struct {
	resolve.Handle
	refusal *resolve.Refusal
}

// resolve looks up the stores of the plan.
func (p *pass) resolve(ctx context.Context) error {
	p.resolved, p.foreign = map[v1alpha1.StoreRef]resolved{}, map[v1alpha1.StoreRef]bool{}
	generators := p.plan.Generators()
	for _, ref := range p.plan.Stores() {
		use := resolve.Read
		if slices.Contains(generators, ref) {
			use = resolve.Generate
		}
		h, refusal, err := p.routes.Resolve(ctx, ref, p.es.Namespace, use)
		if err != nil {
			return err
		}
		p.resolved[ref] = resolved{h, refusal}
		p.foreign[ref] = p.elsewhere(p.es, refusal, !p.obj.contributes.Load())
	}
	return nil
}

func (p *pass) partKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.es.Namespace, Name: p.contributor().PartName("ExternalSecret", p.es.Name)}
}

// cachedPart returns the metadata of the part, from the cache or as it was just written; nil if there is none.
func (p *pass) cachedPart(ctx context.Context) (*metav1.PartialObjectMetadata, handoff.Record, error) {
	m := resolve.SecretMetadata()
	err := p.obj.whileLocked(func() error {
		err := p.cache.Get(ctx, p.partKey(), m)
		if kerrors.IsNotFound(err) {
			m, err = nil, nil
		}
		m = p.obj.latestPartLocked(m)
		return err
	})
	if err != nil || m == nil {
		return nil, handoff.Record{}, errors.Wrap(err, "cannot read the part")
	}
	rec, _ := handoff.Of(m.Annotations)
	return m, rec, nil
}

// readsDue says why the stores are to be read for the part.
func (p *pass) readsDue(m *metav1.PartialObjectMetadata, rec handoff.Record) policy.Why {
	reads := handoff.Reads{}
	if rec.Reads != nil && rec.UID == p.es.UID && m.DeletionTimestamp == nil && p.isOurs(m) && !p.obj.edited(m) {
		reads = *rec.Reads
	}
	now := p.opts.Now()
	switch {
	case !policy.Periodic(p.es.Spec.RefreshPolicy, p.plan.Interval):
		p.obj.next = time.Time{}
	case p.obj.next.IsZero() && reads.Next.After(now):
		p.obj.next = reads.Next
	case p.obj.next.IsZero():
		p.obj.next = policy.Spread(p.started, p.plan.Interval, p.opts.Random())
	}
	ready := meta.FindStatusCondition(p.es.Status.Conditions, v1alpha1.ConditionReady)
	inStep := ready != nil && ready.Status == metav1.ConditionTrue
	covered := len(reads.Entries) == len(p.plan.Sources)
	for _, s := range p.plan.Sources {
		_, ok := reads.Entries[handoff.SourceID(s.Store, s.Read)]
		covered = covered && ok
	}
	in := policy.RefreshInput{
		Policy: p.es.Spec.RefreshPolicy, Interval: p.plan.Interval, Now: now,
		Refreshed: covered || inStep && reads.Version != "", Failing: p.obj.failing || p.lacks(reads) || p.failedBefore(),
		Next: p.obj.next, Generation: 1,
		MetadataHash: p.metadata(), ObservedMetadataHash: reads.Metadata,
		Request: p.es.Annotations[v1alpha1.RefreshRequestAnnotation], ObservedRequest: reads.Request,
	}
	if covered {
		in.ObservedGeneration = in.Generation
	}
	if p.es.Spec.Target.Immutable && covered {
		return policy.NotDue // It is written once, and so reading stops.
	}
	return policy.RefreshDue(in)
}

// failedBefore reports whether the last attempt failed, where an earlier process made it.
func (p *pass) failedBefore() bool {
	s := p.recorder().Of(p.es.Status.Parts)
	return p.obj.attempt == (attempt{}) && s != nil && s.Message != ""
}

// isOurs reports whether this module has written a part: the status says so, or this process knows. Anybody who may
// write Secrets can make one of its name.
func (p *pass) isOurs(m metav1.Object) bool {
	s := p.recorder().Of(p.es.Status.Parts)
	return s != nil && s.UID == m.GetUID() || p.obj.wrote == m.GetUID()
}

// lacks reports whether something did not exist that the object is not in step without.
func (p *pass) lacks(reads handoff.Reads) bool {
	if policy.OnGone(p.es.Spec.Target.DeletionPolicy, true, 0) != policy.KeepAll {
		return false
	}
	return slices.ContainsFunc(p.plan.Sources, func(s render.Source) bool {
		return reads.Entries[handoff.SourceID(s.Store, s.Read)] == handoff.NotFound && render.Required(p.es, s)
	})
}

// hand keeps what was read in the part.
func (p *pass) hand(ctx context.Context, values render.Values, at time.Time) (reconcile.Result, error) {
	var m *metav1.PartialObjectMetadata
	var anew bool
	reads, err := p.collect(values)
	if err == nil {
		m, anew, err = p.keep(ctx, reads, at)
	}
	var refused *provider.Error
	switch {
	case err == nil:
		return p.handedOver(ctx, m, anew)
	case !errors.As(err, &refused):
		return p.failure(ctx, err)
	}
	p.obj.failing = true
	return p.retry(ctx, syncFailed(err), provider.RetryAfter(err))
}

// collect returns what is to be kept of what was read; an error if any of it could not be read.
func (p *pass) collect(values render.Values) ([]handoff.Read, error) {
	if err := render.Failure(p.plan.Sources, values); err != nil {
		if provider.ClassOf(err) == provider.Denied {
			p.suspect()
		}
		return nil, err
	}
	var reads []handoff.Read
	for _, s := range p.plan.Sources {
		r, err := handoff.NewRead(s.Store, s.Read, values(s))
		if err != nil {
			return nil, err
		}
		reads = append(reads, r)
	}
	return reads, nil
}

// handedOver says that the part has what the object wants of this operator.
func (p *pass) handedOver(ctx context.Context, m *metav1.PartialObjectMetadata, anew bool) (reconcile.Result, error) {
	p.obj.failing, p.obj.misses = false, 0
	p.obj.untold = p.obj.untold || anew
	rec, _ := handoff.Of(m.Annotations)
	wait := p.remaining()
	if rec.Reads != nil && p.lacks(*rec.Reads) {
		// It may come any time, so it is looked for more often than what is there.
		wait = p.backoff.When(p.request())
		p.obj.hold(time.Now().Add(wait))
	} else {
		p.backoff.Forget(p.request())
	}
	metrics.Synced("Part", v1alpha1.ReasonSecretSynced)
	if err := p.record(ctx, handoff.Said{Part: m, Anew: p.obj.untold}); err != nil {
		return reconcile.Result{}, err
	}
	p.obj.untold = false
	if wait <= 0 {
		return reconcile.Result{}, nil
	}
	return later(wait), nil
}

// say tells the operator that claims the object why the part is not what it shall be, and comes back after wait.
func (p *pass) say(ctx context.Context, v verdict, wait time.Duration) (reconcile.Result, error) {
	m, _, err := p.cachedPart(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	said := handoff.Said{Message: v.Message, Reason: v.Reason, Class: v.Class}
	if said.Reason == v1alpha1.ReasonSecretSyncedError {
		said.Reason = "" // The usual one.
	}
	if m != nil {
		said.Part = m
	}
	metrics.Synced("Part", v.Reason)
	if err := p.record(ctx, said); err != nil || wait <= 0 {
		return reconcile.Result{}, err
	}
	return later(wait), nil
}

func (p *pass) record(ctx context.Context, s handoff.Said) (err error) {
	p.obj.told, err = p.recorder().Tell(ctx, "ExternalSecret", p.es, p.es.Status.Parts, s, p.obj.told)
	return err
}

// keep writes the part, unless it is as it shall be, and returns it, and whether its values are others. Where
// nothing is new, the time is written now and then.
func (p *pass) keep(ctx context.Context, kept []handoff.Read, at time.Time) (*metav1.PartialObjectMetadata, bool, error) {
	data, entries, err := handoff.Pack(kept)
	if err != nil {
		return nil, false, err
	}
	reads := handoff.Reads{
		Version: handoff.NewVersion(), Hash: target.HashInputs(p.es.UID, handoff.Content(data)), Entries: entries,
		Request: p.es.Annotations[v1alpha1.RefreshRequestAnnotation], Metadata: p.metadata(), Labels: p.storeLabels(), At: at,
	}
	p.obj.next = time.Time{}
	if policy.Periodic(p.es.Spec.RefreshPolicy, p.plan.Interval) {
		p.obj.next = at.Add(policy.Jitter(p.plan.Interval, p.opts.Random()))
		reads.Next = p.obj.next
	}
	m, rec, err := p.cachedPart(ctx)
	if err != nil {
		return nil, false, err
	}
	if p.fits(m) && p.isOurs(m) && !p.obj.edited(m) && rec.Reads != nil && rec.Reads.Same(reads) && at.Sub(rec.Reads.At) < policy.Heartbeat {
		return m, false, nil
	}
	live, err := p.livePart(ctx)
	if err != nil {
		return nil, false, err
	}
	if live != nil {
		was := handoff.RecordOf(live)
		if was.UID == p.es.UID && was.Reads != nil && was.Reads.Hash == reads.Hash {
			reads.Version = was.Reads.Version
		}
		rec = was
	}
	anew := rec.Reads == nil || rec.Reads.Version != reads.Version || live == nil
	m, err = p.writePart(ctx, live, handoff.Record{Kind: "ExternalSecret", Name: p.es.Name, UID: p.es.UID, Class: p.opts.ControllerClass, Reads: &reads}, data)
	return m, anew, err
}

// livePart reads the part; nil if there is none.
func (p *pass) livePart(ctx context.Context) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := p.client.Get(ctx, p.partKey(), s)
	switch {
	case kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, errors.Wrap(err, "cannot read the part")
	case s.Type != handoff.Type:
		return nil, provider.NewError(provider.Invalid, "Secret %q has the name of the one in which values are handed over; delete it", s.Name)
	case s.DeletionTimestamp != nil:
		return nil, errMoved
	}
	return s, nil
}

// mend gives the part the labels and the owner that it shall have; nil if there is no such part any more.
func (p *pass) mend(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	live, err := p.livePart(ctx)
	if err != nil || live == nil {
		return nil, err
	}
	rec := handoff.RecordOf(live)
	if rec.Reads == nil || rec.UID != p.es.UID {
		return nil, nil
	}
	return p.writePart(ctx, live, rec, live.Data)
}

// writePart brings the part to a record and its data. live is nil if there is none.
func (p *pass) writePart(ctx context.Context, live *corev1.Secret, rec handoff.Record, data map[string][]byte) (*metav1.PartialObjectMetadata, error) {
	part := handoff.Part{Record: rec, Data: data, Labels: p.partLabels(), Owners: []metav1.OwnerReference{p.ownerReference()}}
	next, err := part.Write(ctx, p.client, p.partKey(), live)
	switch {
	case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, target.ErrNamespaceTerminating
	case kerrors.IsForbidden(err), kerrors.IsInvalid(err), kerrors.IsRequestEntityTooLargeError(err):
		return nil, provider.NewError(provider.Denied, "the Secret in which values are handed over could not be written: %s", errors.Cause(err).Error())
	case err != nil:
		return nil, err
	}
	m := &metav1.PartialObjectMetadata{ObjectMeta: *next.ObjectMeta.DeepCopy()}
	m.ManagedFields = nil
	p.obj.wrotePart(m)
	return m, nil
}

// partLabels are those by which this module and the one that claims the object follow the part.
func (p *pass) partLabels() []string {
	return handoff.Labels(p.opts.Module, p.opts.Board.Serving(p.es.LeadingStore(), p.es.Namespace))
}

// fits reports whether the part has the labels and the owner that it shall have.
func (p *pass) fits(m *metav1.PartialObjectMetadata) bool {
	return m != nil && handoff.Labelled(m, p.partLabels()) &&
		slices.ContainsFunc(m.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == p.es.UID })
}

// retract takes the part away of which the spec names nothing any more.
func (p *pass) retract(ctx context.Context) error {
	key := client.ObjectKeyFromObject(p.es)
	live, err := p.livePart(ctx)
	var invalid *provider.Error
	if err != nil && !errors.As(err, &invalid) && !errors.Is(err, errMoved) {
		return err
	}
	if live != nil {
		err := p.client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return errors.Wrap(err, "cannot delete the part")
		}
	}
	if err := p.record(ctx, handoff.Said{}); err != nil {
		return err
	}
	p.forget(key)
	return nil
}
