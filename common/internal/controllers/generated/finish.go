package generated

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// patience is how long a part is kept in a namespace that terminates for the sake of what is to be revoked.
const patience = 5 * time.Minute

// holdInterval is how often a part is looked at that is held for the sake of a Secret.
const holdInterval = time.Minute

// bears reports whether a Secret carries the finalizer of this module.
func (r *Reconciler) bears(o metav1.Object) bool {
	return slices.Contains(o.GetFinalizers(), handoff.Finalizer(r.opts.Module))
}

// orphaned looks after what an object that is gone has left.
func (p *pass) orphaned(ctx context.Context, m *metav1.PartialObjectMetadata) error {
	p.obj = p.peek(p.req)
	if held := m != nil && m.DeletionTimestamp != nil && p.bears(m); !held && (p.obj == nil || !p.obj.burdened()) {
		p.forget(p.req)
		return nil
	}
	if p.obj == nil {
		p.obj = p.object(p.req, "")
	}
	live, err := p.live(ctx)
	if err != nil {
		return err
	}
	if live != nil {
		p.obj.settle(handoff.RecordOf(live))
	}
	p.obj.mu.Lock()
	all, carried := maps.Clone(p.obj.made), slices.Clone(p.obj.carried)
	p.obj.mu.Unlock()
	for id, m := range all {
		p.tryAbandon(ctx, id, m)
	}
	if len(carried) > 0 {
		p.soon()
		used, err := p.inUse(ctx, p.req.Name, holders(p.obj.uid, carried, p.now)...)
		if err != nil {
			return err
		}
		if !used {
			carried = slices.DeleteFunc(carried, func(c handoff.Retired) bool { return p.end(ctx, c) == nil })
		}
	}
	p.obj.mu.Lock()
	p.obj.carried = carried
	p.obj.mu.Unlock()
	if live != nil && live.DeletionTimestamp != nil && p.bears(live) {
		return p.finish(ctx, live, handoff.RecordOf(live))
	}
	p.forget(p.req)
	return nil
}

// release finishes a part whose annotation tells no object.
func (p *pass) release(ctx context.Context) error {
	s := &corev1.Secret{}
	if err := p.client.Get(ctx, p.req.NamespacedName, s); err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot read the part")
	}
	if _, ok := handoff.Of(s.Annotations); ok || s.DeletionTimestamp == nil || s.Type != handoff.Type {
		return nil
	}
	p.obj = p.object(p.req, s.UID)
	rec := handoff.RecordOf(s)
	if rec.Name == "" {
		p.warn(handoff.Generator{}, "Secret "+s.Name+" has lost its record, so what was to be revoked with it stays until it expires")
	}
	return p.finish(ctx, s, rec)
}

// finish revokes all that a part holds that is being deleted, and lets it go.
func (p *pass) finish(ctx context.Context, live *corev1.Secret, rec handoff.Record) error {
	if !p.bears(live) {
		return nil
	}
	for id := range maps.Clone(rec.Entries) {
		rec.Retire(id)
	}
	if used, err := p.inUse(ctx, rec.Name, holders(rec.UID, rec.Retired, p.now)...); err != nil || used {
		p.again(holdInterval) // The end of that Secret brings it back.
		return err
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

// A Secret that holds the values may carry no label any more, so all of the namespace are listed, as metadata.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list

// inUse reports whether a Secret lives that was made for one of the objects of a name: it may hold what would be
// revoked.
func (p *pass) inUse(ctx context.Context, name string, of ...types.UID) (bool, error) {
	if len(of) == 0 {
		return false, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.client.List(ctx, list, client.InNamespace(p.req.Namespace)); err != nil {
		return false, errors.Wrap(err, "cannot list Secrets")
	}
	return slices.ContainsFunc(list.Items, func(s metav1.PartialObjectMetadata) bool {
		mark, ok := target.Marks(s.Annotations)[name]
		return ok && slices.Contains(of, mark.UID) && s.DeletionTimestamp == nil
	}), nil
}

// holders returns the objects for which credentials were made that have not expired: uid, but for those that an object
// of the name before it has left.
func holders(uid types.UID, of []handoff.Retired, now time.Time) []types.UID {
	var all []types.UID
	for _, c := range of {
		if holder := cmp.Or(c.UID, uid); !expired(c.Expires, now) && !slices.Contains(all, holder) {
			all = append(all, holder)
		}
	}
	return all
}

// Where namespaces cannot be read, the answer to a dry run says whether this one ends.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create

// late reports whether a part was held for long enough in a namespace that terminates.
func (p *pass) late(ctx context.Context, live *corev1.Secret) (bool, error) {
	ns := resolve.NamespaceMetadata()
	err := p.client.Get(ctx, types.NamespacedName{Name: live.Namespace}, ns)
	switch {
	case kerrors.IsNotFound(err):
		return true, nil
	case kerrors.IsForbidden(err): // An operator of chosen namespaces reads none of them.
		probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, GenerateName: "probe-"}}
		if err := p.client.Create(ctx, probe, client.DryRunAll); !kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return false, nil
		}
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
	controllerutil.RemoveFinalizer(next, handoff.Finalizer(p.opts.Module))
	err := p.client.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if kerrors.IsConflict(err) || kerrors.IsNotFound(err) {
		p.soon()
		return nil
	}
	return errors.Wrap(err, "cannot take the finalizer off the part")
}

// replace has a part made anew that somebody has deleted while its values are in use. Those are revoked as
// if they had been replaced: when the new ones have arrived, and no Secret of an object before this one holds them.
func (p *pass) replace(ctx context.Context, live *corev1.Secret, rec handoff.Record) error {
	if !p.bears(live) {
		p.soon() // Somebody else's finalizer.
		return nil
	}
	for id := range maps.Clone(rec.Entries) {
		rec.Retire(id)
	}
	if rec.UID != p.user.GetUID() {
		for i := range rec.Retired {
			if rec.Retired[i].UID == "" {
				rec.Retired[i].UID = rec.UID
			}
		}
	}
	p.obj.mu.Lock()
	p.obj.carried = rec.Retired
	p.obj.mu.Unlock()
	p.soon()
	return p.letGo(ctx, live)
}
