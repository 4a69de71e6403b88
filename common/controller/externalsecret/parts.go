package externalsecret

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/controller/routing"
	"github.com/direct-secrets/direct-secrets/common/part"
	"github.com/direct-secrets/direct-secrets/common/render"
	"github.com/direct-secrets/direct-secrets/common/store"
)

// generated is what a pass knows of the values that generators made for its object.
type generated struct {
	// versions are those of the values, in the order of the plan's generators; empty for what is not there.
	versions []string
	// ready is true if all values are there.
	ready bool
	// problem says why values are missing or could not be replaced; empty if nothing is wrong.
	problem string
}

// regard looks at the parts that the status records, as the cache shows them. A Secret that the status does
// not record is no part of the object.
func (p *pass) regard() error {
	p.generated = generated{ready: true}
	refs := p.plan.Generators()
	if len(refs) == 0 {
		return nil
	}
	var records []part.Record
	for _, s := range p.es.Status.Parts {
		if s.Message != "" && p.generated.problem == "" {
			p.generated.problem = s.Message
		}
		m := routing.SecretMetadata()
		err := p.cache.Get(p.ctx, types.NamespacedName{Namespace: p.es.Namespace, Name: s.Name}, m)
		switch rec, ok := part.Of(m.Annotations); {
		case kerrors.IsNotFound(err):
		case err != nil:
			return errors.Wrap(err, "cannot read a part")
		case ok && m.UID == s.UID && m.DeletionTimestamp == nil:
			records = append(records, rec)
		}
	}
	for _, ref := range refs {
		version := ""
		for _, rec := range records {
			if p.serves(rec, ref) {
				version = rec.Entries[part.ID(ref)].Version
			}
		}
		p.generated.ready = p.generated.ready && version != ""
		p.generated.versions = append(p.generated.versions, version)
	}
	return nil
}

// serves reports whether a part has what the object wants of a generator now. What is immutable keeps its values,
// whatever is asked for.
func (p *pass) serves(rec part.Record, ref v1alpha1.StoreRef) bool {
	request := p.es.Annotations[v1alpha1.RefreshRequestAnnotation]
	if p.es.Spec.Target.Immutable {
		request = ""
	}
	return rec.Serves(p.es.UID, ref, request)
}

// pending is what there is to say while generated values are missing; nil if there is nothing wrong.
func (g generated) pending() *verdict {
	if g.problem == "" {
		return nil
	}
	v := failed(v1alpha1.ReasonSecretSyncedError, g.problem)
	return &v
}

// withParts adds the values of generators to those of stores, by live reads of the parts. It is false if
// they are not what the cache shows.
func (p *pass) withParts(ctx context.Context, values render.Values) (render.Values, bool, error) {
	refs := p.plan.Generators()
	if len(refs) == 0 {
		return values, true, nil
	}
	found := map[v1alpha1.StoreRef]store.Answer{}
	for _, s := range p.es.Status.Parts {
		if s.Name == "" {
			continue
		}
		live := &corev1.Secret{}
		err := p.client.Get(ctx, types.NamespacedName{Namespace: p.es.Namespace, Name: s.Name}, live)
		if err != nil && !kerrors.IsNotFound(err) {
			return nil, false, errors.Wrap(err, "cannot read a part")
		}
		rec, ok := part.Of(live.Annotations)
		if !ok || live.UID != s.UID {
			continue
		}
		for _, ref := range refs {
			if a, ok := part.Answer(live, ref); ok && p.serves(rec, ref) {
				found[ref] = a
			}
		}
	}
	for i, ref := range refs {
		a, ok := found[ref]
		if !ok {
			return nil, false, nil
		}
		p.generated.versions[i] = a.Value.Version // What the status says was read is what was read.
	}
	return func(s render.Source) store.Answer {
		if s.Generator {
			return found[s.Store]
		}
		return values(s)
	}, true, nil
}

// partEvent brings an object back whose part has changed.
func (r *Reconciler) partEvent(o client.Object) (types.NamespacedName, bool) {
	rec, ok := part.Of(o.GetAnnotations())
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}, ok && rec.Kind == "ExternalSecret"
}

// misused says that a reference names a Kind of the wrong sort; empty if it does not.
func misused(k store.Kind, ref v1alpha1.StoreRef, generator bool) string {
	switch {
	case k.Generator && !generator:
		return fmt.Sprintf("storeRef: %s %q is a generator; name it in dataFrom[].sourceRef.generatorRef", ref.Kind, ref.Name)
	case generator && !k.Generator:
		return fmt.Sprintf("generatorRef: %s %q is a store; name it in storeRef", ref.Kind, ref.Name)
	}
	return ""
}
