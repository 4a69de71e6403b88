// Package referrers finds the ExternalSecrets that refer to the stores of a module, and decides this operator's role
// for each: it claims the object, or reads for the operator that claims it.
package referrers

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// storeIndex is the cache index from a store to the objects that refer to it.
const storeIndex = "direct-secrets.io/store"

// Referrers finds the ExternalSecrets that refer to the stores of this module.
type Referrers struct {
	*resolve.Resolver
	cache client.Reader
	// module is the API group of the module, class that of its operator.
	module, class string
}

// New returns the Referrers of an operator for the Kinds of its module and for its class. A namespaced operator is
// not allowed to read cluster Kinds.
func New(cache client.Reader, scheme *runtime.Scheme, kinds []provider.Kind, module, class string, namespaced bool) (*Referrers, error) {
	r, err := resolve.NewResolver(cache, scheme, kinds, class, namespaced)
	return &Referrers{r, cache, module, class}, errors.Wrap(err, "cannot look up the store Kinds")
}

// Index adds the indexes to a cache by which it finds the objects that refer to a store, and those that read a remote secret.
func (r *Referrers) Index(ctx context.Context, indexer client.FieldIndexer) error {
	for field, values := range map[string]func(*v1alpha1.ExternalSecret) []string{storeIndex: r.storeKeys, readIndex: r.readKeys} {
		err := indexer.IndexField(ctx, &v1alpha1.ExternalSecret{}, field, func(obj client.Object) []string {
			es, ok := obj.(*v1alpha1.ExternalSecret)
			if !ok {
				return nil
			}
			return values(es)
		})
		if err != nil {
			return errors.Wrap(err, "cannot index ExternalSecrets by "+field)
		}
	}
	return nil
}

// storeKeys returns the index values of an object: one for each store that it refers to.
func (r *Referrers) storeKeys(es *v1alpha1.ExternalSecret) []string {
	var keys []string
	r.eachStore(es, func(k resolve.Route, ref *v1alpha1.StoreRef, _ bool) {
		if key := k.IndexKey(k.Key(ref.Name, es.Namespace)); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	})
	return keys
}

// To returns the objects that refer to a store, or with an empty name to any store of the Kind: in one namespace, or in
// all if it is empty.
func (r *Referrers) To(ctx context.Context, k resolve.Route, s types.NamespacedName, namespace string) []*v1alpha1.ExternalSecret {
	opts := []client.ListOption{client.InNamespace(namespace)}
	if s.Name != "" {
		opts = append(opts, client.MatchingFields{storeIndex: k.IndexKey(s)})
	}
	var list v1alpha1.ExternalSecretList
	if err := r.cache.List(ctx, &list, opts...); err != nil {
		return nil // List fails only if the cache is shutting down, or has no such index.
	}
	var all []*v1alpha1.ExternalSecret
	for i := range list.Items {
		if es := &list.Items[i]; s.Name != "" || r.uses(es, k) {
			all = append(all, es)
		}
	}
	return all
}

// eachStore calls f for every reference to a store that this module serves. generator is true for a generatorRef.
func (r *Referrers) eachStore(es *v1alpha1.ExternalSecret, f func(k resolve.Route, ref *v1alpha1.StoreRef, generator bool)) {
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

// uses reports whether an object refers to a store of a Kind.
func (r *Referrers) uses(es *v1alpha1.ExternalSecret, k resolve.Route) (uses bool) {
	r.eachStore(es, func(is resolve.Route, _ *v1alpha1.StoreRef, _ bool) { uses = uses || is.GVK == k.GVK })
	return uses
}

// Claims reports whether this module reconciles an object, because it serves the leading store.
func (r *Referrers) Claims(es *v1alpha1.ExternalSecret) bool {
	_, ok := r.Serves(es.LeadingStore())
	return ok
}

// Mine reports whether this operator reconciles an object: its module claims it, and the leading store has its class.
// A missing store counts as one of every class, so that an operator reports it.
func (r *Referrers) Mine(ctx context.Context, es *v1alpha1.ExternalSecret) (bool, error) {
	ref := es.LeadingStore()
	if ref == nil {
		return false, nil
	}
	_, refusal, err := r.Lookup(ctx, *ref, es.Namespace)
	return err == nil && (refusal == nil || refusal.Why == resolve.ClusterKind || refusal.Why == resolve.Absent), err
}

// Contributor returns this operator as the contributor to objects that another operator claims.
func (r *Referrers) Contributor() handoff.Contributor {
	return handoff.Contributor{Group: r.module, Class: r.class, Purpose: v1alpha1.PartRead}
}

// MayContribute reports whether this operator might read for an object that another operator claims, judged by the
// object alone. An object with a single store has no other reader.
func (r *Referrers) MayContribute(es *v1alpha1.ExternalSecret) bool {
	if slices.ContainsFunc(es.Status.Parts, r.Contributor().Wrote) {
		return true
	}
	leading, reads := es.LeadingStore(), false
	r.eachStore(es, func(k resolve.Route, ref *v1alpha1.StoreRef, generator bool) {
		if made := generator && k.Generator; made { // A generated value has its own part.
			return
		}
		reads = reads || leading == nil || *ref != *leading
	})
	return reads
}

// Contributes reports whether this operator reads, or has read, for an object that another operator claims.
func (r *Referrers) Contributes(ctx context.Context, es *v1alpha1.ExternalSecret) (contributes bool, err error) {
	if slices.ContainsFunc(es.Status.Parts, r.Contributor().Wrote) {
		return true, nil
	}
	r.eachStore(es, func(k resolve.Route, ref *v1alpha1.StoreRef, generator bool) {
		if contributes || err != nil || generator && k.Generator {
			return
		}
		var refusal *resolve.Refusal
		if _, refusal, err = r.Lookup(ctx, *ref, es.Namespace); err == nil {
			contributes = !r.Elsewhere(es, refusal, false)
		}
	})
	return contributes, err
}

// Elsewhere reports whether another operator reads a store that this operator refuses. mine is true if this operator
// claims the object. A missing store counts as one of every class; the claiming operator reports it if its module claims
// the object.
func (r *Referrers) Elsewhere(es *v1alpha1.ExternalSecret, refusal *resolve.Refusal, mine bool) bool {
	if refusal == nil {
		return false
	}
	switch refusal.Why { //nolint:exhaustive // With the others, this operator reads the store.
	case resolve.NotServed, resolve.OtherClass:
		return true
	case resolve.Absent:
		return !mine && r.Claims(es)
	}
	return false
}

// concerns reports whether this module has a role for an object: it claims it, reads or generates for it, or has done
// so.
func (r *Referrers) concerns(es *v1alpha1.ExternalSecret) (concerns bool) {
	r.eachStore(es, func(resolve.Route, *v1alpha1.StoreRef, bool) { concerns = true })
	return concerns || slices.ContainsFunc(es.Status.Parts, func(s v1alpha1.PartStatus) bool {
		return handoff.Wrote(r.module, r.class, s)
	})
}

// Transform returns the transform of the informer. It reduces an object of another module to the fields that routing
// needs, and to those that keep copies for other controllers. An informer can transform an object twice.
func Transform(scheme *runtime.Scheme, kinds []provider.Kind, module, class string, keep func(from, to *v1alpha1.ExternalSecret)) (func(any) (any, error), error) {
	r, err := New(nil, scheme, kinds, module, class, false)
	if err != nil {
		return nil, err
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

// reduced returns a copy of an object with only the fields that routing needs.
func reduced(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecret {
	small := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{
		Namespace: es.Namespace, Name: es.Name, UID: es.UID,
		ResourceVersion: es.ResourceVersion, Generation: es.Generation,
		CreationTimestamp: es.CreationTimestamp, DeletionTimestamp: es.DeletionTimestamp,
	}}
	// Objects that share a Secret compare the target, the policy and their age.
	small.Spec.Target.Name, small.Spec.Target.CreationPolicy = es.Spec.Target.Name, es.Spec.Target.CreationPolicy
	if ref := es.LeadingStore(); ref != nil {
		small.Spec.StoreRef = ref.DeepCopy()
	}
	return small
}
