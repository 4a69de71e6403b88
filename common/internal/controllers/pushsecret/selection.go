package pushsecret

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/room"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// selectionOf returns the selection of an object. c must read live.
func selectionOf(c client.Reader, objects *room.Reader, ps *v1alpha1.PushSecret, m *sourceMemory, now time.Time) (selection, error) {
	switch s := ps.Spec.Selector; {
	case s.GeneratorRef != nil:
		return &generatedValues{client: c, object: ps, generator: *s.GeneratorRef, memory: m, now: now}, nil
	case s.Secret.Selector == nil:
		return &namedSecret{client: c, ref: watch.SecretRef(ps.Namespace, s.Secret.Name)}, nil
	default:
		sel, err := metav1.LabelSelectorAsSelector(s.Secret.Selector)
		return &labelledSecrets{objects: objects, namespace: ps.Namespace, labels: sel}, errors.Wrap(err, "spec.selector.secret.selector")
	}
}

// namedSecret is the selection of a single Secret by name.
type namedSecret struct {
	client client.Reader
	ref    watch.ObjectRef
}

// list is needed where a label selector selects the Secrets.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list

func (n *namedSecret) readVersions(ctx context.Context, to *versions) error {
	m := resolve.SecretMetadata()
	err := client.IgnoreNotFound(n.client.Get(ctx, n.ref.NamespacedName, m))
	to.refs[n.ref] = plain(m.ResourceVersion)
	return err
}

func (n *namedSecret) room() int64 { return room.One }

func (n *namedSecret) read(ctx context.Context, held *room.Held, is refs) ([]corev1.Secret, string, error) {
	s := corev1.Secret{}
	err := held.Get(ctx, n.ref.NamespacedName, &s)
	if kerrors.IsNotFound(err) {
		return nil, "", provider.NewError(provider.NotFound, "Secret %q does not exist; create it or correct spec.selector.secret.name", n.ref.Name)
	}
	is[n.ref] = plain(s.ResourceVersion)
	return []corev1.Secret{s}, "", errors.Wrapf(err, "cannot read Secret %q", n.ref.Name)
}

// labelledSecrets is the selection of the Secrets of a namespace by labels.
type labelledSecrets struct {
	objects   *room.Reader
	namespace string
	labels    labels.Selector
}

func (l *labelledSecrets) ref() watch.ObjectRef {
	return watch.SecretsRef(l.namespace, l.labels.String())
}

func (l *labelledSecrets) list(ctx context.Context, from *room.Held, into client.ObjectList, opts ...client.ListOption) error {
	return from.List(ctx, into, append(opts, client.InNamespace(l.namespace), client.MatchingLabelsSelector{Selector: l.labels})...)
}

// versionsPage is how many metadata one request reads, and versionsHeld what they take: a tenant can give each Secret 256 KiB of annotations.
const versionsPage, versionsHeld = 10, 3 << 20

func (l *labelledSecrets) readVersions(ctx context.Context, to *versions) error {
	held, err := l.objects.Hold(ctx, l.namespace, versionsHeld)
	if err != nil {
		return err
	}
	defer held.Release()
	found, more := map[string]string{}, ""
	for first := true; first || more != ""; first = false {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := l.list(ctx, held, list, client.Limit(versionsPage), client.Continue(more)); err != nil {
			return err
		}
		for i := range list.Items {
			found[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		to.at, more = list.ResourceVersion, list.Continue
	}
	to.refs[l.ref()] = plain(watch.VersionOf(found))
	return nil
}

// selectedPage is how many Secrets one request reads.
const selectedPage = 2

// maxSelected limits all Secrets that are selected, in bytes: a tenant can label any number of large ones.
//
//limit:objects Secrets that `spec.selector.secret.selector` of a PushSecret selects | unit=bytes of values | `Invalid`, and the rest is not read. It holds before and after the template.
const maxSelected = 8 << 20

func (l *labelledSecrets) room() int64 { return selectedPage * room.One }

var errLarge = provider.NewError(provider.Invalid, "what spec.selector.secret.selector selects has more than %d MiB of values, with the template applied; split the object", maxSelected>>20)

func (l *labelledSecrets) read(ctx context.Context, held *room.Held, is refs) (all []corev1.Secret, generated string, err error) {
	found, size, more := map[string]string{}, 0, ""
	for first := true; first || more != ""; first = false {
		if err := held.Grow(ctx, int64(size)+l.room()); err != nil {
			return nil, "", err
		}
		list := &corev1.SecretList{}
		if err := l.list(ctx, held, list, client.Limit(selectedPage), client.Continue(more)); err != nil {
			return nil, "", errors.Wrap(err, "cannot list Secrets")
		}
		more = list.Continue
		for i := range list.Items {
			s := &list.Items[i]
			found[s.Name] = s.ResourceVersion
			for key, v := range s.Data {
				size += len(key) + len(v)
			}
			all = append(all, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels}, Data: s.Data})
		}
		if size > maxSelected {
			return nil, "", errLarge
		}
	}
	is[l.ref()] = plain(watch.VersionOf(found))
	if len(all) == 0 {
		return nil, "", provider.NewError(provider.NotFound, "no Secret has the labels of spec.selector.secret.selector; label one or correct the selector")
	}
	return all, "", nil
}
