package target

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fold moves into our Apply entry what would stay behind otherwise: apply cannot remove a key that
// another entry holds, too, not even with force. Those are the entry of our own create, and, where
// the value is already the one we want, the keys that a person, a tool or a dead ExternalSecret
// wrote. (Where the value differs, the forced apply takes the key alone.)
func (w *Writer) fold(ctx context.Context, live *corev1.Secret, d Desired, c Contest) (*corev1.Secret, error) {
	manager := Manager(d.Mark.Name)
	s := live.DeepCopy()
	if err := csaupgrade.UpgradeManagedFields(s, sets.New(manager), manager); err != nil {
		return nil, errors.New("cannot read the managedFields of the Secret")
	}
	entries, err := takeOver(s.ManagedFields, manager, d.held(live), c.dead)
	if err != nil {
		return nil, err
	}
	if same(entries, live.ManagedFields) {
		return live, nil
	}
	// Replacing the resourceVersion makes the API server compare it.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	})
	if err != nil {
		return nil, errors.New("cannot encode managedFields")
	}
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
	if err := w.client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(manager)); err != nil {
		return nil, classify(err)
	}
	return out, nil
}

// held returns the paths that we want and that already have our value.
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
	return set
}

// takeOver moves paths from the entries of others to our Apply entry. Entries of living
// ExternalSecrets are left.
func takeOver(entries []metav1.ManagedFieldsEntry, manager string, paths *fieldpath.Set, dead func(string) bool) ([]metav1.ManagedFieldsEntry, error) {
	taken := fieldpath.NewSet()
	var out []metav1.ManagedFieldsEntry
	ours := -1
	for _, e := range entries {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			ours = len(out)
		} else if !OfExternalSecret(e.Manager) || dead(e.Manager) {
			set := decode(e)
			if common := set.Intersection(paths); !common.Empty() {
				taken = taken.Union(common)
				if err := encode(&e, set.Difference(common)); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, e)
	}
	if taken.Empty() {
		return out, nil
	}
	if ours < 0 {
		now := metav1.Now()
		ours = len(out)
		out = append(out, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: "v1", FieldsType: "FieldsV1", Time: &now,
		})
	}
	return out, encode(&out[ours], decode(out[ours]).Union(taken))
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
