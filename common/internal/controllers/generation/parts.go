package generation

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// key returns the name of the part of an object.
func (r *Reconciler) key(req request) types.NamespacedName {
	return types.NamespacedName{Namespace: req.Namespace, Name: r.contributor.PartName(req.kind, req.Name)}
}

// finalizer returns the finalizer of a part with something to revoke.
func (r *Reconciler) finalizer() string { return handoff.Finalizer(r.contributor.Group) }

// bears reports whether a Secret has the finalizer of this module.
func (r *Reconciler) bears(o metav1.Object) bool {
	return slices.Contains(o.GetFinalizers(), r.finalizer())
}

// cached returns the metadata of the part from the cache; nil if there is none.
func (r *Reconciler) cached(ctx context.Context, req request) (*metav1.PartialObjectMetadata, error) {
	m := resolve.SecretMetadata()
	err := r.cache.Get(ctx, r.key(req), m)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return m, errors.Wrap(err, "cannot read the Secret of the contribution")
}

// live reads the part from the API server; nil if there is none.
func (r *Reconciler) live(ctx context.Context, req request) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.client.Get(ctx, r.key(req), s)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	return s, errors.Wrap(err, "cannot read the Secret of the contribution")
}

// labels returns the labels by which this module, and the module that claims the object, watch the part.
func (r *Reconciler) labels(u user) []string {
	var reconcile []presence.Member
	if es, ok := u.Object.(*v1alpha1.ExternalSecret); ok {
		reconcile = r.board.Serving(es.LeadingStore(), es.Namespace)
	}
	return handoff.Labels(r.contributor.Group, reconcile)
}

// target returns the uid of the Secret that an object wrote, read through from; empty if there is none.
func (r *Reconciler) target(ctx context.Context, from client.Reader, u user) (types.UID, error) {
	if u.target == "" {
		return "", nil
	}
	m := resolve.SecretMetadata()
	err := from.Get(ctx, types.NamespacedName{Namespace: u.GetNamespace(), Name: u.target}, m)
	if kerrors.IsNotFound(err) || err == nil && m.DeletionTimestamp != nil {
		return "", nil
	}
	return m.UID, errors.Wrap(err, "cannot read the target Secret")
}

// owners returns the wanted owners of a part: its object, the Secret written from it, and Secrets written from it
// before, which are taken from live.
func (r *Reconciler) owners(ctx context.Context, u user, live *corev1.Secret) ([]metav1.OwnerReference, error) {
	to, err := r.target(ctx, r.client, u)
	if err != nil {
		return nil, err
	}
	yes, no := true, false
	owners := []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: u.kind, Name: u.GetName(), UID: u.GetUID(),
		Controller: &yes, BlockOwnerDeletion: &no,
	}}
	if live != nil {
		for _, o := range live.OwnerReferences {
			if o.Kind == secretKind && o.UID != to {
				owners = append(owners, o)
			}
		}
	}
	if to != "" {
		owners = append(owners, metav1.OwnerReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: secretKind, Name: u.target, UID: to, BlockOwnerDeletion: &no,
		})
	}
	return owners, nil
}

// A Secret that holds the values may have lost its labels, so all Secrets of the namespace are listed, as metadata.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list

// secretsPage is how many Secrets are listed at once: their annotations can have 256 KiB each.
const secretsPage = 32

// inUse reports whether a Secret exists that was written for one of the given objects with that name. It may hold a
// credential that would be revoked.
func (r *Reconciler) inUse(ctx context.Context, namespace, name string, of ...types.UID) (bool, error) {
	if len(of) == 0 {
		return false, nil
	}
	for more := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := r.client.List(ctx, list, client.InNamespace(namespace), client.Limit(secretsPage), client.Continue(more)); err != nil {
			return false, errors.Wrap(err, "cannot list Secrets")
		}
		used := slices.ContainsFunc(list.Items, func(s metav1.PartialObjectMetadata) bool {
			mark, ok := target.Marks(s.Annotations)[name]
			return ok && slices.Contains(of, mark.UID) && s.DeletionTimestamp == nil
		})
		if more = list.Continue; used || more == "" {
			return used, nil
		}
	}
}

// If namespaces cannot be read, a dry-run create shows whether the namespace is terminating.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create

// namespace reports whether a namespace exists, and whether it is being deleted.
func (r *Reconciler) namespace(ctx context.Context, name string) (exists, terminating bool, err error) {
	ns := resolve.NamespaceMetadata()
	err = r.client.Get(ctx, types.NamespacedName{Name: name}, ns)
	switch {
	case kerrors.IsNotFound(err):
		return false, false, nil
	case kerrors.IsForbidden(err): // A namespaced operator cannot read namespaces.
		probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, GenerateName: "probe-"}}
		err := r.client.Create(ctx, probe, client.DryRunAll)
		return true, kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), nil
	}
	return true, ns.DeletionTimestamp != nil, errors.Wrap(err, "cannot read the namespace")
}
