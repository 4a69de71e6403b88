package target

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// unclaimed is the field manager that the API server uses for fields that existed before managedFields
// (k8s.io/apimachinery/pkg/util/managedfields/internal).
const unclaimed = "before-first-apply"

// fold moves fields from other managedFields entries into our Apply entry. An apply, even a forced one, cannot remove a
// key that another entry holds, too. So it moves the fields of our own create. It also moves keys with the wanted value
// that a user, a tool or a deleted ExternalSecret wrote. (For another value, the forced apply moves the key by itself.)
//
// Fields of others that no entry names get a manager, because an apply that drops the last managed field also removes
// those. The same holds for a type that this object no longer sets.
//
// An apply that removes nothing from a Secret that we alone wrote needs no fold, so a first change is one write.
func (w *Writer) fold(ctx context.Context, live *corev1.Secret, d Desired, c Others) (*corev1.Secret, error) {
	manager := Manager(d.Mark.Name)
	if d.keeps(live) {
		return live, nil
	}
	s := live.DeepCopy()
	if err := csaupgrade.UpgradeManagedFields(s, sets.New(manager), manager); err != nil {
		return nil, errors.New("cannot read the managedFields of the Secret")
	}
	entries, err := takeOver(s.ManagedFields, manager, d.held(live), d.owners(live, c), present(live), c.managerDeleted)
	if err == nil && d.Type == "" && FieldsOf(entries, manager).Type {
		// Without a manager the type would fall back to Opaque, which the API server refuses.
		entries, err = claim(entries, unclaimed, metav1.ManagedFieldsOperationUpdate, fieldpath.NewSet(fieldpath.MakePathOrDie("type")))
	}
	if err != nil {
		return nil, err
	}
	if same(entries, live.ManagedFields) {
		return live, nil
	}
	// Replacing the resourceVersion makes the API server compare it.
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	})
	if err != nil {
		return nil, errors.New("cannot encode managedFields")
	}
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
	if err := w.client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(manager)); err != nil {
		return nil, Classify(err)
	}
	return out, nil
}

// keeps reports whether all fields of a Secret are ours, and wanted.
func (d *Desired) keeps(live *corev1.Secret) bool {
	known := fieldpath.NewSet()
	for _, e := range live.ManagedFields {
		if e.Manager != Manager(d.Mark.Name) || e.Subresource != "" {
			return false
		}
		known = known.Union(decode(e))
	}
	for _, r := range live.OwnerReferences {
		if d.Owner == nil || d.Owner.UID != r.UID {
			return false
		}
	}
	is, wants := fieldsIn(known), newFields(maps.Keys(d.Data), maps.Keys(d.Labels), maps.Keys(d.annotations()))
	return present(live).Difference(known).Empty() && (d.Type != "" || !is.Type) && (d.Immutable || !is.Immutable) &&
		within(is.Data, wants.Data) && within(is.Labels, wants.Labels) && within(is.Annotations, wants.Annotations)
}

// within reports whether all names are among others, which are sorted.
func within(names, others []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, found := slices.BinarySearch(others, name)
		return !found
	})
}

// held returns the paths that become ours: wanted fields that already have our value, and our mark with any value.
func (d *Desired) held(live *corev1.Secret) *fieldpath.Set {
	set := fieldpath.NewSet()
	for k, v := range d.Data {
		if old, ok := live.Data[k]; ok && bytes.Equal(old, v) {
			set.Insert(fieldpath.MakePathOrDie("data", k))
		}
	}
	for k, v := range d.Labels {
		if live.Labels[k] == v {
			set.Insert(fieldpath.MakePathOrDie("metadata", "labels", k))
		}
	}
	for k, v := range d.Annotations {
		if is, ok := live.Annotations[k]; ok && is == v {
			set.Insert(fieldpath.MakePathOrDie("metadata", "annotations", k))
		}
	}
	if key := MarkKey(d.Mark.Name); live.Annotations[key] != "" {
		set.Insert(fieldpath.MakePathOrDie("metadata", "annotations", key))
	}
	return set
}

// owners returns the paths of the ownerReferences that become ours, wanted or not: those that name us or a deleted
// ExternalSecret.
func (d *Desired) owners(live *corev1.Secret, c Others) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, r := range live.OwnerReferences {
		if r.UID != d.Mark.UID && (!ofExternalSecret(r) || !c.ownerDeleted(r)) {
			continue
		}
		set.Insert(ownerPath(r))
		for _, f := range []string{"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"} {
			set.Insert(append(ownerPath(r), fieldpath.PathElement{FieldName: &f}))
		}
	}
	return set
}

// present returns the paths of all keys, labels, annotations and owners.
func present(live *corev1.Secret) *fieldpath.Set {
	set := fieldpath.NewSet()
	for k := range live.Data {
		set.Insert(fieldpath.MakePathOrDie("data", k))
	}
	for k := range live.Labels {
		set.Insert(fieldpath.MakePathOrDie("metadata", "labels", k))
	}
	for k := range live.Annotations {
		set.Insert(fieldpath.MakePathOrDie("metadata", "annotations", k))
	}
	for _, r := range live.OwnerReferences {
		set.Insert(ownerPath(r))
	}
	return set
}

func ownerPath(r metav1.OwnerReference) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(r.UID)))
}

// takeOver moves the given paths from the entries of others to our Apply entry. From existing ExternalSecrets it takes
// only owners. Present paths without an entry are given to us if they are ours, otherwise to unclaimed.
func takeOver(entries []metav1.ManagedFieldsEntry, manager string, fields, owners, all *fieldpath.Set, managerDeleted func(string) bool) ([]metav1.ManagedFieldsEntry, error) {
	ours := fields.Union(owners)
	known, taken := fieldpath.NewSet(), fieldpath.NewSet()
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		set := decode(e)
		known = known.Union(set)
		common := set.Intersection(ours)
		if OfExternalSecret(e.Manager) && !common.Empty() && e.Manager != manager && !managerDeleted(e.Manager) {
			common = set.Intersection(owners)
		}
		if e.Manager == manager || common.Empty() {
			out = append(out, e)
			continue
		}
		taken = taken.Union(common)
		rest := set.Difference(common)
		if rest.Empty() {
			continue
		}
		if err := encode(&e, rest); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	stray := all.Difference(known)
	out, err := claim(out, manager, metav1.ManagedFieldsOperationApply, taken.Union(stray.Intersection(ours)))
	if err != nil {
		return nil, err
	}
	return claim(out, unclaimed, metav1.ManagedFieldsOperationUpdate, stray.Difference(ours))
}

// claim adds paths to the entry of a manager, and creates the entry if needed.
func claim(entries []metav1.ManagedFieldsEntry, manager string, op metav1.ManagedFieldsOperationType, paths *fieldpath.Set) ([]metav1.ManagedFieldsEntry, error) {
	if paths.Empty() {
		return entries, nil
	}
	i := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == op && e.Subresource == ""
	})
	if i < 0 {
		now := metav1.Now()
		i = len(entries)
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: op, APIVersion: "v1", FieldsType: "FieldsV1", Time: &now,
		})
	}
	return entries, encode(&entries[i], decode(entries[i]).Union(paths))
}

func encode(e *metav1.ManagedFieldsEntry, set *fieldpath.Set) error {
	raw, err := set.ToJSON()
	if err != nil {
		return errors.New("cannot encode managedFields")
	}
	e.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return nil
}

func same(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Manager != b[i].Manager || a[i].Operation != b[i].Operation || !decode(a[i]).Equals(decode(b[i])) {
			return false
		}
	}
	return true
}
