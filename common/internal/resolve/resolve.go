// Package resolve finds the stores that objects refer to. It decides whether an object can use a store: whether the
// module serves its Kind, and whether the store is ready and admits the namespace.
package resolve

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Routes are the store Kinds that this module serves.
type Routes struct {
	Kinds  []Route
	reader client.Reader
}

// A Route is a store Kind that this module serves.
type Route struct {
	provider.Kind
	GVK schema.GroupVersionKind
}

// New returns the Routes for Kinds. Find reads their stores with reader.
func New(reader client.Reader, scheme *runtime.Scheme, kinds []provider.Kind) (*Routes, error) {
	r := &Routes{reader: reader}
	for _, k := range kinds {
		gvk, err := apiutil.GVKForObject(k.New(), scheme)
		if err != nil {
			return nil, err
		}
		r.Kinds = append(r.Kinds, Route{Kind: k, GVK: gvk})
	}
	return r, nil
}

// By returns the same Routes with another reader.
func (r *Routes) By(reader client.Reader) *Routes { return &Routes{Kinds: r.Kinds, reader: reader} }

// Serves returns the Kind that a reference names; false if this module does not serve it. Only the group of
// apiVersion counts, so that a promotion to v1 breaks no reference. Without an apiVersion, any Kind of the project's
// groups matches.
func (r *Routes) Serves(ref *v1alpha1.StoreRef) (Route, bool) {
	for _, k := range r.Kinds {
		if ref.Matches(k.GVK.GroupKind()) {
			return k, true
		}
	}
	return Route{}, false
}

// Find reads the store that a reference of an object in namespace names; nil if it does not exist.
func (r *Routes) Find(ctx context.Context, k Route, ref v1alpha1.StoreRef, namespace string) (provider.Object, error) {
	s := k.New()
	err := r.reader.Get(ctx, k.Key(ref.Name, namespace), s)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

// Key returns the key of the store that an object in namespace refers to by name.
func (k Route) Key(name, namespace string) types.NamespacedName {
	if k.Cluster {
		return types.NamespacedName{Name: name}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// IndexKey returns the index value of a store, under which the cache finds the objects that refer to it.
func (k Route) IndexKey(n types.NamespacedName) string { return k.GVK.Kind + "/" + n.String() }

// Held returns the Ready condition of a store that is not ready, so that its gate holds reads and pushes; nil if the
// gate is open. It is open while the condition is missing or Unknown, and if it was written while no operator served the
// store.
func Held(s provider.Object) *metav1.Condition {
	if provider.SourceSpec(s).GatingPolicy == v1alpha1.GatingDisabled {
		return nil
	}
	c := meta.FindStatusCondition(s.StoreStatus().Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason == v1alpha1.ReasonProviderNotRunning {
		return nil
	}
	return c
}

// CredentialsNamespace returns namespace if the credentials of a store are looked up in the namespace of the referring object;
// otherwise it is empty.
func CredentialsNamespace(s provider.Object, namespace string) string {
	if c, ok := s.(provider.ClusterObject); ok && c.ClusterStoreSpec().AuthenticationScope == v1alpha1.ScopeManifestNamespace {
		return namespace
	}
	return ""
}
