package pushsecret

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// partVersions reads the versions of the parts that the status records.
func (p *pass) partVersions(ctx context.Context, refs map[watch.ObjectRef]version) error {
	for _, s := range p.ps.Status.Parts {
		if s.Name == "" {
			continue
		}
		ref, m := watch.SecretRef(p.ps.Namespace, s.Name), resolve.SecretMetadata()
		if err := p.client.Get(ctx, ref.NamespacedName, m); client.IgnoreNotFound(err) != nil {
			return errors.Wrap(err, "cannot read a part")
		}
		v := version{known: m.ResourceVersion}
		if rec, ok := handoff.Of(m.Annotations); ok && m.UID == s.UID && p.current(rec) {
			v.pushed = rec.Entries[handoff.ID(*p.ps.Spec.Selector.GeneratorRef)].Version
		}
		refs[ref] = v
	}
	return nil
}

// current reports whether a part has what the object wants of its generator now.
// Under IfNotExists it keeps its values, whatever is asked for.
func (p *pass) current(rec handoff.Record) bool {
	request := p.ps.Annotations[v1alpha1.RefreshRequestAnnotation]
	if p.ps.Spec.UpdatePolicy == v1alpha1.UpdateIfNotExists {
		request = ""
	}
	return rec.Serves(p.ps.UID, *p.ps.Spec.Selector.GeneratorRef, request)
}

// newborn is how long a wish may be new before it counts as a failure that nothing was made for it.
const newborn = 30 * time.Second

// errNotMade says that a generator has yet to make values that were wished for lately.
var errNotMade = provider.NewError(provider.Unavailable, "nothing was generated yet")

// generatedSecret returns what a generator has made for the object, in the form of a Secret of its name.
func (p *pass) generatedSecret(ctx context.Context, refs map[watch.ObjectRef]version) (corev1.Secret, error) {
	generator := *p.ps.Spec.Selector.GeneratorRef
	missing := errNotMade
	if p.now.Sub(p.wished()) > newborn {
		missing = provider.NewError(provider.Unavailable, "%s %q has made no values yet; does its module run?", generator.Kind, generator.Name)
	}
	for _, s := range p.ps.Status.Parts {
		if s.Message != "" {
			missing = &provider.Error{Class: provider.Class(s.ErrorClass), Message: s.Message}
		}
		if s.Name == "" {
			continue
		}
		ref, live := watch.SecretRef(p.ps.Namespace, s.Name), &corev1.Secret{}
		if err := p.client.Get(ctx, ref.NamespacedName, live); client.IgnoreNotFound(err) != nil {
			return corev1.Secret{}, errors.Wrap(err, "cannot read a part")
		}
		rec, ok := handoff.Of(live.Annotations)
		if !ok || live.UID != s.UID || !p.current(rec) {
			continue
		}
		a, ok := handoff.Answer(live, generator)
		if !ok {
			continue
		}
		refs[ref] = version{live.ResourceVersion, a.Value.Version}
		out := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.ps.Namespace, Name: p.ps.Name}, Data: map[string][]byte{}}
		for _, v := range a.Found {
			out.Data[v.Key] = v.Data
		}
		return out, nil
	}
	return corev1.Secret{}, missing
}

// wished is when this process has first seen what the object asks for.
func (p *pass) wished() time.Time {
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	w := wish{p.ps.Generation, p.ps.Annotations[v1alpha1.RefreshRequestAnnotation]}
	if p.obj.wish != w {
		p.obj.wish, p.obj.wished = w, p.now
	}
	return p.obj.wished
}

// generatedVersion is that of the values that are pushed, by what was read; empty if they are none of a
// generator.
func (p *pass) generatedVersion(refs map[watch.ObjectRef]version) string {
	for _, s := range p.ps.Status.Parts {
		if v := refs[watch.SecretRef(p.ps.Namespace, s.Name)]; p.ps.Spec.Selector.GeneratorRef != nil && v.pushed != "" {
			return v.pushed
		}
	}
	return ""
}
