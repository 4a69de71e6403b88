package externalsecret

import (
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// routes knows which stores an ExternalSecret refers to.
type routes struct {
	*resolve.Resolver
	// module is the API group of the module, class that of its operator.
	module, class string
}

func newRoutes(reader client.Reader, scheme *runtime.Scheme, kinds []provider.Kind, module, class string, namespaced bool) (*routes, error) {
	r, err := resolve.NewResolver(reader, scheme, kinds, class, namespaced)
	return &routes{r, module, class}, err
}

// claims reports whether this module is the one that reconciles an object.
func (r *routes) claims(es *v1alpha1.ExternalSecret) bool {
	_, ok := r.Serves(es.LeadingStore())
	return ok
}

// storeKeys returns the index values of an object: one for each store that it refers to.
func (r *routes) storeKeys(es *v1alpha1.ExternalSecret) []string {
	seen := map[string]bool{}
	r.eachStore(es, func(k resolve.Route, ref *v1alpha1.StoreRef, _ bool) {
		seen[k.IndexKey(k.Key(ref.Name, es.Namespace))] = true
	})
	keys := make([]string, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	return keys
}

// usesCluster reports whether an object refers to a store of a cluster Kind.
func (r *routes) usesCluster(es *v1alpha1.ExternalSecret) (uses bool) {
	r.eachStore(es, func(k resolve.Route, _ *v1alpha1.StoreRef, _ bool) { uses = uses || k.Cluster })
	return uses
}

// eachStore calls f for every reference to a store that this module serves, and says whether it stands where a
// generator is named.
func (r *routes) eachStore(es *v1alpha1.ExternalSecret, f func(k resolve.Route, ref *v1alpha1.StoreRef, generator bool)) {
	add := func(ref *v1alpha1.StoreRef, generator bool) {
		if k, ok := r.Serves(ref); ok {
			f(k, ref, generator)
		}
	}
	add(es.Spec.StoreRef, false)
	for _, d := range es.Spec.Data {
		if d.SourceRef != nil {
			add(&d.SourceRef.StoreRef, false)
		}
	}
	for _, d := range es.Spec.DataFrom {
		if d.SourceRef != nil {
			add(d.SourceRef.StoreRef, false)
			add(d.SourceRef.GeneratorRef, true)
		}
	}
}

// concerns reports whether this module has anything to do with an object: it claims it, reads or generates for
// it, or did.
func (r *routes) concerns(es *v1alpha1.ExternalSecret) (concerns bool) {
	r.eachStore(es, func(resolve.Route, *v1alpha1.StoreRef, bool) { concerns = true })
	return concerns || r.keepsPart(es)
}

// keepsPart reports whether this operator contributes to an object, or did.
func (r *routes) keepsPart(es *v1alpha1.ExternalSecret) bool {
	return slices.ContainsFunc(es.Status.Parts, func(s v1alpha1.PartStatus) bool {
		return handoff.Wrote(r.module, r.class, s)
	})
}

// Transform returns the transform of the informer: an object of another module keeps only what routing needs, and what
// keep copies for other controllers from the whole object to the reduced one. An informer may transform twice.
func Transform(scheme *runtime.Scheme, kinds []provider.Kind, module, class string, keep func(from, to *v1alpha1.ExternalSecret)) (func(any) (any, error), error) {
	r, err := newRoutes(nil, scheme, kinds, module, class, false)
	if err != nil {
		return nil, errors.Wrap(err, "cannot route store Kinds")
	}
	return func(obj any) (any, error) {
		es, ok := obj.(*v1alpha1.ExternalSecret)
		if !ok {
			return obj, nil
		}
		es.ManagedFields = nil
		if r.concerns(es) {
			return es, nil
		}
		small := reduced(es)
		keep(es, small)
		return small, nil
	}, nil
}

// reduced returns what routing needs of an object.
func reduced(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecret {
	small := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{
		Namespace: es.Namespace, Name: es.Name, UID: es.UID,
		ResourceVersion: es.ResourceVersion, Generation: es.Generation,
		CreationTimestamp: es.CreationTimestamp, DeletionTimestamp: es.DeletionTimestamp,
	}}
	// What it writes, and which of two objects is the older, matters to those that share the Secret.
	small.Spec.Target.Name, small.Spec.Target.CreationPolicy = es.Spec.Target.Name, es.Spec.Target.CreationPolicy
	if ref := es.LeadingStore(); ref != nil {
		small.Spec.StoreRef = ref.DeepCopy()
	}
	return small
}
