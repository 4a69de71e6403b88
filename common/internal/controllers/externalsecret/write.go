package externalsecret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// errMoved means that the world is not as it was when the pass began; look again.
var errMoved = errors.New("the objects have changed meanwhile")

// maxTries is how often a write is decided anew, with the same answer of the provider, when somebody
// else has written in between.
const maxTries = 5

// awaitError means that somebody else must change the target first.
type awaitError struct {
	verdict verdict
	// version is the resourceVersion of the target that was seen, empty if there was none.
	version string
}

// Error implements error.
func (e *awaitError) Error() string { return e.verdict.Message }

// answer is what the provider said.
type answer struct {
	// read is what the entries of the spec yield, err why they do not.
	read render.Output
	err  error
	// inputs is a hash of what the template would make the values from; empty if there is none.
	inputs string
	// shape makes the values, once.
	shape func() (render.Output, error)
	// at is when it was asked.
	at time.Time
}

// shaped returns the values for the Secret.
func (a *answer) shaped() (render.Output, error) {
	if a.err != nil {
		return render.Output{}, a.err
	}
	var out render.Output
	out, a.err = a.shape()
	return out, a.err
}

// effect is what a pass found or did.
type effect struct {
	// kept is true if the answer forbids any change.
	kept bool
	// absent is true if the Secret shall not be there.
	absent bool
	// yielded are the keys that other ExternalSecrets hold; yieldsAll is true if there are no others.
	yielded   []string
	yieldsAll bool
	// version is the Secret's resourceVersion.
	version string
}

// cached returns the metadata of the target, from the cache or as it was just written; nil if there
// is none.
func (p *pass) cached(ctx context.Context) (metav1.Object, error) {
	m := resolve.SecretMetadata()
	err := p.obj.whileLocked(func() error {
		err := p.cache.Get(ctx, p.targetKey(), m)
		if kerrors.IsNotFound(err) {
			m, err = nil, nil
		}
		m = p.obj.latestSecretLocked(m, p.plan.Target)
		return err
	})
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the Secret")
	}
	if m == nil {
		return nil, nil
	}
	return m, nil
}

// peek reads the metadata of the target live; nil if there is none.
func (p *pass) peek(ctx context.Context) (metav1.Object, error) {
	m := resolve.SecretMetadata()
	err := p.client.Get(ctx, p.targetKey(), m)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return m, errors.Wrap(err, "cannot read the Secret")
}

func (p *pass) self(due policy.Why) policy.Self {
	t := p.es.Spec.Target
	return policy.Self{
		UID: p.es.UID, Generation: p.es.Generation,
		Creation: t.CreationPolicy, Deletion: t.DeletionPolicy,
		Owns: p.owns(), Immutable: t.Immutable,
		Absent: p.reason() == v1alpha1.ReasonSecretDeleted && policy.OnGone(t.DeletionPolicy, true, 0) == policy.DropSecret,
		Yields: p.yields && p.obj.yieldsAll,
		Due:    due,
	}
}

func (p *pass) observe(ctx context.Context, secret metav1.Object) policy.Target {
	c := p.es.Spec.Target.CreationPolicy
	t := target.Observe(ctx, secret, target.Identity{
		Name: p.es.Name, UID: p.es.UID, Module: p.opts.Module, Exclusive: c == "" || c == v1alpha1.CreateOwner,
	}, p.census)
	if t.Mark.Created {
		p.obj.created = secret.GetUID()
	}
	return t
}

// judge decides what an answer means for a Secret, and returns what is to be written to it, and the
// keys left out because other ExternalSecrets hold them.
func (p *pass) judge(ctx context.Context, secret metav1.Object, a *answer) (policy.Decision, target.Desired, []string) {
	t := p.observe(ctx, secret)
	if held, ok := p.made(ctx, secret, t, a); ok {
		d := p.desired(render.Output{})
		d.Data = held.Data
		return policy.Decide(p.self(policy.NotDue), t, &policy.Reading{
			Gone: a.read.Gone != nil, Values: a.read.Values, Keys: a.read.Values,
			Hash: t.Mark.Hash, Fields: t.Mark.Fields, Same: true,
		}), d, t.Mark.Yields
	}
	out, err := a.shaped()
	d := p.desired(out)
	d.Mark.Inputs = a.inputs
	d.Seal()
	var yielded []string
	if secret != nil && p.es.Spec.Target.CreationPolicy != v1alpha1.CreateNone {
		d, yielded = d.Yield(secret.GetManagedFields(), p.census.contest(ctx, secret))
	}
	return policy.Decide(p.self(policy.NotDue), t, &policy.Reading{
		Failed: err != nil, Gone: a.read.Gone != nil,
		Values: a.read.Values, Keys: len(d.Data),
		Hash: d.Mark.Hash, Fields: d.Mark.Fields,
	}), d, yielded
}

// made reports whether what a Secret holds was made from the same inputs, and returns what of it is ours.
// Then nothing is made again: what has a salt or is random would differ each time. What other
// ExternalSecrets hold must be the same, too.
func (p *pass) made(ctx context.Context, secret metav1.Object, t policy.Target, a *answer) (target.Desired, bool) {
	if a.err != nil || a.inputs == "" || t.Mark.UID != p.es.UID || t.Mark.Inputs != a.inputs || !t.Intact {
		return target.Desired{}, false
	}
	held, yielded := target.Held(secret.GetManagedFields(), t.Mark).Yield(secret.GetManagedFields(), p.census.contest(ctx, secret))
	return held, slices.Equal(yielded, t.Mark.Yields)
}

// act carries out what an answer means for the target. What the cache says decides whether anything
// is to be done; what is done rests on a live read, but for a create, which cannot overwrite.
func (p *pass) act(ctx context.Context, a *answer) (effect, error) {
	secret, err := p.cached(ctx)
	if err != nil {
		return effect{}, err
	}
	decision, d, yielded := p.judge(ctx, secret, a)
	// That the cache has none is no proof that there is none.
	proven := secret != nil || !decision.Absent
	switch {
	case decision.Action == policy.Nothing && proven, decision.Action == policy.Keep:
		return p.effect(decision, secret, d, yielded), nil
	case decision.Action == policy.Create:
		if err := p.create(ctx, decision, d); !kerrors.IsAlreadyExists(err) {
			return effect{}, err
		}
	}
	for try := 1; ; try++ {
		e, err := p.actLive(ctx, a)
		if !kerrors.IsConflict(err) || try == maxTries {
			return e, err
		}
	}
}

// actLive is act by a live read.
func (p *pass) actLive(ctx context.Context, a *answer) (effect, error) {
	live, err := p.writer.Get(ctx, p.targetKey())
	if err != nil {
		return effect{}, err
	}
	var secret metav1.Object // Not a nil pointer in an interface.
	if live != nil {
		secret = live
	}
	decision, d, yielded := p.judge(ctx, secret, a)
	switch decision.Action {
	case policy.Nothing, policy.Keep:
		if live != nil && decision.Action == policy.Nothing {
			p.remember(live)
		}
	case policy.Create:
		err = p.create(ctx, decision, d)
	case policy.Apply, policy.Own, policy.Delete:
		err = p.change(ctx, decision, live, d)
	case policy.Read, policy.Release:
		err = errMoved
	case policy.Yield, policy.Missing, policy.Wait, policy.Refuse:
		err = p.stop(decision, secret)
	}
	return p.effect(decision, secret, d, yielded), err
}

func (p *pass) effect(decision policy.Decision, secret metav1.Object, d target.Desired, yielded []string) effect {
	e := effect{kept: decision.Action == policy.Keep, absent: decision.Absent, yielded: yielded, yieldsAll: len(d.Data) == 0}
	if secret != nil {
		e.version = secret.GetResourceVersion()
	}
	return e
}

// stop returns the error of a decision that writes nothing; nil for any other.
func (p *pass) stop(d policy.Decision, secret metav1.Object) error {
	version := ""
	if secret != nil {
		version = secret.GetResourceVersion()
	}
	switch d.Action { //nolint:exhaustive // The others go on.
	case policy.Yield:
		return &awaitError{status.Stalled(v1alpha1.ReasonConflict, d.Message), version}
	case policy.Missing:
		return &awaitError{status.Failed(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %q: %s", p.plan.Target, d.Message)), version}
	case policy.Refuse:
		v := status.Stalled(v1alpha1.ReasonSecretSyncedError, d.Message)
		v.Class = provider.Invalid
		return &awaitError{v, version}
	case policy.Wait:
		return &awaitError{status.Failed(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %q: %s; it comes back when its finalizers are gone", p.plan.Target, d.Message)), version}
	}
	return nil
}

// write brings the target to what was read.
func (p *pass) write(ctx context.Context, a *answer) (reconcile.Result, error) {
	e, err := p.act(ctx, a)
	if err == nil && !e.kept {
		err = p.leave(ctx)
	}
	switch {
	case err != nil:
		return p.failure(ctx, err)
	case e.kept && a.err != nil:
		if provider.ClassOf(a.err) == provider.Denied {
			p.suspect()
		}
		return p.retry(ctx, syncFailed(a.err), provider.RetryAfter(a.err))
	case e.kept:
		return p.retry(ctx, syncFailed(a.read.Gone), 0)
	}
	return p.succeed(ctx, a, e)
}

// suspect has the stores of the plan validated, since one of them has refused a read.
func (p *pass) suspect() {
	for _, ref := range p.plan.Stores() {
		if k, ok := p.routes.Serves(&ref); ok && !p.foreign[ref] {
			p.opts.Suspect(k.Kind, k.Key(ref.Name, p.es.Namespace))
		}
	}
}

// failure turns an error of a write into a verdict, or has the loop look again.
func (p *pass) failure(ctx context.Context, err error) (reconcile.Result, error) {
	var await *awaitError
	var forbidden *target.ForbiddenError
	var invalid *target.InvalidError
	var read *provider.Error
	switch {
	case errors.Is(err, target.ErrNamespaceTerminating):
		return reconcile.Result{}, nil
	case errors.Is(err, errMoved), kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		return p.again(), nil
	case errors.As(err, &await):
		return p.await(ctx, await.verdict, await.version)
	case errors.As(err, &forbidden):
		return p.retry(ctx, status.Failed(v1alpha1.ReasonForbidden, forbidden.Message), 0)
	case errors.As(err, &invalid):
		return p.retry(ctx, syncFailed(provider.NewError(provider.Invalid, "%s", invalid.Message)), 0)
	case errors.As(err, &read):
		return p.retry(ctx, syncFailed(read), 0)
	}
	return reconcile.Result{}, errors.Wrap(err, "cannot write the Secret")
}

// own brings the ownerReference and the mark of the target in line. It needs no value, and so does
// not wait for the provider.
func (p *pass) own(ctx context.Context) error {
	live, err := p.writer.Get(ctx, p.targetKey())
	if err != nil {
		return err
	}
	if live == nil {
		return errMoved
	}
	decision := policy.Decide(p.self(policy.NotDue), p.observe(ctx, live), nil)
	if decision.Action != policy.Own {
		p.remember(live) // The cache is behind.
		return nil
	}
	return p.change(ctx, decision, live, p.desired(render.Output{}))
}

func (p *pass) create(ctx context.Context, decision policy.Decision, d target.Desired) error {
	if err := p.fence(ctx, decision); err != nil {
		return err
	}
	s, err := p.writer.Create(ctx, d)
	if err != nil {
		return err
	}
	p.obj.created = s.UID
	p.wrote(s, "Created")
	return nil
}

// change carries out a decision about a Secret that was read live.
func (p *pass) change(ctx context.Context, decision policy.Decision, live *corev1.Secret, d target.Desired) error {
	if err := p.fence(ctx, decision); err != nil {
		return err
	}
	var s *corev1.Secret
	var err error
	d.Mark.Created = p.obj.created == live.UID // Also where somebody has removed the mark.
	switch decision.Action {                   //nolint:exhaustive // The others do not change a Secret.
	case policy.Apply:
		s, _, err = p.writer.Apply(ctx, live, d, p.census.contest(ctx, live))
	case policy.Own:
		s, err = p.writer.Own(ctx, live, d, p.census.contest(ctx, live))
	case policy.Release:
		return p.writer.Release(ctx, live, d)
	case policy.Delete:
		if err = p.writer.Delete(ctx, live); err == nil {
			p.tell("Deleted", live.Name)
		}
		return err
	}
	if err != nil {
		return err
	}
	if live.Name != p.plan.Target {
		return nil
	}
	p.wrote(s, "Updated")
	return nil
}

// wrote notes a write of the target.
func (p *pass) wrote(s *corev1.Secret, what string) {
	p.remember(s)
	p.written = true
	if p.lost {
		p.obj.fight = p.obj.fight.Revert(p.opts.Now())
	}
	if p.seen.RefreshTime != nil {
		p.tell(what, s.Name)
	}
}

func (p *pass) tell(what, secret string) {
	p.events.Eventf(p.es, nil, corev1.EventTypeNormal, what, "Sync", "%s Secret %q", strings.ToLower(what), secret)
}

// leave lets go of the Secrets that the object wrote before its spec named the present one. Those
// that it owns would go with it, and so they go now that the new one is in step; the others stay.
func (p *pass) leave(ctx context.Context) error {
	names, err := p.former(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		live, err := p.writer.Get(ctx, types.NamespacedName{Namespace: p.es.Namespace, Name: name})
		if err != nil {
			return err
		}
		if live == nil {
			continue
		}
		decision := policy.Leave(p.self(policy.NotDue), p.observe(ctx, live))
		if decision.Action == policy.Nothing {
			continue
		}
		d := p.desired(render.Output{})
		d.Name = name
		d.Owner = nil
		if err := p.change(ctx, decision, live, d); err != nil {
			return err
		}
	}
	return nil
}

// former returns the names of the Secrets, other than the target, that the object may still own.
func (p *pass) former(ctx context.Context) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.cache.List(ctx, list, client.InNamespace(p.es.Namespace), client.MatchingFields{markIndex: p.es.Name}); err != nil {
		return nil, errors.Wrap(err, "cannot list the Secrets of the object")
	}
	var names []string
	for i := range list.Items {
		s := &list.Items[i]
		if c := metav1.GetControllerOf(s); c != nil && c.UID == p.es.UID && s.Name != p.plan.Target {
			names = append(names, s.Name)
		}
	}
	// Another module may have written it, or somebody may have taken its label.
	if b := p.seen.Binding; b != nil && b.Name != p.plan.Target && !slices.Contains(names, b.Name) {
		names = append(names, b.Name)
	}
	return names, nil
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=get

// fence reads the ExternalSecret live, after the Secret was read, where another incarnation or a
// later generation of it may be at work. Generations only grow under one uid, so what passes here
// is not behind.
func (p *pass) fence(ctx context.Context, decision policy.Decision) error {
	if !decision.Fence {
		return nil
	}
	live := &v1alpha1.ExternalSecret{}
	err := p.client.Get(ctx, client.ObjectKeyFromObject(p.es), live)
	switch {
	case kerrors.IsNotFound(err):
		return errMoved
	case err != nil:
		return errors.Wrap(err, "cannot read the ExternalSecret")
	case live.UID != p.es.UID, live.Generation != p.es.Generation, live.DeletionTimestamp != nil:
		return errMoved
	}
	return nil
}

// remember keeps the metadata of a Secret that we wrote until the cache shows it. Of one without our
// label or mark no event would tell that it is gone again.
func (p *pass) remember(s *corev1.Secret) {
	if s.Labels[target.ManagedLabel(p.opts.Module)] != "true" || target.Marks(s.Annotations)[p.es.Name].UID == "" {
		return
	}
	m := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
	target.Reduce(m)
	p.obj.wroteSecret(m)
}

func (p *pass) targetKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.es.Namespace, Name: p.plan.Target}
}

// owns reports whether the target shall carry an ownerReference.
func (p *pass) owns() bool {
	if c := p.es.Spec.Target.CreationPolicy; c != "" && c != v1alpha1.CreateOwner {
		return false
	}
	c := p.es.Spec.Target.CleanupPolicy
	if c == "" {
		c = p.opts.DefaultCleanupPolicy
	}
	return c != v1alpha1.CleanupNever
}

// ownerReference is the reference to the object.
func (p *pass) ownerReference() metav1.OwnerReference {
	yes, no := true, false
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ExternalSecret",
		Name: p.es.Name, UID: p.es.UID, Controller: &yes, BlockOwnerDeletion: &no,
	}
}

// storeLabels are those for the stores that the object is read from.
func (p *pass) storeLabels() []string {
	var labels []string
	for _, ref := range p.plan.Stores() {
		if k, ok := p.routes.Serves(&ref); ok && !k.Generator {
			n := k.Key(ref.Name, p.es.Namespace)
			labels = append(labels, target.StoreLabel(k.GVK.Group, k.GVK.Kind, n.Namespace, n.Name))
		}
	}
	for _, l := range p.handed.labels {
		if strings.HasPrefix(l, v1alpha1.StoreLabelPrefix) && !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	return labels
}

func (p *pass) desired(out render.Output) target.Desired {
	t := p.es.Spec.Target
	d := target.Desired{
		NamespacedName: p.targetKey(),
		Immutable:      t.Immutable,
		Data:           out.Data,
		Labels:         map[string]string{},
		Annotations:    out.Annotations,
		Mark: policy.Mark{
			Name: p.es.Name, UID: p.es.UID, Generation: p.es.Generation, Module: p.opts.Module, Policy: t.CreationPolicy,
		},
	}
	maps.Copy(d.Labels, out.Labels)
	d.Labels[target.ManagedLabel(p.opts.Module)] = "true"
	switch shared := t.CreationPolicy == v1alpha1.CreateMerge || t.CreationPolicy == v1alpha1.CreateCreateOrMerge; {
	case t.Template != nil && t.Template.Type != "":
		d.Type = corev1.SecretType(t.Template.Type)
	case !shared: // What others may have made has the type that they chose.
		d.Type = corev1.SecretTypeOpaque
	}
	for _, l := range p.storeLabels() {
		d.Labels[l] = "true"
	}
	if p.owns() {
		owner := p.ownerReference()
		d.Owner = &owner
	}
	return d
}
