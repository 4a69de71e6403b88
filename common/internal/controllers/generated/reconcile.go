package generated

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/panics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// pass is one look at the part of one object.
type pass struct {
	*Reconciler
	req  request
	user user
	obj  *object
	now  time.Time
	// wait is the time until something is to be looked at again; 0 for never.
	wait time.Duration
	// failure says why values are missing or could not be replaced; without a message if they are not.
	failure provider.Error
}

// Reconcile looks at the part of one object.
func (r *Reconciler) Reconcile(ctx context.Context, req request) (res reconcile.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panics.Error(log.FromContext(ctx), v)
		}
		if ctx.Err() != nil {
			res, err = reconcile.Result{}, nil // The operator ends; what failed for that is no error.
		}
	}()
	p := &pass{Reconciler: r, req: req, now: r.opts.Now()}
	if err := p.run(ctx); err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case p.obj == nil: // This module has no part of it.
	case p.failure.Message == "":
		metrics.Synced("Part", v1alpha1.ReasonSecretSynced)
	default:
		metrics.Synced("Part", v1alpha1.ReasonSecretSyncedError)
	}
	if p.wait <= 0 {
		return reconcile.Result{}, nil
	}
	low := queue.Low
	return reconcile.Result{RequeueAfter: max(p.wait, time.Millisecond), Priority: &low}, nil
}

func (p *pass) run(ctx context.Context) error {
	if p.req.kind == secretKind {
		return p.release(ctx)
	}
	o := p.req.empty()
	err := p.cache.Get(ctx, p.req.NamespacedName, o)
	switch {
	case kerrors.IsNotFound(err):
		o = nil
	case err != nil:
		return errors.Wrap(err, "cannot read the object")
	case o.GetDeletionTimestamp() != nil:
		o = nil
	}
	meta, err := p.cached(ctx)
	if err != nil {
		return err
	}
	if o == nil {
		return p.orphaned(ctx, meta)
	}
	p.user = p.userOf(o)
	if meta == nil && len(p.user.generators) == 0 {
		p.forget(p.req)
		return nil
	}
	p.obj = p.object(p.req, o.GetUID())
	// What the cache shows decides whether there is anything to do; what is done rests on a live read.
	var rec handoff.Record
	if meta != nil {
		rec, _ = handoff.Of(meta.Annotations)
	}
	todo := p.plan(ctx, rec, meta)
	if meta != nil && todo.empty() && !p.edited(meta) {
		p.obj.misses = 0
		return p.tell(ctx, meta, false)
	}
	return p.act(ctx)
}

// edited reports whether somebody else has written the part since this process has seen it.
func (p *pass) edited(m *metav1.PartialObjectMetadata) bool {
	if p.obj.kept == "" {
		p.obj.kept = m.ResourceVersion
	}
	c, err := resourceversion.CompareResourceVersion(m.ResourceVersion, p.obj.kept)
	return err == nil && c > 0
}

// empty returns an empty object of the kind.
func (r request) empty() client.Object {
	if r.kind == pushSecretKind {
		return &v1alpha1.PushSecret{}
	}
	return &v1alpha1.ExternalSecret{}
}

// cached returns the metadata of the part from the cache; nil if it shows none.
func (p *pass) cached(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	m := resolve.SecretMetadata()
	err := p.cache.Get(ctx, p.partKey(), m)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return m, errors.Wrap(err, "cannot read the part")
}

func (p *pass) partKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.req.Namespace, Name: p.nameOf(p.req)}
}

func (r *Reconciler) nameOf(req request) string {
	return r.contributor().PartName(req.kind, req.Name)
}

// todo is what there is to do with a part.
type todo struct {
	// values are what is to be done with those of generators, by ID.
	values map[string]step
	// dropped are the IDs of values that nobody wants any more.
	dropped []string
	// unkept are the IDs of values of which the previous ones are not to be kept any more.
	unkept []string
	// freed are retired credentials that nobody holds any more, revoked those whose time has come.
	freed, revoked []handoff.Retired
	// owners is true if the owners are not as they shall be, adopt if the part is that of an object before.
	owners, adopt bool
	// labels is true if some are missing.
	labels bool
	// leftover is true if the part is deleted already.
	leftover bool
}

type step struct {
	ref    v1alpha1.StoreRef
	action handoff.Action
	why    string
	spec   string
}

func (t todo) empty() bool {
	return len(t.values)+len(t.dropped)+len(t.unkept)+len(t.freed)+len(t.revoked) == 0 && !t.owners && !t.labels && !t.adopt && !t.leftover
}

// plan says what is to be done with a part as it was seen, and notes when to look again.
func (p *pass) plan(ctx context.Context, rec handoff.Record, m metav1.Object) todo {
	t := todo{values: map[string]step{}}
	if !isNil(m) {
		t.leftover = m.GetDeletionTimestamp() != nil
		t.adopt = rec.UID != p.user.GetUID()
		t.owners = !p.owned(ctx, m) || rec.Cleans() != p.bears(m)
		t.labels = !handoff.Labelled(m, p.labels())
	}
	held := p.user.holds(rec)
	wanted := map[string]bool{}
	for _, ref := range p.user.generators {
		g, err := p.generator(ctx, ref)
		if g == nil && err == nil {
			continue // An operator of another class serves it.
		}
		id := handoff.ID(ref)
		wanted[id] = true
		if err != nil {
			p.fault(ref, err) // It is looked at again when the generator comes.
		} else if s, ok := p.step(ctx, ref, g, rec, held); ok {
			t.values[id] = s
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rec.Entries)) {
		switch e := rec.Entries[id]; {
		case !wanted[id] && p.user.settled && !p.user.named[e.Version]:
			t.dropped = append(t.dropped, id)
		case wanted[id] && e.Previous != "" && !p.keepsPrevious(ctx, e.Generator):
			t.unkept = append(t.unkept, id)
		}
	}
	t.freed, t.revoked = p.retired(rec, held)
	return t
}

// retired returns the credentials that nobody holds any more, and those that are to be revoked now.
func (p *pass) retired(rec handoff.Record, held bool) (freed, revoked []handoff.Retired) {
	for _, c := range rec.Retired {
		switch {
		case expired(c.Expires, p.now), !c.Release.IsZero() && p.due(c.Release):
			revoked = append(revoked, c)
		case c.Release.IsZero() && held && !p.user.named[c.Version] && !rec.Kept(c):
			freed = append(freed, c)
		}
	}
	return freed, revoked
}

// maxRetired is how many credentials of an object may wait for their revocation: each is kept in an annotation.
const maxRetired = 20

// due reports whether a time has come, and has the object looked at when it does.
func (p *pass) due(at time.Time) bool {
	if wait := at.Sub(p.now); wait > 0 {
		p.again(wait)
		return false
	}
	return true
}

func expired(at, now time.Time) bool { return !at.IsZero() && now.After(at) }

// step says what is to be done with the values of one generator; false for nothing.
func (p *pass) step(ctx context.Context, ref v1alpha1.StoreRef, g provider.GeneratorObject, rec handoff.Record, held bool) (step, bool) {
	id := handoff.ID(ref)
	in := handoff.Input{
		Now: p.now, Suspended: p.user.suspended, Fixed: p.user.fixed, Rotates: p.user.rotates,
		Held: held, Request: p.user.facts.request, Spread: spread(p.user.GetUID(), id),
	}
	if e, ok := rec.Entries[id]; ok {
		in.Entry = &e
	}
	var err error
	if in.Spec, err = handoff.SpecHash(g); err == nil {
		in.Interval, err = g.GeneratorSpec().RotationInterval.Or(0)
	}
	if err != nil {
		p.fault(ref, provider.NewError(provider.Invalid, "spec.rotationInterval: %s", err))
		return step{}, false
	}
	action, why, next := handoff.Decide(in)
	if action == handoff.Nothing {
		p.obj.succeed(id)
		if !next.IsZero() {
			p.due(next)
		}
		return step{}, false
	}
	if err := p.refused(ctx, g); err != nil {
		p.fault(ref, err)
		return step{}, false
	}
	if n := len(rec.Retired); action == handoff.Make && n >= maxRetired {
		p.fault(ref, provider.NewError(provider.Conflict, "%d credentials that were replaced have yet to be revoked, so no other is made; see that the object is in step", n))
		return step{}, false
	}
	if wait := p.obj.wait(id, in.Spec, in.Request, p.now); wait > 0 {
		p.fault(ref, p.obj.failed(id))
		p.again(wait)
		return step{}, false
	}
	return step{ref: ref, action: action, why: why, spec: in.Spec}, true
}

// fault notes why the values of a generator are not as they should be.
func (p *pass) fault(ref v1alpha1.StoreRef, err error) {
	if err != nil && p.failure.Message == "" {
		safe := provider.Safe(err)
		p.failure = *provider.NewError(safe.Class, "%s %q: %s", ref.Kind, ref.Name, safe.Message)
	}
}

// soon has the object looked at again since the world has moved on, later each time: the event that is missing
// brings it back at once.
func (p *pass) soon() {
	p.again(firstMiss << min(p.obj.misses, 8))
	p.obj.misses++
}

// again has the object looked at after a time, or earlier.
func (p *pass) again(wait time.Duration) {
	if p.wait == 0 || wait < p.wait {
		p.wait = wait
	}
}

// spread returns a number in [0, 1) that is always the same for the values of one generator.
func spread(uid types.UID, id string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(uid) + id))
	return float64(h.Sum32()) / (1 << 32)
}

// owned reports whether a part belongs to the object, and to the Secret that was made from it. Secrets that were
// made from it before may own it, too: they may hold its values still. The collector takes out what is gone.
func (p *pass) owned(ctx context.Context, m metav1.Object) bool {
	has := func(uid types.UID) bool {
		return slices.ContainsFunc(m.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == uid })
	}
	if !has(p.user.GetUID()) {
		return false
	}
	if uid, known := p.targetUID(ctx); known || p.user.target == "" {
		return !known || has(uid)
	}
	// Another module writes it, and so this cache has none of it. The collector takes out one that is gone; that it
	// is there again comes as no event.
	p.again(holdInterval)
	return slices.ContainsFunc(m.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == secretKind && o.Name == p.user.target
	})
}

// targetUID returns the uid of the Secret that the object has made, as the cache shows it.
func (p *pass) targetUID(ctx context.Context) (types.UID, bool) {
	if p.user.target == "" {
		return "", false
	}
	m := resolve.SecretMetadata()
	err := p.cache.Get(ctx, types.NamespacedName{Namespace: p.req.Namespace, Name: p.user.target}, m)
	return m.UID, err == nil && m.DeletionTimestamp == nil
}

// labels are those by which this module and the one that claims the object follow the part.
func (p *pass) labels() []string {
	var reconcile []presence.Member
	if es, ok := p.user.Object.(*v1alpha1.ExternalSecret); ok {
		reconcile = p.opts.Board.Serving(es.LeadingStore(), es.Namespace)
	}
	return handoff.Labels(p.opts.Module, reconcile)
}

// ownerOf is the reference to the object.
func (p *pass) ownerOf() metav1.OwnerReference {
	yes, no := true, false
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: p.req.kind, Name: p.user.GetName(), UID: p.user.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &no,
	}
}

// targetOwner is the reference to the Secret that was made from the part; nil if there is none.
func (p *pass) targetOwner(ctx context.Context) (*metav1.OwnerReference, error) {
	if p.user.target == "" {
		return nil, nil
	}
	m := resolve.SecretMetadata()
	err := p.client.Get(ctx, types.NamespacedName{Namespace: p.req.Namespace, Name: p.user.target}, m)
	if kerrors.IsNotFound(err) || err == nil && m.DeletionTimestamp != nil {
		return nil, nil
	}
	no := false
	return &metav1.OwnerReference{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: secretKind, Name: m.Name, UID: m.UID, BlockOwnerDeletion: &no,
	}, errors.Wrap(err, "cannot read the Secret that the part belongs to")
}

func isNil(m metav1.Object) bool {
	switch m := m.(type) {
	case *metav1.PartialObjectMetadata:
		return m == nil
	case *corev1.Secret:
		return m == nil
	}
	return m == nil
}
