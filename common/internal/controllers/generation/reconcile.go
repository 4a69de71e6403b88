package generation

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// firstMiss is the delay before a reconcile with outdated caches is repeated. It doubles with each one in a row.
const firstMiss = 50 * time.Millisecond

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
	err := p.parts.cache.Get(ctx, p.req.NamespacedName, o)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the object")
	}
	meta, err2 := p.parts.cached(ctx, p.req)
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
	t, out := decide(v)
	p.storeOutcome(t, out)
	if meta != nil && t.empty() && !p.obj.part.Edited(meta) {
		return p.report(ctx, meta, false)
	}
	return p.act(ctx, v)
}

// gather returns the input of a decision, except for the part.
func (p *pass) gather(ctx context.Context) view {
	v := view{now: p.now, user: p.user, finalizer: p.parts.finalizer(), labels: p.parts.labels(p.user), attempts: &p.obj.attempts}
	for _, ref := range p.user.generators {
		v.generators = append(v.generators, p.generators.find(ctx, ref, p.req.Namespace))
	}
	// An error counts as an absent Secret: then act reads the owners of the part live.
	v.target, _ = p.parts.target(ctx, p.parts.cache, p.user)
	return v
}

// storeOutcome stores the result of a decision.
func (p *pass) storeOutcome(t todo, out outcome) {
	p.out = out
	for _, id := range t.current {
		p.obj.succeed(id)
	}
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
	return p.parts.record(ctx, p.user, handoff.Report{
		Part: part, NewValues: newValues, Reason: p.out.reason, Class: p.out.failure.Class, Message: p.out.failure.Message,
	}, &p.obj.lastReport)
}

// orphaned handles the part of a deleted object. m is nil if there is none.
func (p *pass) orphaned(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	p.obj = p.memory.Peek(p.req)
	if held := m != nil && m.DeletionTimestamp != nil && p.parts.bears(m); !held && (p.obj == nil || !p.obj.burdened()) {
		p.forget()
		return nil
	}
	if p.obj == nil {
		p.obj, _ = p.memory.Get(p.req, "")
	}
	live, err := p.parts.live(ctx, p.req)
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
	if live != nil && live.DeletionTimestamp != nil && p.parts.bears(live) {
		return finishPart(ctx, p, live, handoff.RecordOf(live))
	}
	p.forget()
	return nil
}

// release finishes a part whose annotation names no object.
func (p *pass) release(ctx context.Context) error {
	s := &corev1.Secret{}
	err := p.parts.client.Get(ctx, p.req.NamespacedName, s)
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
