package generation

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// firstMiss is the delay before a reconcile with outdated caches is repeated. It doubles with each one in a row.
const firstMiss = 50 * time.Millisecond

// keeping is the key for failed writes of a part.
const keeping = "part"

// pass is one reconcile of the part of one object.
type pass struct {
	*Reconciler
	req  request
	user user
	// obj is nil if the object uses no generator of this module.
	obj *object
	now time.Time
	out outcome
}

// Reconcile is one walk over the part of one object.
func (r *Reconciler) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	p := &pass{Reconciler: r, req: req, now: r.now()}
	if err := p.run(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if p.obj == nil {
		return reconcile.Result{}, nil
	}
	if p.out.failure.Message == "" {
		metrics.Synced("Part", v1alpha1.ReasonSecretSynced)
	} else {
		metrics.Synced("Part", v1alpha1.ReasonSecretSyncedError)
	}
	if p.out.moved {
		// The missing event also requeues the object.
		p.out.again(firstMiss << min(p.obj.misses, 8))
		p.obj.misses++
	} else {
		p.obj.misses = 0
	}
	if p.out.wait <= 0 {
		return reconcile.Result{}, nil
	}
	low := queue.Low
	return reconcile.Result{RequeueAfter: max(p.out.wait, time.Millisecond), Priority: &low}, nil
}

// run decides by the cache whether there is work to do. The work itself is based on a live read.
func (p *pass) run(ctx context.Context) error {
	if p.req.kind == secretKind {
		return p.release(ctx)
	}
	o := p.req.empty()
	err := p.cache.Get(ctx, p.req.NamespacedName, o)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the object")
	}
	meta, err2 := p.cached(ctx, p.req)
	if err2 != nil {
		return err2
	}
	if err != nil || o.GetDeletionTimestamp() != nil {
		return p.orphaned(ctx, meta)
	}
	p.user = userOf(o, p.generators.resolver.Routes)
	if meta == nil && len(p.user.generators) == 0 {
		p.forget()
		return nil
	}
	p.obj, _ = p.memory.Get(p.req, o.GetUID())
	v := p.gather(ctx)
	if meta != nil {
		v.part = meta
		v.rec, _ = handoff.Of(meta.Annotations)
	}
	t := p.decide(v)
	if meta != nil && t.empty() && !p.obj.part.Edited(meta) {
		return p.report(ctx, meta, false)
	}
	return p.act(ctx, v)
}

// gather returns the input of a decision, except for the part.
func (p *pass) gather(ctx context.Context) view {
	v := view{now: p.now, user: p.user, finalizer: p.finalizer(), labels: p.labels(p.user), attempts: &p.obj.attempts}
	for _, ref := range p.user.generators {
		v.generators = append(v.generators, p.generators.find(ctx, ref, p.req.Namespace))
	}
	// An error counts as an absent Secret: then act reads the owners of the part live.
	v.target, _ = p.target(ctx, p.cache, p.user)
	return v
}

// decide keeps the outcome of a decision, and returns the work to do.
func (p *pass) decide(v view) (t todo) {
	t, p.out = decide(v)
	for _, id := range t.current {
		p.obj.succeed(id)
	}
	return t
}

// act does the necessary work, based on a live read of the part. v is the state of the cache.
func (p *pass) act(ctx context.Context, v view) error {
	live, err := p.live(ctx, p.req)
	if err != nil {
		return err
	}
	var rec handoff.Record
	if live != nil {
		rec = handoff.RecordOf(live)
		p.obj.dropHeld(rec)
		p.obj.part.Set(live)
		if live.Type != handoff.Type || live.DeletionTimestamp != nil {
			return p.unusable(ctx, live, rec)
		}
	}
	d := newDraft(rec, live, p.obj.carried)
	v.rec, v.part = d.rec, nil
	if live != nil {
		v.part = live
	}
	t := p.decide(v)
	if moved, err := p.fence(ctx, t, rec); moved || err != nil {
		p.out.moved = true
		return err
	}
	d.drop(t)
	for _, id := range slices.Sorted(maps.Keys(t.values)) {
		takeStep(ctx, p, id, t.values[id], d)
	}
	revokeDue(ctx, p, t, d)
	discard(ctx, p, t.values)
	// New values must be stored also while the operator shuts down.
	ctx, cancel := kit.Finish(ctx, p.generators.opts.CallTimeout)
	defer cancel()
	return p.keep(ctx, live, d)
}

// unusable handles a Secret with the name of the part that cannot store values: one of another type, or one being
// deleted.
func (p *pass) unusable(ctx context.Context, live *corev1.Secret, rec handoff.Record) error {
	if live.Type != handoff.Type {
		p.out.failure = *provider.NewError(provider.Invalid, "Secret %q uses the name of the Secret that stores generated values; delete it", live.Name)
		p.out.again(lastBackoff)
		return p.report(ctx, nil, false)
	}
	if rec.UID != p.user.GetUID() {
		// The part is of a former object with the same name. If a Secret still holds its values, that may be the Secret
		// that this object is about to write, so waiting for its deletion could block forever.
		used, err := p.inUse(ctx, p.req.Namespace, rec.Name, append(holders(rec.UID, rec.Retired, p.now), rec.UID)...)
		if err != nil {
			return err
		}
		if !used {
			p.out.moved = true
			return finishPart(ctx, p, live, rec)
		}
	}
	return replacePart(ctx, p, live, rec)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get

// fence reads the object and its generators live if outdated caches could do harm: before values are replaced, before a
// part is given to another object, and before anything is revoked. moved is true if they differ from what this pass
// assumes.
func (p *pass) fence(ctx context.Context, t todo, rec handoff.Record) (moved bool, err error) {
	replaces := t.adopt || t.owners || len(t.freed) > 0 || len(t.dropped) > 0
	for _, s := range t.values {
		if s.why == whyRenew {
			continue
		}
		if spec, err := p.generators.specNow(ctx, s.ref, p.req.Namespace); err != nil || spec != s.spec {
			return true, err
		}
		replaces = true
	}
	if !replaces {
		return false, nil
	}
	return p.userMoved(ctx, t, rec)
}

// userMoved reports whether the live object differs from the one decided about, or does not hold the values that allow
// the revocation.
func (p *pass) userMoved(ctx context.Context, t todo, rec handoff.Record) (bool, error) {
	o := p.req.empty()
	if err := p.client.Get(ctx, p.req.NamespacedName, o); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	is := userOf(o, p.generators.resolver.Routes)
	if is.GetUID() != p.user.GetUID() || is.GetDeletionTimestamp() != nil ||
		is.generation != p.user.generation || is.refresh != p.user.refresh {
		return true, nil
	}
	return len(t.freed) > 0 && !is.holds(rec) || len(t.dropped) > 0 && !is.inSync, nil
}

// keep writes the wanted state of the part if it differs, and records it in the status. Made values stay in memory
// until then.
func (p *pass) keep(ctx context.Context, live *corev1.Secret, d *draft) error {
	if len(d.rec.Entries)+len(d.rec.Retired) == 0 {
		if live != nil {
			if err := p.client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}); err != nil {
				return p.unkept(ctx, err)
			}
		}
		return p.report(ctx, nil, false)
	}
	owners, err := p.owners(ctx, p.user, live)
	if err != nil {
		return err
	}
	d.rec.Kind, d.rec.Name, d.rec.UID, d.rec.Class = p.req.kind, p.req.Name, p.user.GetUID(), p.contributor.Class
	part := handoff.Part{Record: d.rec, Data: d.data, Labels: p.labels(p.user), Owners: owners, Finalizer: p.finalizer()}
	next, err := part.Write(ctx, p.client, p.key(p.req), live)
	if err != nil {
		return p.unkept(ctx, err)
	}
	p.obj.succeed(keeping)
	p.obj.part.Set(next)
	p.obj.stored(d.used)
	for id, why := range d.rotated {
		of := d.rec.Entries[id].Generator
		p.events.Eventf(p.user.Object, nil, corev1.EventTypeNormal, "Rotated", "Generate", "the values of %s %q were replaced: %s", of.Kind, of.Name, why)
	}
	return p.report(ctx, next, len(d.used) > 0)
}

// unkept handles the error of a part that could not be written.
func (p *pass) unkept(ctx context.Context, err error) error {
	err = p.contributor.WriteError(err)
	var denied *provider.Error
	switch {
	case errors.Is(err, target.ErrNamespaceTerminating):
		return nil
	case kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		p.out.moved = true
		return nil
	case errors.As(err, &denied):
		p.out.again(p.obj.fail(keeping, "", p.now, err))
		p.out.failure = *denied
		return p.report(ctx, nil, false)
	}
	return errors.Wrap(err, "cannot write the Secret of the contribution")
}

// forget drops the memory of the object, unless it has values that no part holds: these must be revoked first.
func (p *pass) forget() {
	if o := p.memory.Peek(p.req); o != nil && !o.burdened() {
		p.memory.Forget(p.req)
	}
}

// warn emits an event about a credential, for the object, which may be deleted already.
func (p *pass) warn(of handoff.Generator, message string) {
	regarding := p.user.Object
	if regarding == nil {
		if regarding = p.req.empty(); p.req.kind == secretKind {
			regarding = &corev1.Secret{}
		}
		regarding.SetNamespace(p.req.Namespace)
		regarding.SetName(p.req.Name)
	}
	p.events.Eventf(regarding, nil, corev1.EventTypeWarning, "LeftBehind", "Generate", "%s %q: %s", of.Kind, of.Name, message)
}

// report records the part in the status of the object, if the status differs. part is nil if there is none. The last
// argument reports whether the part has new values.
func (p *pass) report(ctx context.Context, part metav1.Object, newValues bool) error {
	request := p.user.GetAnnotations()[v1alpha1.RefreshRequestAnnotation]
	if is := p.contributor.Of(p.user.parts); p.out.parked && is != nil {
		request = is.AttemptedRefreshRequest
	}
	return p.contributor.Report(ctx, p.client, p.user.kind, p.user.Object, p.user.parts, handoff.Report{
		Part: part, NewValues: newValues, Reason: p.out.reason, Class: p.out.failure.Class, Message: p.out.failure.Message, Request: request,
		Window: p.out.window,
	}, &p.obj.lastReport)
}

// orphaned handles the part of a deleted object. m is nil if there is none.
func (p *pass) orphaned(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	p.obj = p.memory.Peek(p.req)
	if held := m != nil && m.DeletionTimestamp != nil && p.bears(m); !held && (p.obj == nil || !p.obj.burdened()) {
		p.forget()
		return nil
	}
	if p.obj == nil {
		p.obj, _ = p.memory.Get(p.req, "")
	}
	live, err := p.live(ctx, p.req)
	if err != nil {
		return err
	}
	if live != nil {
		p.obj.dropHeld(handoff.RecordOf(live))
	}
	for id, v := range p.obj.made {
		tryAbandon(ctx, p, id, v)
	}
	if err := revokeCarried(ctx, p); err != nil {
		return err
	}
	if live != nil && live.DeletionTimestamp != nil && p.bears(live) {
		return finishPart(ctx, p, live, handoff.RecordOf(live))
	}
	p.forget()
	return nil
}

// release finishes a part whose annotation names no object.
func (p *pass) release(ctx context.Context) error {
	s := &corev1.Secret{}
	err := p.client.Get(ctx, p.req.NamespacedName, s)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the Secret of the contribution")
	}
	if _, ok := handoff.Of(s.Annotations); err != nil || ok || s.DeletionTimestamp == nil || s.Type != handoff.Type {
		p.forget()
		return nil
	}
	p.obj, _ = p.memory.Get(p.req, s.UID)
	rec := handoff.RecordOf(s)
	if rec.Name == "" {
		p.warn(handoff.Generator{}, "Secret "+s.Name+" has lost its annotation with the record; credentials that it would revoke stay valid until they expire")
	}
	if err := finishPart(ctx, p, s, rec); err != nil || p.out.moved || p.out.wait > 0 {
		return err // It is reconciled again.
	}
	p.forget()
	return nil
}
