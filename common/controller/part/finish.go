package part

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/controller/routing"
	"github.com/direct-secrets/direct-secrets/common/part"
)

// patience is how long a part is kept in a namespace that terminates for the sake of what is to be revoked.
const patience = 5 * time.Minute

// bears reports whether a Secret carries the finalizer of this module.
func (r *Reconciler) bears(o client.Object) bool {
	return controllerutil.ContainsFinalizer(o, part.Finalizer(r.opts.Module))
}

// orphaned looks after what an object that is gone has left.
func (p *pass) orphaned(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	if p.obj = p.peek(p.req); p.obj == nil {
		p.obj = &object{tries: map[string]try{}, made: map[string]made{}}
	}
	p.obj.mu.Lock()
	all := p.obj.made
	p.obj.mu.Unlock()
	for id, m := range all {
		if err := p.abandon(ctx, id, m); err != nil {
			p.again(p.obj.fail("made "+id, "", "", p.now, err, p.opts.Random()))
		}
	}
	if m == nil || m.DeletionTimestamp == nil || !p.bears(m) {
		p.forget(p.req)
		return nil
	}
	p.obj = p.object(p.req, m.UID) // It remembers what has failed.
	live, err := p.live(ctx)
	if err != nil || live == nil || live.DeletionTimestamp == nil {
		return err
	}
	rec, _ := part.Of(live.Annotations)
	return p.finish(ctx, live, rec)
}

// release lets a part go that tells no object, and so nothing that is to be revoked.
func (p *pass) release(ctx context.Context) error {
	s := &corev1.Secret{}
	if err := p.client.Get(ctx, p.req.NamespacedName, s); err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot read the part")
	}
	if _, ok := part.Of(s.Annotations); ok || s.DeletionTimestamp == nil || s.Type != part.Type {
		return nil
	}
	p.warn(part.Generator{}, "Secret "+s.Name+" has lost its annotation, so what was to be revoked with it stays until it expires")
	return p.letGo(ctx, s)
}

// finish revokes all that a part holds that is being deleted, and lets it go.
func (p *pass) finish(ctx context.Context, live *corev1.Secret, rec part.Record) error {
	if !p.bears(live) {
		return nil
	}
	for id := range rec.Entries {
		rec.Retire(id)
	}
	left := 0
	for _, c := range rec.Retired {
		if err := p.end(ctx, c); err != nil {
			left++
			if !c.Expires.IsZero() {
				p.again(c.Expires.Sub(p.now) + time.Second)
			}
		}
	}
	if left > 0 {
		late, err := p.late(ctx, live)
		if err != nil || !late {
			return err
		}
		p.warn(rec.Retired[0].Generator, "the namespace terminates, so credentials that could not be revoked stay until they expire")
	}
	return p.letGo(ctx, live)
}

// late reports whether a part was held for long enough in a namespace that terminates.
func (p *pass) late(ctx context.Context, live *corev1.Secret) (bool, error) {
	ns := routing.NamespaceMetadata()
	err := p.client.Get(ctx, types.NamespacedName{Name: live.Namespace}, ns)
	switch {
	case kerrors.IsNotFound(err):
		return true, nil
	case kerrors.IsForbidden(err): // An operator of chosen namespaces reads none of them.
	case err != nil:
		return false, errors.Wrap(err, "cannot read the namespace")
	case ns.DeletionTimestamp == nil:
		return false, nil
	}
	return p.due(live.DeletionTimestamp.Add(patience)), nil
}

// letGo takes the finalizer off a part.
func (p *pass) letGo(ctx context.Context, live *corev1.Secret) error {
	next := live.DeepCopy()
	controllerutil.RemoveFinalizer(next, part.Finalizer(p.opts.Module))
	err := p.client.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if kerrors.IsConflict(err) || kerrors.IsNotFound(err) {
		p.again(soon)
		return nil
	}
	return errors.Wrap(err, "cannot take the finalizer off the part")
}

// replace has a part made anew that somebody has deleted while its values are in use. Those are revoked as
// if they had been replaced: when the new ones have arrived.
func (p *pass) replace(ctx context.Context, live *corev1.Secret, rec part.Record) error {
	if !p.bears(live) {
		p.again(soon) // Somebody else's finalizer.
		return nil
	}
	for id := range rec.Entries {
		rec.Retire(id)
	}
	p.obj.mu.Lock()
	p.obj.carried = rec.Retired
	p.obj.mu.Unlock()
	p.again(soon)
	return p.letGo(ctx, live)
}
