package externalsecret

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/policy"
	"github.com/direct-secrets/direct-secrets/common/render"
	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/target"
)

var (
	// errMoved means that the world is not as it was when the pass began; look again.
	errMoved = errors.New("the objects have changed meanwhile")
	// errWait means that the Secret must go before it can come back.
	errWait = errors.New("waiting")
	// errYield means that the target belongs to somebody else; the message is that of a decision.
	errYield = errors.New("conflict")
)

// observe decides by the cached metadata of the target; d is nil before the values were read.
func (p *pass) observe(ctx context.Context, d *target.Desired) (policy.Decision, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := p.obj.whileLocked(func() error {
		err := p.cache.Get(ctx, p.targetKey(), m)
		if kerrors.IsNotFound(err) {
			m, err = nil, nil
		}
		m = p.obj.latestSecretLocked(m, p.plan.Target)
		return err
	}); err != nil {
		return policy.Decision{}, errors.Wrap(err, "cannot read the Secret")
	}
	if m == nil {
		return p.decide(nil, d), nil
	}
	return p.decide(m, d), nil
}

func (p *pass) decide(secret metav1.Object, d *target.Desired) policy.Decision {
	self := policy.Self{UID: p.es.UID, Generation: p.es.Generation, Synced: p.seen.RefreshTime != nil, Owns: p.owns()}
	var rendered *policy.Rendered
	if d != nil {
		rendered = &policy.Rendered{Hash: d.Mark.Hash, Fields: d.Mark.Fields}
	}
	return policy.Decide(self, target.Observe(secret, p.es.Name, p.opts.Module, p.alive), rendered)
}

// write brings the target to what was rendered or, without values, only its ownerReference.
func (p *pass) write(ctx context.Context, out *render.Output) (reconcile.Result, error) {
	d := p.desired(out)
	var sealed *target.Desired
	if out != nil {
		d.Seal()
		sealed = &d
	}
	secret, err := p.act(ctx, d, sealed)
	var forbidden *target.ForbiddenError
	var invalid *store.Error
	switch {
	case err == nil:
		if secret != nil {
			p.remember(secret)
		}
		return p.succeed(ctx, out)
	case errors.Is(err, target.ErrNamespaceTerminating):
		return reconcile.Result{}, nil
	case errors.Is(err, errMoved), kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), kerrors.IsNotFound(err):
		return soon(), nil
	case errors.Is(err, errWait):
		return later(p.backoff.When(p.request())), nil
	case errors.Is(err, errYield):
		return p.retry(ctx, stalled(v1alpha1.ReasonConflict, strings.TrimSuffix(err.Error(), ": "+errYield.Error())), 0)
	case errors.As(err, &forbidden):
		return p.retry(ctx, failed(v1alpha1.ReasonForbidden, forbidden.Message), 0)
	case errors.As(err, &invalid):
		return p.retry(ctx, readFailed(invalid), 0)
	}
	return reconcile.Result{}, errors.Wrap(err, "cannot write the Secret")
}

// act carries out the decision. What the cache says decides whether anything is to be done; what is
// done rests on a live read, but for a create, which cannot overwrite.
func (p *pass) act(ctx context.Context, d target.Desired, sealed *target.Desired) (*corev1.Secret, error) {
	decision, err := p.observe(ctx, sealed)
	if err != nil {
		return nil, err
	}
	if decision.Action == policy.Nothing {
		return nil, nil
	}
	if decision.Action == policy.Create {
		s, err := p.create(ctx, decision, d)
		if !kerrors.IsAlreadyExists(err) {
			return s, err
		}
	}
	live, err := p.writer.Get(ctx, p.targetKey())
	if err != nil {
		return nil, err
	}
	if live == nil {
		decision = p.decide(nil, sealed)
	} else {
		decision = p.decide(live, sealed)
	}
	switch decision.Action {
	case policy.Nothing:
		return live, nil
	case policy.Create:
		return p.create(ctx, decision, d)
	case policy.Yield:
		return nil, errors.Wrap(errYield, decision.Message)
	case policy.Wait:
		return nil, errors.Wrap(errWait, decision.Message)
	case policy.Render:
		return nil, errMoved
	case policy.Apply, policy.Own:
	}
	if err := p.fence(ctx, decision); err != nil {
		return nil, err
	}
	if decision.Action == policy.Own {
		return p.writer.Own(ctx, live, d)
	}
	return p.apply(ctx, live, d)
}

func (p *pass) create(ctx context.Context, decision policy.Decision, d target.Desired) (*corev1.Secret, error) {
	if err := p.fence(ctx, decision); err != nil {
		return nil, err
	}
	return p.writer.Create(ctx, d)
}

func (p *pass) apply(ctx context.Context, live *corev1.Secret, d target.Desired) (*corev1.Secret, error) {
	held := p.holders(live)
	s, yielded, err := p.writer.Apply(ctx, live, d, target.Contest{
		Dead:  func(m string) bool { return held(m) == nil },
		Older: func(m string) bool { return olderThan(held(m), p.es) },
	})
	if err != nil {
		return nil, err
	}
	if len(yielded) > 0 {
		p.remember(s)
		return nil, errors.Wrap(errYield, fmt.Sprintf("the keys %q of the Secret are written by another ExternalSecret", yielded))
	}
	if p.seen.RefreshTime != nil {
		p.events.Eventf(p.es, nil, corev1.EventTypeNormal, "Updated", "Sync", "updated Secret %q", s.Name)
	}
	return s, nil
}

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

// remember keeps the metadata of a Secret that we wrote until the cache shows it.
func (p *pass) remember(s *corev1.Secret) {
	m := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
	target.Reduce(m)
	p.obj.wroteSecret(m)
}

func (p *pass) targetKey() types.NamespacedName {
	return types.NamespacedName{Namespace: p.es.Namespace, Name: p.plan.Target}
}

// owns reports whether the target shall carry an ownerReference.
func (p *pass) owns() bool {
	c := p.es.Spec.Target.CleanupPolicy
	if c == "" {
		c = p.opts.DefaultCleanupPolicy
	}
	return c != v1alpha1.CleanupNever
}

func (p *pass) desired(out *render.Output) target.Desired {
	d := target.Desired{
		NamespacedName: p.targetKey(),
		Type:           corev1.SecretTypeOpaque,
		Labels:         map[string]string{target.ManagedLabel(p.opts.Module): "true"},
		Mark:           policy.Mark{Name: p.es.Name, UID: p.es.UID, Generation: p.es.Generation, Module: p.opts.Module},
	}
	if t := p.es.Spec.Target.Template; t != nil && t.Type != "" {
		d.Type = corev1.SecretType(t.Type)
	}
	for _, ref := range p.plan.Stores() {
		if k, ok := p.routes.serves(&ref); ok {
			n := k.key(ref.Name, p.es.Namespace)
			d.Labels[target.StoreLabel(k.gvk.Group, k.gvk.Kind, n.Namespace, n.Name)] = "true"
		}
	}
	if out != nil {
		d.Data = out.Data
	}
	if p.owns() {
		yes, no := true, false
		d.Owner = &metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "ExternalSecret",
			Name: p.es.Name, UID: p.es.UID, Controller: &yes, BlockOwnerDeletion: &no,
		}
	}
	return d
}

// alive reports whether the ExternalSecret that left a mark still exists. The cache may be behind
// on one that was just made, so its absence there is checked live.
func (p *pass) alive(m policy.Mark) bool {
	es := p.lookup(m.Name)
	return es != nil && es.UID == m.UID
}

// holders returns a function from a field manager to the living ExternalSecret that it belongs to;
// nil if there is none. A manager whose name is hashed tells no name: it is found by its mark, or,
// where that was removed, among all ExternalSecrets of the namespace.
func (p *pass) holders(live *corev1.Secret) func(string) *v1alpha1.ExternalSecret {
	byManager := map[string]string{}
	for name := range target.Marks(live.Annotations) {
		byManager[target.Manager(name)] = name
	}
	return func(manager string) *v1alpha1.ExternalSecret {
		if name, ok := byManager[manager]; ok {
			return p.lookup(name)
		}
		if es := p.lookup(strings.TrimPrefix(manager, v1alpha1.FieldManagerPrefix)); es != nil {
			return es
		}
		var list v1alpha1.ExternalSecretList
		if err := p.cache.List(p.ctx, &list, client.InNamespace(p.es.Namespace)); err != nil {
			return p.es // Existence unknown is existence; itself is nobody's rival.
		}
		for i := range list.Items {
			if target.Manager(list.Items[i].Name) == manager {
				return &list.Items[i]
			}
		}
		return nil
	}
}

// lookup returns an ExternalSecret beside this one; nil if it does not exist. An error counts as
// existence unknown, which is existence: nothing is taken from what may be alive.
func (p *pass) lookup(name string) *v1alpha1.ExternalSecret {
	key := types.NamespacedName{Namespace: p.es.Namespace, Name: name}
	es := &v1alpha1.ExternalSecret{}
	if err := p.cache.Get(p.ctx, key, es); err == nil {
		return es
	}
	if err := p.client.Get(p.ctx, key, es); err != nil && kerrors.IsNotFound(err) {
		return nil
	}
	return es
}

// olderThan reports whether a was made before b; of two made in the same second that with the
// smaller uid counts as the older.
func olderThan(a, b *v1alpha1.ExternalSecret) bool {
	if a == nil || a.UID == b.UID {
		return false
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
