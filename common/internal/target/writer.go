package target

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
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
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
)

// Existing Secrets are changed by server-side apply and by patches of managedFields, never by an update.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete

// A Writer writes Secrets. Its client must read live, never from a cache.
type Writer struct {
	client client.Client
	audit  *slog.Logger
}

// NewWriter returns a Writer. If audit is not nil, it gets a line for each key of a Secret that is added, changed or removed.
func NewWriter(c client.Client, audit *slog.Logger) *Writer { return &Writer{client: c, audit: audit} }

// Get reads a Secret live; nil if it does not exist.
func (w *Writer) Get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	if err := w.client.Get(ctx, key, s); err != nil {
		return nil, Classify(client.IgnoreNotFound(err))
	}
	return s, nil
}

// Create creates the Secret with a POST, the only verb that cannot overwrite. An AlreadyExists error means that the
// cache was outdated: the caller must read live and decide again.
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
	ctx, span := trace.Start(ctx, trace.Write, "directsecrets.verb", "create")
	err := w.client.Create(ctx, s, client.FieldOwner(Manager(d.Mark.Name)))
	span.End(trace.Result(err))
	if err != nil {
		return nil, Classify(err)
	}
	w.record(ctx, s, d.Mark.Name, nil, s.Data)
	return s, nil
}

// record logs the names of the keys of a Secret that a write has changed, and no value.
func (w *Writer) record(ctx context.Context, s *corev1.Secret, object string, before, after map[string][]byte) {
	if w.audit == nil {
		return
	}
	n := compare(after, before, bytes.Equal)
	for _, change := range []struct {
		action string
		keys   []string
	}{{"added", n.Added}, {"changed", n.Changed}, {"removed", n.Removed}} {
		for _, key := range change.keys {
			w.audit.InfoContext(ctx, "key of a Secret "+change.action,
				"action", change.action, "key", key, "namespace", s.Namespace, "secret", s.Name, "uid", s.UID, "externalSecret", object)
		}
	}
}

// Others answers questions about other ExternalSecrets. ManagerDeleted reports that a field manager is of a deleted one, whose
// keys are taken over. Older reports that it is of an older one, which keeps the keys that both hold. OwnerDeleted reports that
// an owner is deleted, whose reference is removed. A nil function returns false.
type Others struct {
	ManagerDeleted func(manager string) bool
	Older          func(manager string) bool
	OwnerDeleted   func(owner metav1.OwnerReference) bool
}

// WithoutBlocked removes the keys, labels and annotations that other existing ExternalSecrets hold. It returns the rest and the
// names of the removed ones; those of labels and annotations have labelPrefix or annotationPrefix. If two objects
// applied the equal value and so both hold a field, the younger one gives it up.
func (d Desired) WithoutBlocked(entries []metav1.ManagedFieldsEntry, c Others) (Desired, []string) {
	manager := Manager(d.Mark.Name)
	otherManagers := map[string]*fieldpath.Set{}
	for _, e := range entries {
		if e.Manager != manager && OfExternalSecret(e.Manager) {
			otherManagers[e.Manager] = union(otherManagers[e.Manager], decode(e))
		}
	}
	if len(otherManagers) == 0 {
		return d, nil
	}
	held := FieldsOf(entries, manager)
	lost := func(own []string, key string, path ...any) bool {
		shared, field := slices.Contains(own, key), fieldpath.MakePathOrDie(append(path, key)...)
		for m, holds := range otherManagers {
			if holds.Has(field) && !c.managerDeleted(m) && (!shared || c.older(m)) {
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

// The prefixes of labels and annotations in a list of names. Keys of data have no slash.
const (
	labelPrefix      = "labels/"
	annotationPrefix = "annotations/"
)

// Named returns a Desired with the fields that have these names, as returned by WithoutBlocked.
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

// Held returns a Desired with the fields of a Secret that the ExternalSecret of the mark holds, or has left to others,
// without their values.
func Held(entries []metav1.ManagedFieldsEntry, m policy.Mark) Desired {
	d := Named(m, m.Blocked)
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

// ours reports whether this project sets a label. Several objects may share such a label.
func ours(label string) bool {
	return strings.HasSuffix(label, v1alpha1.ManagedLabelSuffix) || strings.HasPrefix(label, v1alpha1.StoreLabelPrefix)
}

// Apply writes all keys to a Secret that was read live in the same reconcile. If the Secret has changed since, it
// returns a Conflict. Keys of users and tools are taken over. Keys of other existing ExternalSecrets are not, and their
// names are returned. A write is accepted only if nothing has changed since the read, so the managers in live are also
// those at the time of the write.
func (w *Writer) Apply(ctx context.Context, live *corev1.Secret, d Desired, c Others) (*corev1.Secret, []string, error) {
	d, blocked := d.WithoutBlocked(live.ManagedFields, c)
	d.Mark.Created = d.Mark.Created || Marks(live.Annotations)[d.Mark.Name].Created
	if err := fits(live, d); err != nil {
		return nil, nil, err
	}
	live, err := w.fold(ctx, live, d, c)
	if err != nil {
		return nil, nil, err
	}
	live, err = w.apply(ctx, live, d)
	return live, blocked, err
}

func (c Others) managerDeleted(m string) bool { return c.ManagerDeleted != nil && c.ManagerDeleted(m) }
func (c Others) older(m string) bool          { return c.Older != nil && c.Older(m) }

func (c Others) ownerDeleted(r metav1.OwnerReference) bool {
	return c.OwnerDeleted != nil && c.OwnerDeleted(r)
}

// without returns a copy without the lost keys, labels and annotations, and the names of those.
func (d Desired) without(key, label, annotation func(string) bool) (Desired, []string) {
	var names []string
	d.Data = drop(d.Data, key, "", &names)
	d.Labels = drop(d.Labels, label, labelPrefix, &names)
	d.Annotations = drop(d.Annotations, annotation, annotationPrefix, &names)
	slices.Sort(names)
	if len(names) > 0 {
		d.Mark.Blocked = names
		d.Seal()
	}
	return d, names
}

// drop returns m without the lost entries, and adds their names with prefix. It changes a copy.
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

// Own updates ownerReference and mark, and leaves the data unchanged. It applies the fields that we hold again with
// their live values, because an apply without them would remove them.
func (w *Writer) Own(ctx context.Context, live *corev1.Secret, d Desired, c Others) (*corev1.Secret, error) {
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
	// The mark keeps its hashes, even if the data has changed since: the drift must still be visible.
	if mark := Marks(live.Annotations)[d.Mark.Name]; mark.UID == d.Mark.UID {
		d.Mark.Hash, d.Mark.Inputs, d.Mark.Fields, d.Mark.Blocked = mark.Hash, mark.Inputs, mark.Fields, mark.Blocked
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

// Release removes everything that we wrote to a Secret that was read live, and leaves the rest.
func (w *Writer) Release(ctx context.Context, live *corev1.Secret, d Desired) error {
	d = Desired{NamespacedName: d.NamespacedName, Mark: d.Mark}
	live, err := w.fold(ctx, live, d, Others{})
	if err != nil {
		return err
	}
	_, err = w.applyConfiguration(ctx, live, d, guarded(live))
	return err
}

// Delete deletes a Secret that was read live in the same reconcile. If the Secret has changed since, it returns a
// Conflict.
func (w *Writer) Delete(ctx context.Context, live *corev1.Secret) error {
	ctx, span := trace.Start(ctx, trace.Write, "directsecrets.verb", "delete")
	err := w.client.Delete(ctx, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	span.End(trace.Result(err))
	if err != nil {
		return Classify(err)
	}
	w.record(ctx, live, "", live.Data, nil)
	return nil
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
	return w.applyConfiguration(ctx, live, d, ac)
}

// guarded returns the start of every apply: uid and resourceVersion, which make it fail if the Secret has changed since
// the read.
func guarded(live *corev1.Secret) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(live.Name, live.Namespace).WithUID(live.UID).WithResourceVersion(live.ResourceVersion)
}

func (w *Writer) applyConfiguration(ctx context.Context, live *corev1.Secret, d Desired, ac *corev1ac.SecretApplyConfiguration) (*corev1.Secret, error) {
	body, err := json.Marshal(ac)
	if err != nil {
		return nil, errors.New("cannot encode the Secret")
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	ctx, span := trace.Start(ctx, trace.Write, "directsecrets.verb", "apply")
	err = w.client.Patch(ctx, s, client.RawPatch(types.ApplyPatchType, body), client.ForceOwnership, client.FieldOwner(Manager(d.Mark.Name)))
	span.End(trace.Result(err))
	if err != nil {
		return nil, Classify(err)
	}
	w.record(ctx, s, d.Mark.Name, live.Data, s.Data)
	return s, nil
}

// fits returns an error if no write can produce the wanted Secret.
func fits(live *corev1.Secret, d Desired) error {
	if d.Type != "" && live.Type != d.Type {
		return invalid("the Secret has type %q, which cannot change to %q; delete the Secret, it is created again with the new type", live.Type, d.Type)
	}
	result := applied(live.Data, FieldsOf(live.ManagedFields, Manager(d.Mark.Name)).Data, d.Data)
	if live.Immutable != nil && *live.Immutable && !maps.EqualFunc(result, live.Data, bytes.Equal) {
		return invalid("the Secret is immutable; delete it, it is created again with the new values")
	}
	return small(result)
}

// applied returns entries of a Secret after an apply: the present ones without those that are no longer wanted, and the
// wanted ones. held are the names of the entries that the object has written.
func applied[V any](live map[string]V, held []string, wanted map[string]V) map[string]V {
	result := map[string]V{}
	maps.Copy(result, live)
	for _, k := range held {
		delete(result, k)
	}
	maps.Copy(result, wanted)
	return result
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
	return invalid("the Secret would have %d bytes, and the API server accepts at most %d; use fewer or smaller keys, or split the ExternalSecret", size, corev1.MaxSecretSize)
}
