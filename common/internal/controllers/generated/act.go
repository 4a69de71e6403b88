package generated

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// firstMiss is when a pass is repeated under which the world has moved on.
const firstMiss = 50 * time.Millisecond

// keeping is what failed when a part could not be written.
const keeping = "part"

// draft is a part as it shall be.
type draft struct {
	rec  handoff.Record
	data map[string][]byte
	// used are the IDs of values that were made for it, rotated why those before them are replaced.
	used    []string
	rotated map[string]string
}

// act does what there is to do, by a live read of the part.
func (p *pass) act(ctx context.Context) error {
	live, err := p.live(ctx)
	if err != nil {
		return err
	}
	var rec handoff.Record
	if live != nil {
		rec = handoff.RecordOf(live)
		p.obj.settle(rec)
		p.obj.kept = live.ResourceVersion
	}
	switch {
	case live == nil:
	case live.Type != handoff.Type:
		p.failure = *provider.NewError(provider.Invalid, "Secret %q has the name that generated values are to be kept under; delete it", live.Name)
		p.again(lastBackoff)
		return p.tell(ctx, nil, false)
	case live.DeletionTimestamp != nil && rec.UID != p.user.GetUID():
		// It is that of an object before this one. If a Secret holds its values still, that may be the one that
		// this object is about to write, and so it cannot wait for its end.
		used, err := p.inUse(ctx, rec.Name, append(holders(rec.UID, rec.Retired, p.now), rec.UID)...)
		if err != nil {
			return err
		}
		if used {
			return p.replace(ctx, live, rec)
		}
		p.soon()
		return p.finish(ctx, live, rec)
	case live.DeletionTimestamp != nil:
		return p.replace(ctx, live, rec)
	}
	d := p.draft(rec, live)
	p.failure, p.wait = provider.Error{}, 0
	t := p.plan(ctx, d.rec, live)
	if moved, err := p.fence(ctx, t, rec); moved || err != nil {
		p.soon()
		return err
	}
	p.drop(t, d)
	for _, id := range slices.Sorted(maps.Keys(t.values)) {
		p.value(ctx, id, t.values[id], d)
	}
	p.revoke(ctx, t, d)
	p.discard(ctx, t)
	// What was made is kept also while the operator ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opts.CallTimeout)
	defer cancel()
	return p.keep(ctx, live, d)
}

// live reads the part; nil if there is none.
func (p *pass) live(ctx context.Context) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := p.client.Get(ctx, p.partKey(), s)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return s, errors.Wrap(err, "cannot read the part")
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get

// fence reads the object and its generators live where caches that are behind could do harm: before values
// are replaced, before a part is given to an object, and before anything is revoked. It is true if they are not
// as this pass takes them to be.
func (p *pass) fence(ctx context.Context, t todo, rec handoff.Record) (moved bool, err error) {
	replaces := t.adopt || t.owners || len(t.freed) > 0 || len(t.dropped) > 0
	for _, s := range t.values {
		if s.action != handoff.Make {
			continue
		}
		if spec, err := p.specNow(ctx, s.ref); err != nil || spec != s.spec {
			return true, err
		}
		replaces = true
	}
	if !replaces {
		return false, nil
	}
	o := p.req.empty()
	if err := p.client.Get(ctx, p.req.NamespacedName, o); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	is := p.userOf(o)
	if is.GetUID() != p.user.GetUID() || is.GetDeletionTimestamp() != nil ||
		is.generation != p.user.generation || is.facts.request != p.user.facts.request {
		return true, nil
	}
	return len(t.freed) > 0 && !is.holds(rec) || len(t.dropped) > 0 && !is.settled, nil
}

// specNow returns the SpecHash of a generator by a live read; empty if there is none.
func (p *pass) specNow(ctx context.Context, ref v1alpha1.StoreRef) (string, error) {
	k, ok := p.routes.Serves(&ref)
	if !ok {
		return "", nil
	}
	g, ok := k.New().(provider.GeneratorObject)
	if !ok {
		return "", nil
	}
	if err := p.client.Get(ctx, k.Key(ref.Name, p.req.Namespace), g); err != nil {
		return "", errors.Wrap(client.IgnoreNotFound(err), "cannot read the generator")
	}
	return handoff.SpecHash(g)
}

// draft returns the part as it is. Whose it is changes only when it is written: until then the fence has to see
// that it may be another object's.
func (p *pass) draft(rec handoff.Record, live *corev1.Secret) *draft {
	d := &draft{rec: rec, data: map[string][]byte{}, rotated: map[string]string{}}
	d.rec.Entries = maps.Clone(rec.Entries)
	if d.rec.Entries == nil {
		d.rec.Entries = map[string]handoff.Entry{}
	}
	d.rec.Retired = slices.Clone(rec.Retired)
	if live != nil {
		maps.Copy(d.data, live.Data)
	}
	for id := range rec.Entries {
		if _, ok := handoff.Decode(d.data, id); !ok {
			d.rec.Retire(id) // Somebody has taken the values away.
			delete(d.data, id)
		}
	}
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	d.rec.Retired = append(d.rec.Retired, p.obj.carried...)
	return d
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete

// keep writes the part as it shall be, if it is not so.
func (p *pass) keep(ctx context.Context, live *corev1.Secret, d *draft) error {
	switch empty := len(d.rec.Entries)+len(d.rec.Retired) == 0; {
	case empty && live == nil:
		return p.tell(ctx, nil, false)
	case empty:
		err := p.client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
		if err != nil {
			return p.unkept(ctx, err)
		}
		return p.tell(ctx, nil, false)
	}
	next := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.req.Namespace, Name: p.nameOf(p.req)}, Type: handoff.Type}
	if live != nil {
		next = live.DeepCopy()
	}
	if err := p.fill(ctx, next, d); err != nil {
		return err
	}
	var err error
	switch {
	case live == nil:
		err = p.client.Create(ctx, next)
	case !equality.Semantic.DeepEqual(live, next):
		err = p.client.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return p.unkept(ctx, err)
	}
	p.obj.succeed(keeping)
	p.obj.misses, p.obj.kept = 0, next.ResourceVersion
	p.obj.mu.Lock()
	for _, id := range d.used {
		delete(p.obj.made, id)
	}
	p.obj.carried = nil
	p.obj.mu.Unlock()
	for id, why := range d.rotated {
		p.events.Eventf(p.user.Object, nil, corev1.EventTypeNormal, "Rotated", "Generate", "the values of %s %q were replaced: %s",
			d.rec.Entries[id].Generator.Kind, d.rec.Entries[id].Generator.Name, why)
	}
	return p.tell(ctx, next, len(d.used) > 0)
}

// fill brings a part to what a draft says.
func (p *pass) fill(ctx context.Context, s *corev1.Secret, d *draft) error {
	s.Data = d.data
	d.rec.Kind, d.rec.Name, d.rec.UID, d.rec.Class = p.req.kind, p.req.Name, p.user.GetUID(), p.opts.ControllerClass
	if err := d.rec.Put(s); err != nil {
		return err
	}
	for _, l := range p.labels() {
		metav1.SetMetaDataLabel(&s.ObjectMeta, l, "true")
	}
	owners := []metav1.OwnerReference{p.ownerOf()}
	to, err := p.targetOwner(ctx)
	if err != nil {
		return err
	}
	for _, o := range s.OwnerReferences {
		if o.Kind == secretKind && (to == nil || o.UID != to.UID) {
			owners = append(owners, o)
		}
	}
	if to != nil {
		owners = append(owners, *to)
	}
	s.OwnerReferences = owners
	if d.rec.Cleans() {
		controllerutil.AddFinalizer(s, handoff.Finalizer(p.opts.Module))
	} else {
		controllerutil.RemoveFinalizer(s, handoff.Finalizer(p.opts.Module))
	}
	return nil
}

// unkept is what comes of a part that could not be written. What was made for it is kept in memory.
func (p *pass) unkept(ctx context.Context, err error) error {
	switch {
	case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		p.soon()
		return nil
	case kerrors.IsForbidden(err), kerrors.IsInvalid(err), kerrors.IsRequestEntityTooLargeError(err):
		p.again(p.obj.fail(keeping, "", "", p.now, err, p.opts.Random()))
		p.failure = *provider.NewError(provider.Denied, "the Secret in which generated values are kept could not be written: %s", errors.Cause(err).Error())
		return p.tell(ctx, nil, false)
	}
	return errors.Wrap(err, "cannot write the part")
}
