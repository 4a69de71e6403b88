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
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// children creates, restores and deletes the objects that parents want.
type children struct {
	kinds

	// client does not read from a cache; cache does.
	client client.Client
	cache  client.Reader
	// owner is the ownerReference of a child, without name and uid of the parent.
	owner   metav1.OwnerReference
	parents *parents
	now     func() time.Time
}

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
func (c *children) list(ctx context.Context, parent client.Object, o ...client.ListOption) ([]client.Object, error) {
	list := c.newChildren()
	o = append(o, client.MatchingFields{ownerIndex: string(parent.GetUID())}, client.UnsafeDisableDeepCopy)
	if err := c.cache.List(ctx, list, o...); err != nil {
		return nil, errors.Wrapf(err, "cannot list objects of kind %s", c.child)
	}
	return objectsOf(list), nil
}

// Children are written with all fields, since fields that this version does not know must be kept.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=create;update,roleName=cluster

// provision brings one child in sync. An object of that name that is not a child of the parent is left unchanged.
func (c *children) provision(ctx context.Context, parent client.Object, want desired, namespace string, revertBackoff policy.RevertBackoff) (outcome, error) {
	key := types.NamespacedName{Namespace: namespace, Name: want.name}
	wanted, err := digestOf(want)
	if err != nil {
		return outcome{}, err
	}
	child := c.newChild()
	err = c.cache.Get(ctx, key, child, client.UnsafeDisableDeepCopy)
	absent := kerrors.IsNotFound(err)
	if err == nil && c.inSync(parent, child, wanted) {
		return outcome{}, nil
	}
	if wait := revertBackoff.Wait(c.now()); wait > 0 {
		return outcome{refused: "another client keeps changing or deleting the object; restoring it with back-off until that client stops", wait: wait}, nil
	}
	if absent {
		child, err := c.create(ctx, parent, want, key)
		switch {
		case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), kerrors.IsNotFound(err):
			return outcome{noNamespace: true}, nil
		case !kerrors.IsAlreadyExists(err):
			return c.written(parent, child, wanted, err)
		}
	}
	return c.repair(ctx, parent, want, key, wanted)
}

func (c *children) create(ctx context.Context, parent client.Object, want desired, key types.NamespacedName) (*unstructured.Unstructured, error) {
	child := unstructuredOf(c.child)
	child.SetNamespace(key.Namespace)
	child.SetName(key.Name)
	ref := c.owner
	ref.Name, ref.UID = parent.GetName(), parent.GetUID()
	child.SetOwnerReferences([]metav1.OwnerReference{ref})
	if err := shape(child, want); err != nil {
		return nil, err
	}
	return child, c.client.Create(ctx, child)
}

// repair restores an existing child, based on a live read. wanted is the digest of the wanted child.
func (c *children) repair(ctx context.Context, parent client.Object, want desired, key types.NamespacedName, wanted string) (outcome, error) {
	full := unstructuredOf(c.child)
	if err := c.client.Get(ctx, key, full); err != nil {
		if kerrors.IsNotFound(err) { // It was deleted just now.
			err = kerrors.NewConflict(v1alpha1.GroupVersion.WithResource(c.child).GroupResource(), want.name, err)
		}
		return outcome{}, err
	}
	child, err := c.typed(full)
	if err != nil {
		return outcome{}, err
	}
	switch {
	case c.inSync(parent, child, wanted):
		return outcome{}, nil
	case !c.owns(parent, child):
		return outcome{refused: fmt.Sprintf("%s %q exists and was not created by this object; delete it or choose another name", c.child, want.name)}, nil
	case child.GetDeletionTimestamp() != nil:
		return outcome{refused: fmt.Sprintf("%s %q is being deleted", c.child, want.name)}, nil
	}
	if want.raw, err = c.parents.live(ctx, parent); err != nil {
		return outcome{}, err
	}
	if wanted, err = digestOf(want); err != nil { // A new version of the CRD may show more fields of the same generation.
		return outcome{}, err
	}
	if err := shape(full, want); err != nil {
		return outcome{}, err
	}
	return c.written(parent, full, wanted, c.client.Update(ctx, full))
}

// written returns the outcome of a write. full is the child as the API server returned it.
func (c *children) written(parent client.Object, full *unstructured.Unstructured, wanted string, err error) (outcome, error) {
	if err != nil {
		return outcome{}, err
	}
	o := outcome{written: true}
	child, err := c.typed(full)
	if err == nil && !c.inSync(parent, child, wanted) {
		o.refused = "a webhook or an admission policy changes the object on each write; exempt the object from it"
	}
	return o, err
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=delete,roleName=cluster

// withdraw deletes the children in a namespace that are no longer wanted. A child with a former name is deleted only
// once its replacement is Ready; until then waits describes what it waits for. Objects that are not children of the
// parent stay. The Secret of a child may be deleted with it, so a deletion must not rely on the cache, which may lack
// the present labels of the namespace: each is confirmed by live reads.
func (c *children) withdraw(ctx context.Context, parent client.Object, want desired, chosen choice, namespace string, admitted bool) (waits string, err error) {
	all, err := c.list(ctx, parent, client.InNamespace(namespace))
	if err != nil {
		return "", err
	}
	for _, cached := range all {
		if cached.GetDeletionTimestamp() != nil || admitted && cached.GetName() == want.name {
			continue
		}
		child := c.newChild()
		err := c.client.Get(ctx, client.ObjectKeyFromObject(cached), child)
		if err == nil && c.owns(parent, child) {
			if err := c.unwanted(ctx, parent, chosen, namespace, admitted); err != nil {
				return "", err
			}
			if admitted {
				if waits, err = c.successor(ctx, types.NamespacedName{Namespace: namespace, Name: want.name}, child); waits != "" || err != nil {
					return waits, err
				}
			}
			uid, version := child.GetUID(), child.GetResourceVersion()
			err = c.client.Delete(ctx, child, client.Preconditions{UID: &uid, ResourceVersion: &version})
		}
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
	}
	return "", nil
}

// successor describes what a renamed child waits for; empty if it can be deleted. Its replacement must be Ready
// first, since the Secret of the old child is deleted with it.
func (c *children) successor(ctx context.Context, key types.NamespacedName, old client.Object) (waits string, err error) {
	next := c.newChild()
	if err := c.client.Get(ctx, key, next); err != nil {
		return "", err
	}
	if c.ready(next) {
		return "", nil
	}
	return fmt.Sprintf("%s %q is deleted once its replacement %q is Ready", c.child, old.GetName(), key.Name), nil
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster

// unwanted returns an error if a live read of the parent or the namespace contradicts the cache, so that the child
// may still be wanted.
func (c *children) unwanted(ctx context.Context, parent client.Object, chosen choice, namespace string, admitted bool) error {
	if _, err := c.parents.live(ctx, parent); err != nil || admitted {
		return err
	}
	ns := resolve.NamespaceMetadata()
	err := c.client.Get(ctx, types.NamespacedName{Name: namespace}, ns)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the namespace")
	}
	if err != nil || chosen.admits(ns) {
		return behind(corev1.Resource("namespaces"), namespace)
	}
	return nil
}
