package target

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// What is there is changed by server-side apply and by patches of managedFields, never by an update.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete

// A Writer writes Secrets. Its client must read live, never from a cache.
type Writer struct {
	client client.Client
}

// NewWriter returns a Writer.
func NewWriter(c client.Client) *Writer { return &Writer{client: c} }

// Get reads a Secret live; nil if there is none.
func (w *Writer) Get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	if err := w.client.Get(ctx, key, s); err != nil {
		return nil, Classify(client.IgnoreNotFound(err))
	}
	return s, nil
}

// Create creates the Secret with a POST, the only verb that cannot overwrite. An AlreadyExists
// error means that a cache was behind: read live and decide again.
func (w *Writer) Create(ctx context.Context, d Desired) (*corev1.Secret, error) {
	if err := small(d.Data); err != nil {
		return nil, err
	}
	d.Mark.Created = true
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   d.Namespace,
			Name:        d.Name,
			Labels:      d.Labels,
			Annotations: d.annotations(),
		},
		Type: d.Type,
		Data: d.Data,
	}
	if d.Immutable {
		s.Immutable = &d.Immutable
	}
	if d.Owner != nil {
		s.OwnerReferences = []metav1.OwnerReference{*d.Owner}
	}
	if err := w.client.Create(ctx, s, client.FieldOwner(Manager(d.Mark.Name))); err != nil {
		return nil, Classify(err)
	}
	return s, nil
}

// Contest says which field managers of other ExternalSecrets are dead, whose keys are taken over;
// which are older than the writer, to whom it yields the keys that both hold; and which owners are
// gone, whose references are dropped. All may be nil: then all others live, and are younger.
type Contest struct {
	Dead  func(manager string) bool
	Older func(manager string) bool
	Gone  func(owner metav1.OwnerReference) bool
}

// Yield returns what is left when the keys, labels and annotations are taken out that belong to other
// living ExternalSecrets, and the names of those: of a key its own, of the others with labelPrefix or
// annotationPrefix. Where two hold one already, because they applied the equal value and the API server
// saw no conflict, the later object lets go.
func (d Desired) Yield(entries []metav1.ManagedFieldsEntry, c Contest) (Desired, []string) {
	manager := Manager(d.Mark.Name)
	rivals := map[string]*fieldpath.Set{}
	for _, e := range entries {
		if e.Manager != manager && OfExternalSecret(e.Manager) {
			rivals[e.Manager] = union(rivals[e.Manager], decode(e))
		}
	}
	if len(rivals) == 0 {
		return d, nil
	}
	held := FieldsOf(entries, manager)
	lost := func(own []string, key string, path ...any) bool {
		shared, field := slices.Contains(own, key), fieldpath.MakePathOrDie(append(path, key)...)
		for m, holds := range rivals {
			if holds.Has(field) && !c.dead(m) && (!shared || c.older(m)) {
				return true
			}
		}
		return false
	}
	return d.without(
		func(key string) bool { return lost(held.Data, key, "data") },
		func(key string) bool { return !ours(key) && lost(held.Labels, key, "metadata", "labels") },
		func(key string) bool { return lost(held.Annotations, key, "metadata", "annotations") },
	)
}

// What begins the names of labels and annotations among those of keys, which have no slash.
const (
	labelPrefix      = "labels/"
	annotationPrefix = "annotations/"
)

// Named returns a Desired of the fields that have the names that Yield gave them.
func Named(m policy.Mark, names []string) Desired {
	d := Desired{Data: map[string][]byte{}, Labels: map[string]string{}, Annotations: map[string]string{}, Mark: m}
	for _, n := range names {
		label, isLabel := strings.CutPrefix(n, labelPrefix)
		annotation, isAnnotation := strings.CutPrefix(n, annotationPrefix)
		switch {
		case isLabel:
			d.Labels[label] = ""
		case isAnnotation:
			d.Annotations[annotation] = ""
		default:
			d.Data[n] = nil
		}
	}
	return d
}

// Held returns a Desired of the fields of a Secret that the ExternalSecret of the mark holds or has
// left to others, without their values.
func Held(entries []metav1.ManagedFieldsEntry, m policy.Mark) Desired {
	d := Named(m, m.Yields)
	held := FieldsOf(entries, Manager(m.Name))
	for _, k := range held.Data {
		d.Data[k] = nil
	}
	for _, k := range held.Labels {
		d.Labels[k] = ""
	}
	for _, k := range held.Annotations {
		if k != MarkKey(m.Name) {
			d.Annotations[k] = ""
		}
	}
	return d
}

// ours reports whether a label is one that this project sets, which several objects may share.
func ours(label string) bool {
	return strings.HasSuffix(label, v1alpha1.ManagedLabelSuffix) || strings.HasPrefix(label, v1alpha1.StoreLabelPrefix)
}

// Apply writes all keys to a Secret that was read live in the same reconcile; if it has changed
// since, the error is a Conflict. Keys that persons and tools wrote are taken over, keys of other
// living ExternalSecrets are not: the names of those are returned. Since the write is refused if
// anything has changed after the read, what the read shows of the holders is also what the answer
// will show.
func (w *Writer) Apply(ctx context.Context, live *corev1.Secret, d Desired, c Contest) (*corev1.Secret, []string, error) {
	d, yielded := d.Yield(live.ManagedFields, c)
	d.Mark.Created = d.Mark.Created || Marks(live.Annotations)[d.Mark.Name].Created
	if err := fits(live, d); err != nil {
		return nil, nil, err
	}
	live, err := w.fold(ctx, live, d, c)
	if err != nil {
		return nil, nil, err
	}
	live, err = w.apply(ctx, live, d)
	return live, yielded, err
}

func (c Contest) dead(m string) bool  { return c.Dead != nil && c.Dead(m) }
func (c Contest) older(m string) bool { return c.Older != nil && c.Older(m) }

func (c Contest) gone(r metav1.OwnerReference) bool { return c.Gone != nil && c.Gone(r) }

// without returns a copy without the keys, labels and annotations that are lost, and their names.
func (d Desired) without(key, label, annotation func(string) bool) (Desired, []string) {
	var names []string
	d.Data = drop(d.Data, key, "", &names)
	d.Labels = drop(d.Labels, label, labelPrefix, &names)
	d.Annotations = drop(d.Annotations, annotation, annotationPrefix, &names)
	slices.Sort(names)
	if len(names) > 0 {
		d.Mark.Yields = names
		d.Seal()
	}
	return d, names
}

// drop returns m without what is lost, and adds the names of that, each behind prefix. It changes a copy.
func drop[V any](m map[string]V, lost func(string) bool, prefix string, names *[]string) map[string]V {
	left := m
	for k := range m {
		if !lost(k) {
			continue
		}
		if len(left) == len(m) {
			left = maps.Clone(m)
		}
		delete(left, k)
		*names = append(*names, prefix+k)
	}
	return left
}

// Own brings ownerReference and mark in line, and leaves the data as it is. The fields that we hold
// are taken from the live Secret and applied again, since an apply without them would remove them.
func (w *Writer) Own(ctx context.Context, live *corev1.Secret, d Desired, c Contest) (*corev1.Secret, error) {
	held := FieldsOf(live.ManagedFields, Manager(d.Mark.Name))
	if d.Type != "" {
		d.Type = live.Type
	}
	d.Immutable = held.Immutable
	d.Data = map[string][]byte{}
	for _, k := range held.Data {
		d.Data[k] = live.Data[k]
	}
	labels := maps.Clone(d.Labels)
	d.Labels = map[string]string{}
	for k, v := range labels {
		if strings.HasSuffix(k, v1alpha1.ManagedLabelSuffix) {
			d.Labels[k] = v // Without it the Secret is not watched.
		}
	}
	for _, k := range held.Labels {
		d.Labels[k] = live.Labels[k]
	}
	d.Annotations = map[string]string{}
	for _, k := range held.Annotations {
		if k != MarkKey(d.Mark.Name) {
			d.Annotations[k] = live.Annotations[k]
		}
	}
	// What the mark says of the data stays, also where it is not so any more: that is drift, and shall
	// still be seen.
	if mark := Marks(live.Annotations)[d.Mark.Name]; mark.UID == d.Mark.UID {
		d.Mark.Hash, d.Mark.Inputs, d.Mark.Fields, d.Mark.Yields = mark.Hash, mark.Inputs, mark.Fields, mark.Yields
	} else {
		d.Seal()
	}
	d.Mark.Created = d.Mark.Created || Marks(live.Annotations)[d.Mark.Name].Created
	live, err := w.fold(ctx, live, d, c)
	if err != nil {
		return nil, err
	}
	return w.apply(ctx, live, d)
}

// Release takes away all that we wrote to a Secret that was read live, and leaves the rest.
func (w *Writer) Release(ctx context.Context, live *corev1.Secret, d Desired) error {
	d = Desired{NamespacedName: d.NamespacedName, Mark: d.Mark}
	live, err := w.fold(ctx, live, d, Contest{})
	if err != nil {
		return err
	}
	_, err = w.applyConfiguration(ctx, d, guarded(live))
	return err
}

// Delete deletes a Secret that was read live in the same reconcile; if it has changed since, the
// error is a Conflict.
func (w *Writer) Delete(ctx context.Context, live *corev1.Secret) error {
	return Classify(w.client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}))
}

func (w *Writer) apply(ctx context.Context, live *corev1.Secret, d Desired) (*corev1.Secret, error) {
	ac := guarded(live).
		WithData(d.Data).
		WithLabels(d.Labels).
		WithAnnotations(d.annotations())
	if d.Type != "" {
		ac.WithType(d.Type)
	}
	if d.Immutable {
		ac.WithImmutable(true)
	}
	if o := d.Owner; o != nil {
		ac.WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(o.APIVersion).WithKind(o.Kind).WithName(o.Name).WithUID(o.UID).
			WithController(*o.Controller).WithBlockOwnerDeletion(*o.BlockOwnerDeletion))
	}
	return w.applyConfiguration(ctx, d, ac)
}

// guarded returns what every apply holds: the guard against what happened after the read.
func guarded(live *corev1.Secret) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(live.Name, live.Namespace).WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
}

func (w *Writer) applyConfiguration(ctx context.Context, d Desired, ac *corev1ac.SecretApplyConfiguration) (*corev1.Secret, error) {
	body, err := json.Marshal(ac)
	if err != nil {
		return nil, errors.New("cannot encode the Secret")
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	err = w.client.Patch(ctx, s, client.RawPatch(types.ApplyPatchType, body), client.ForceOwnership, client.FieldOwner(Manager(d.Mark.Name)))
	if err != nil {
		return nil, Classify(err)
	}
	return s, nil
}

// fits returns an error for what no write can change.
func fits(live *corev1.Secret, d Desired) error {
	if d.Type != "" && live.Type != d.Type {
		return invalid("the Secret has type %q and cannot get type %q; delete the Secret, it is created again with the new type", live.Type, d.Type)
	}
	result := maps.Clone(live.Data)
	if result == nil {
		result = map[string][]byte{}
	}
	for _, k := range FieldsOf(live.ManagedFields, Manager(d.Mark.Name)).Data {
		delete(result, k)
	}
	maps.Copy(result, d.Data)
	if live.Immutable != nil && *live.Immutable && !maps.EqualFunc(result, live.Data, bytes.Equal) {
		return invalid("the Secret is immutable; delete it, it is created again with the new values")
	}
	return small(result)
}

// small returns an error for more data than a Secret can hold.
func small(data map[string][]byte) error {
	size := 0
	for _, v := range data {
		size += len(v)
	}
	if size <= corev1.MaxSecretSize {
		return nil
	}
	return invalid("the Secret would hold %d bytes, and the API server takes at most %d; ask for fewer or smaller keys, or spread them over several ExternalSecrets", size, corev1.MaxSecretSize)
}
