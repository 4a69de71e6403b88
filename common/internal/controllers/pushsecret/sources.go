package pushsecret

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/templatesource"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// owner owns the watches of one PushSecret.
type owner types.NamespacedName

// versions are those of all that is pushed: the Secrets, and what holds templates.
type versions struct {
	generation int64
	// told is how many changes had been shown when they were read.
	told int
	refs map[watch.ObjectRef]version
	// at is the resourceVersion of a list of Secrets.
	at   string
	hash string
}

// version is what is known of a source: its resourceVersion, and what stands for what is pushed of it. Only
// of a part, which changes without its values, are the two not the same.
type version struct{ known, pushed string }

func plain(v string) version { return version{v, v} }

func hashOf(refs map[watch.ObjectRef]version) string {
	flat := make(map[string]string, len(refs))
	for ref, v := range refs {
		flat[ref.Resource.Resource+"/"+ref.Name+"/"+ref.Selector] = v.pushed
	}
	return watch.VersionOf(flat)
}

// selector returns the labels of the Secrets that are pushed; nil where one is named.
func (p *pass) selector() (labels.Selector, error) {
	s := p.ps.Spec.Selector.Secret
	if s == nil || s.Selector == nil {
		return nil, nil
	}
	return metav1.LabelSelectorAsSelector(s.Selector)
}

// They are listed where labels choose what is pushed.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list

// versions returns what is known of the versions of what is pushed, and watches it. It reads metadata
// only, and only what has changed since.
func (p *pass) versions(ctx context.Context) (*versions, error) {
	p.obj.mu.Lock()
	seen, told := p.obj.seen, p.obj.told
	p.obj.mu.Unlock()
	if seen != nil && seen.told == told && seen.generation == p.ps.Generation {
		return seen, nil
	}
	next := &versions{generation: p.ps.Generation, told: told, refs: map[watch.ObjectRef]version{}}
	sel, err := p.selector()
	if err != nil {
		return nil, errors.Wrap(err, "spec.selector.secret.selector")
	}
	switch {
	case p.ps.Spec.Selector.GeneratorRef != nil:
		err = p.partVersions(ctx, next.refs)
	case sel == nil:
		ref := watch.SecretRef(p.ps.Namespace, p.ps.Spec.Selector.Secret.Name)
		m := resolve.SecretMetadata()
		err = client.IgnoreNotFound(p.client.Get(ctx, ref.NamespacedName, m))
		next.refs[ref] = plain(m.ResourceVersion)
	default:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err = p.client.List(ctx, list, client.InNamespace(p.ps.Namespace), client.MatchingLabelsSelector{Selector: sel})
		found := map[string]string{}
		for _, s := range list.Items {
			found[s.Name] = s.ResourceVersion
		}
		next.refs[watch.SecretsRef(p.ps.Namespace, sel.String())], next.at = plain(watch.VersionOf(found)), list.ResourceVersion
	}
	for _, t := range p.plan.Texts {
		version, failed := templatesource.Version(ctx, p.client, p.ps.Namespace, t)
		next.refs[templatesource.WatchRef(p.ps.Namespace, t)] = plain(version)
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the versions of what is pushed")
	}
	next.hash = hashOf(next.refs)
	p.follow(seen, next)
	return next, nil
}

// follow watches what is pushed.
func (p *pass) follow(was, is *versions) {
	if was != nil && slices.ContainsFunc(slices.Collect(maps.Keys(was.refs)), func(r watch.ObjectRef) bool { _, ok := is.refs[r]; return !ok }) {
		p.watches.Remove(owner(p.key)) // Something is named no more.
	}
	p.obj.mu.Lock()
	p.obj.seen = is
	p.obj.mu.Unlock()
	obj, key := p.obj, p.key
	for ref, version := range is.refs {
		at := version.known
		if ref.Name == "" {
			at = is.at
		}
		p.watches.AddAt(ref, owner(p.key), version.known, at, func() {
			obj.stale()
			p.enqueue(key, queue.High)
		})
	}
}

// read returns the Secrets as they are pushed, after the template, and the versions of what was read. An
// error of package store is for a person to mend.
func (p *pass) read(ctx context.Context, seen *versions) ([]pushed, map[watch.ObjectRef]version, error) {
	refs := maps.Clone(seen.refs)
	secrets, err := p.secrets(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	templates := render.Texts{}
	for _, t := range p.plan.Texts {
		all, version, err := templatesource.Read(ctx, p.client, p.ps.Namespace, t)
		if err != nil {
			return nil, nil, err
		}
		if refs[templatesource.WatchRef(p.ps.Namespace, t)] = plain(version); version != "" {
			templates[t] = all
		}
	}
	var out []pushed
	for _, s := range secrets {
		data, err := render.ShapeData(p.ps.Spec.Template, s.Data, templates)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, pushed{push.Source{Namespace: s.Namespace, Name: s.Name, Data: data}, s.Labels})
	}
	return out, refs, nil
}

// pushed is a Secret that is pushed.
type pushed struct {
	push.Source
	labels map[string]string
}

func (p *pass) secrets(ctx context.Context, refs map[watch.ObjectRef]version) ([]corev1.Secret, error) {
	if p.ps.Spec.Selector.GeneratorRef != nil {
		s, err := p.generatedSecret(ctx, refs)
		return []corev1.Secret{s}, err
	}
	sel, err := p.selector()
	if err != nil {
		return nil, errors.Wrap(err, "spec.selector.secret.selector")
	}
	if sel == nil {
		ref := watch.SecretRef(p.ps.Namespace, p.ps.Spec.Selector.Secret.Name)
		s := corev1.Secret{}
		err := p.client.Get(ctx, ref.NamespacedName, &s)
		if kerrors.IsNotFound(err) {
			return nil, provider.NewError(provider.NotFound, "Secret %q does not exist; create it or correct spec.selector.secret.name", ref.Name)
		}
		refs[ref] = plain(s.ResourceVersion)
		return []corev1.Secret{s}, errors.Wrapf(err, "cannot read Secret %q", ref.Name)
	}
	list := &corev1.SecretList{}
	if err := p.client.List(ctx, list, client.InNamespace(p.ps.Namespace), client.MatchingLabelsSelector{Selector: sel}); err != nil {
		return nil, errors.Wrap(err, "cannot list Secrets")
	}
	found := map[string]string{}
	for _, s := range list.Items {
		found[s.Name] = s.ResourceVersion
	}
	refs[watch.SecretsRef(p.ps.Namespace, sel.String())] = plain(watch.VersionOf(found))
	if len(list.Items) == 0 {
		return nil, provider.NewError(provider.NotFound, "no Secret carries the labels of spec.selector.secret.selector; label one or correct the selector")
	}
	return list.Items, nil
}
