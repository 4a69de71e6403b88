package externalsecret

import (
	"context"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/render"
	"github.com/direct-secrets/direct-secrets/common/store"
)

// routes knows which store Kinds this module serves.
type routes struct {
	reader client.Reader
	kinds  []route
}

type route struct {
	store.Kind
	gvk schema.GroupVersionKind
}

func newRoutes(reader client.Reader, scheme *runtime.Scheme, kinds []store.Kind) (*routes, error) {
	r := &routes{reader: reader}
	for _, k := range kinds {
		gvk, err := apiutil.GVKForObject(k.New(), scheme)
		if err != nil {
			return nil, err
		}
		r.kinds = append(r.kinds, route{Kind: k, gvk: gvk})
	}
	return r, nil
}

// serves returns the Kind that a reference names; false if another module serves it. Only the group
// of apiVersion counts, so that a promotion to v1 breaks no reference. Without one any Kind of the
// project's groups matches.
func (r *routes) serves(ref *v1alpha1.StoreRef) (route, bool) {
	if ref == nil {
		return route{}, false
	}
	for _, k := range r.kinds {
		if k.gvk.Kind == ref.Kind && groupMatches(ref.APIVersion, k.gvk.Group) {
			return k, true
		}
	}
	return route{}, false
}

func groupMatches(apiVersion, group string) bool {
	if apiVersion == "" {
		return group == v1alpha1.Group || strings.HasSuffix(group, "."+v1alpha1.Group)
	}
	want, _, _ := strings.Cut(apiVersion, "/")
	return want == group
}

// claims reports whether this module is the one that reconciles an object.
func (r *routes) claims(es *v1alpha1.ExternalSecret) bool {
	_, ok := r.serves(render.LeadingStore(es))
	return ok
}

// find reads the store that a reference of an object in namespace names; nil if it does not exist.
func (r *routes) find(ctx context.Context, k route, ref v1alpha1.StoreRef, namespace string) (store.Object, error) {
	s := k.New()
	err := r.reader.Get(ctx, k.key(ref.Name, namespace), s)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

func (k route) key(name, namespace string) types.NamespacedName {
	if k.Cluster {
		return types.NamespacedName{Name: name}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// storeKeys returns the index values of an object: one for each store that it refers to.
func (r *routes) storeKeys(es *v1alpha1.ExternalSecret) []string {
	seen := map[string]bool{}
	r.eachStore(es, func(k route, ref *v1alpha1.StoreRef) {
		seen[k.indexKey(k.key(ref.Name, es.Namespace))] = true
	})
	keys := make([]string, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	return keys
}

// usesCluster reports whether an object refers to a store of a cluster Kind.
func (r *routes) usesCluster(es *v1alpha1.ExternalSecret) (uses bool) {
	r.eachStore(es, func(k route, _ *v1alpha1.StoreRef) { uses = uses || k.Cluster })
	return uses
}

// eachStore calls f for every reference to a store that this module serves.
func (r *routes) eachStore(es *v1alpha1.ExternalSecret, f func(route, *v1alpha1.StoreRef)) {
	add := func(ref *v1alpha1.StoreRef) {
		if k, ok := r.serves(ref); ok {
			f(k, ref)
		}
	}
	add(es.Spec.StoreRef)
	for _, d := range es.Spec.Data {
		if d.SourceRef != nil {
			add(&d.SourceRef.StoreRef)
		}
	}
	for _, d := range es.Spec.DataFrom {
		if d.SourceRef != nil {
			add(d.SourceRef.StoreRef)
		}
	}
}

func (k route) indexKey(n types.NamespacedName) string { return k.gvk.Kind + "/" + n.String() }

// Transform returns the transform of the informer: an object of another module keeps only what
// routing needs.
func Transform(scheme *runtime.Scheme, kinds []store.Kind) (func(any) (any, error), error) {
	r, err := newRoutes(nil, scheme, kinds)
	if err != nil {
		return nil, errors.Wrap(err, "cannot route store Kinds")
	}
	return r.reduce, nil
}

func (r *routes) reduce(obj any) (any, error) {
	es, ok := obj.(*v1alpha1.ExternalSecret)
	if !ok {
		return obj, nil
	}
	es.ManagedFields = nil
	if r.claims(es) {
		return es, nil
	}
	small := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{
		Namespace: es.Namespace, Name: es.Name, UID: es.UID,
		ResourceVersion: es.ResourceVersion, Generation: es.Generation,
		CreationTimestamp: es.CreationTimestamp,
	}}
	// What it writes, and which of two objects is the older, matters to those that share the Secret.
	small.Spec.Target.Name, small.Spec.Target.CreationPolicy = es.Spec.Target.Name, es.Spec.Target.CreationPolicy
	if ref := render.LeadingStore(es); ref != nil {
		small.Spec.StoreRef = ref.DeepCopy()
	}
	return small, nil
}
