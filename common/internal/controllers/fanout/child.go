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

// children makes, repairs and removes the objects that parents want.
type children struct {
	kinds

	// client is live, cache is not.
	client client.Client
	cache  client.Reader
	// owner is the reference of a child to its parent, but for name and uid.
	owner   metav1.OwnerReference
	parents *parents
	now     func() time.Time
}

// outcome is what came of bringing one child in step; the zero outcome is that it is.
type outcome struct {
	// refused says why it is not, and wait when to look again, if not as usual.
	refused string
	wait    time.Duration
	// gone: the namespace is on its way out.
	gone bool
	// written: it was made, or put right.
	written bool
}

// list returns what the cache has of the children of a parent. They must not be changed.
func (c *children) list(ctx context.Context, parent client.Object, o ...client.ListOption) ([]client.Object, error) {
	list := c.newChildren()
	o = append(o, client.MatchingFields{ownerIndex: string(parent.GetUID())}, client.UnsafeDisableDeepCopy)
	if err := c.cache.List(ctx, list, o...); err != nil {
		return nil, errors.Wrapf(err, "cannot list objects of kind %s", c.child)
	}
	return objectsOf(list), nil
}

// A child is written whole, since fields that this version does not know must not be dropped.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=create;update,roleName=cluster

// provision brings one child in step. Another's object of that name is left alone.
func (c *children) provision(ctx context.Context, parent client.Object, want desired, namespace string, fight policy.Fight) (outcome, error) {
	key := types.NamespacedName{Namespace: namespace, Name: want.name}
	wanted, err := digestOf(want)
	if err != nil {
		return outcome{}, err
	}
	child := c.newChild()
	err = c.cache.Get(ctx, key, child, client.UnsafeDisableDeepCopy)
	absent := kerrors.IsNotFound(err)
	if err == nil && c.inStep(parent, child, wanted) {
		return outcome{}, nil
	}
	if wait := fight.Wait(c.now()); wait > 0 {
		return outcome{refused: "somebody keeps changing or deleting the object; it is put right with back-off", wait: wait}, nil
	}
	if absent {
		child, err := c.create(ctx, parent, want, key)
		switch {
		case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), kerrors.IsNotFound(err):
			return outcome{gone: true}, nil
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

// repair puts a child right that exists, by a live read. wanted is the digest of what is wanted.
func (c *children) repair(ctx context.Context, parent client.Object, want desired, key types.NamespacedName, wanted string) (outcome, error) {
	full := unstructuredOf(c.child)
	if err := c.client.Get(ctx, key, full); err != nil {
		if kerrors.IsNotFound(err) { // It went just now.
			err = kerrors.NewConflict(v1alpha1.GroupVersion.WithResource(c.child).GroupResource(), want.name, err)
		}
		return outcome{}, err
	}
	child, err := c.typed(full)
	if err != nil {
		return outcome{}, err
	}
	switch {
	case c.inStep(parent, child, wanted):
		return outcome{}, nil
	case !c.owns(parent, child):
		return outcome{refused: fmt.Sprintf("%s %q exists, and this object did not make it; delete it or choose another name", c.child, want.name)}, nil
	case child.GetDeletionTimestamp() != nil:
		return outcome{refused: fmt.Sprintf("%s %q is being deleted", c.child, want.name)}, nil
	}
	if want.raw, err = c.parents.live(ctx, parent); err != nil {
		return outcome{}, err
	}
	if wanted, err = digestOf(want); err != nil { // Another CRD may show more of the same parent.
		return outcome{}, err
	}
	if err := shape(full, want); err != nil {
		return outcome{}, err
	}
	return c.written(parent, full, wanted, c.client.Update(ctx, full))
}

// written is what came of a write, after which full is as the API server has it.
func (c *children) written(parent client.Object, full *unstructured.Unstructured, wanted string, err error) (outcome, error) {
	if err != nil {
		return outcome{}, err
	}
	o := outcome{written: true}
	child, err := c.typed(full)
	if err == nil && !c.inStep(parent, child, wanted) {
		o.refused = "the object is changed as it is written, by a webhook or an admission policy; exempt it"
	}
	return o, err
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=delete,roleName=cluster

// withdraw removes the children in a namespace that are not wanted any more; those by another name than now only once
// the new one has taken their place. Until then it says what they wait for. What this object did not make is left. With a
// child its Secret may go for good, so none goes for what only the cache says: it may not have the labels of the namespace
// yet that the parent is about.
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

// successor says what a child that was renamed waits for: the one that replaces it must be Ready, since what the old one
// made goes with it.
func (c *children) successor(ctx context.Context, key types.NamespacedName, old client.Object) (waits string, err error) {
	next := c.newChild()
	if err := c.client.Get(ctx, key, next); err != nil {
		return "", err
	}
	if c.ready(next) {
		return "", nil
	}
	return fmt.Sprintf("%s %q stays until %q, which replaces it, is Ready", c.child, old.GetName(), key.Name), nil
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster

// unwanted returns an error if the API server knows better than the cache what a parent wants, or which labels a
// namespace has.
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
