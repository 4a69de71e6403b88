package fanout

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// outcome is the result of bringing one child in sync; the zero outcome means that it is.
type outcome struct {
	// refused is why the child is not in sync. wait is the delay until the next attempt; 0 for the usual one.
	refused string
	wait    time.Duration
	// noNamespace is true if the namespace does not exist or is being deleted.
	noNamespace bool
	// written is true if the child was created or restored.
	written bool
}

// list returns the children of a parent from the cache. The caller must not change them.
func (r *reconciler) list(ctx context.Context, parent client.Object, o ...client.ListOption) ([]client.Object, error) {
	list := r.newChildren()
	o = append(o, client.MatchingFields{ownerIndex: string(parent.GetUID())}, client.UnsafeDisableDeepCopy)
	if err := r.cache.List(ctx, list, o...); err != nil {
		return nil, errors.Wrapf(err, "cannot list objects of kind %s", r.child)
	}
	return kit.Items(list), nil
}

// Children are written with all fields, since fields that this version does not know must be kept.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=create;update,roleName=cluster

// provision brings one child in sync. An object of that name that is not a child of the parent is left unchanged.
func (r *reconciler) provision(ctx context.Context, parent client.Object, want desired, namespace string, revertBackoff policy.RevertBackoff) (outcome, error) {
	key := types.NamespacedName{Namespace: namespace, Name: want.name}
	wanted, err := digestOf(want)
	if err != nil {
		return outcome{}, err
	}
	child := r.newChild()
	err = r.cache.Get(ctx, key, child, client.UnsafeDisableDeepCopy)
	absent := kerrors.IsNotFound(err)
	if err == nil && r.inSync(parent, child, wanted) {
		return outcome{}, nil
	}
	if wait := revertBackoff.Wait(r.now()); wait > 0 {
		return outcome{refused: "another client keeps changing or deleting the object; restoring it with back-off until that client stops", wait: wait}, nil
	}
	if absent {
		child, err := r.create(ctx, parent, want, key)
		switch {
		case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), kerrors.IsNotFound(err):
			return outcome{noNamespace: true}, nil
		case !kerrors.IsAlreadyExists(err):
			return r.written(parent, child, wanted, err)
		}
	}
	return r.repair(ctx, parent, want, key, wanted)
}

func (r *reconciler) create(ctx context.Context, parent client.Object, want desired, key types.NamespacedName) (*unstructured.Unstructured, error) {
	child := unstructuredOf(r.child)
	child.SetNamespace(key.Namespace)
	child.SetName(key.Name)
	yes, no := true, false
	child.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: r.parent, Name: parent.GetName(), UID: parent.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &no,
	}})
	if err := shape(child, want); err != nil {
		return nil, err
	}
	return child, r.client.Create(ctx, child)
}

// repair restores an existing child, based on a live read. wanted is the digest of the wanted child.
func (r *reconciler) repair(ctx context.Context, parent client.Object, want desired, key types.NamespacedName, wanted string) (outcome, error) {
	full := unstructuredOf(r.child)
	if err := r.client.Get(ctx, key, full); err != nil {
		if kerrors.IsNotFound(err) { // It was deleted just now.
			err = kerrors.NewConflict(v1alpha1.GroupVersion.WithResource(r.child).GroupResource(), want.name, err)
		}
		return outcome{}, err
	}
	child, err := r.typed(full)
	if err != nil {
		return outcome{}, err
	}
	switch {
	case r.inSync(parent, child, wanted):
		return outcome{}, nil
	case !r.owns(parent, child):
		return outcome{refused: fmt.Sprintf("%s %q exists and was not created by this object; delete it or choose another name", r.child, want.name)}, nil
	case child.GetDeletionTimestamp() != nil:
		return outcome{refused: fmt.Sprintf("%s %q is being deleted", r.child, want.name)}, nil
	}
	if want.raw, err = r.live(ctx, parent); err != nil {
		return outcome{}, err
	}
	if wanted, err = digestOf(want); err != nil { // A new version of the CRD may show more fields of the same generation.
		return outcome{}, err
	}
	if err := shape(full, want); err != nil {
		return outcome{}, err
	}
	return r.written(parent, full, wanted, r.client.Update(ctx, full))
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=delete,roleName=cluster

// withdraw deletes the children in a namespace that are no longer wanted. A child with a former name is deleted only
// once its replacement is Ready; until then waits describes what it waits for. Objects that are not children of the
// parent stay. The Secret of a child may be deleted with it, so a deletion must not rely on the cache, which may lack
// the present labels of the namespace: each is confirmed by live reads.
func (r *reconciler) withdraw(ctx context.Context, parent client.Object, want desired, namespace string, admitted bool) (waits string, err error) {
	all, err := r.list(ctx, parent, client.InNamespace(namespace))
	if err != nil {
		return "", err
	}
	for _, cached := range all {
		if cached.GetDeletionTimestamp() != nil || admitted && cached.GetName() == want.name {
			continue
		}
		child := r.newChild()
		err := r.client.Get(ctx, client.ObjectKeyFromObject(cached), child)
		if err == nil && r.owns(parent, child) {
			if err := r.unwanted(ctx, parent, want, namespace, admitted); err != nil {
				return "", err
			}
			if admitted {
				if waits, err = r.successor(ctx, types.NamespacedName{Namespace: namespace, Name: want.name}, child); waits != "" || err != nil {
					return waits, err
				}
			}
			uid, version := child.GetUID(), child.GetResourceVersion()
			err = r.client.Delete(ctx, child, client.Preconditions{UID: &uid, ResourceVersion: &version})
		}
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
	}
	return "", nil
}

// successor describes what a renamed child waits for; empty if it can be deleted. Its replacement must be Ready
// first, since the Secret of the old child is deleted with it.
func (r *reconciler) successor(ctx context.Context, key types.NamespacedName, old client.Object) (waits string, err error) {
	next := r.newChild()
	if err := r.client.Get(ctx, key, next); err != nil {
		return "", err
	}
	if r.ready(next) {
		return "", nil
	}
	return fmt.Sprintf("%s %q is deleted once its replacement %q is Ready", r.child, old.GetName(), key.Name), nil
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster

// unwanted returns an error if a live read of the parent or the namespace contradicts the cache, so that the child
// may still be wanted.
func (r *reconciler) unwanted(ctx context.Context, parent client.Object, want desired, namespace string, admitted bool) error {
	if _, err := r.live(ctx, parent); err != nil || admitted {
		return err
	}
	ns := resolve.NamespaceMetadata()
	err := r.client.Get(ctx, types.NamespacedName{Name: namespace}, ns)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the namespace")
	}
	if err != nil || want.admits(ns) {
		return behind(corev1.Resource("namespaces"), namespace)
	}
	return nil
}
