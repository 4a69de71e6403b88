package fanout

import (
	"context"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Modules may be of different versions. So that one that is older does not drop what a later one put into the API,
// parents are read, and children written, with all their fields.

// raws are the specs of children, by the names of their parents. The zero raws are empty.
type raws struct {
	mu      sync.Mutex
	parents map[string]raw
}

// raw is the spec of children for one generation of a parent.
type raw struct {
	uid        types.UID
	generation int64
	spec       map[string]any
}

func (r *raws) get(parent string) raw {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.parents[parent]
}

func (r *raws) set(parent string, is raw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parents == nil {
		r.parents = map[string]raw{}
	}
	r.parents[parent] = is
}

func (r *raws) forget(parent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.parents, parent)
}

// raw returns the spec that a parent has for its children. It is read once for each generation.
func (r *reconciler) raw(ctx context.Context, parent client.Object) (map[string]any, error) {
	if is := r.raws.get(parent.GetName()); is.uid == parent.GetUID() && is.generation == parent.GetGeneration() {
		return is.spec, nil
	}
	return r.live(ctx, parent)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets;clusterpushsecrets,verbs=get,roleName=cluster

// live returns the spec that a parent has for its children, as the API server has it now; a conflict if the parent is
// not as it was given.
func (r *reconciler) live(ctx context.Context, parent client.Object) (map[string]any, error) {
	is := unstructuredOf(r.kind.ParentKind)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(parent), is)
	if client.IgnoreNotFound(err) != nil {
		return nil, errors.Wrap(err, "cannot read the object")
	}
	if err != nil || is.GetUID() != parent.GetUID() || is.GetGeneration() != parent.GetGeneration() || is.GetDeletionTimestamp() != nil {
		return nil, behind(v1alpha1.GroupVersion.WithResource(r.kind.ParentKind).GroupResource(), parent.GetName())
	}
	spec, _, err := unstructured.NestedMap(is.Object, "spec", r.kind.SpecField)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot read spec.%s", r.kind.SpecField)
	}
	r.raws.set(parent.GetName(), raw{uid: is.GetUID(), generation: is.GetGeneration(), spec: spec})
	return spec, nil
}

// behind says that an object is not as the cache has it.
func behind(resource schema.GroupResource, name string) error {
	return kerrors.NewConflict(resource, name, errors.New("the cache is behind"))
}

// typed returns a child with the fields that this version knows.
func (r *reconciler) typed(full *unstructured.Unstructured) (client.Object, error) {
	child := r.kind.Child()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(full.Object, child)
	return child, errors.Wrapf(err, "cannot read an object of kind %s", r.kind.ChildKind)
}

func unstructuredOf(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return u
}
