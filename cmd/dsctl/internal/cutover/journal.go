package cutover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// JournalLabel is on each ConfigMap of the journal. There is one for each object that was moved.
const JournalLabel = v1alpha1.Group + "/migration"

// entry is what the journal keeps of an object. Everything else is read from the cluster.
type entry struct {
	// UID is that of the object of External Secrets Operator.
	UID types.UID `json:"uid"`
	// Object is the object as it was, without status and what the API server adds.
	Object *unstructured.Unstructured `json:"object"`
	// Secret is the name of the Secret, SecretUID its UID.
	Secret    string    `json:"secret"`
	SecretUID types.UID `json:"secretUID"`
	Moved     bool      `json:"moved"`
}

// journalKey is the key of a ConfigMap of the journal.
const journalKey = "entry"

// journalName returns the name of the ConfigMap of an object. A name of an object with a prefix can be too long.
func journalName(name types.NamespacedName) types.NamespacedName {
	sum := sha256.Sum256([]byte("ExternalSecret/" + name.Name))
	return types.NamespacedName{Namespace: name.Namespace, Name: "dsctl-migration-" + hex.EncodeToString(sum[:8])}
}

// readEntry returns the entry of an object; nil if there is none.
func (c *Cutover) readEntry(ctx context.Context, name types.NamespacedName) (*entry, error) {
	m := &corev1.ConfigMap{}
	if absent, err := c.get(ctx, journalName(name), m); absent || err != nil {
		return nil, err
	}
	return parseEntry(m)
}

// parseEntry reads an entry. A user of the namespace can forge one. So it must be for an ExternalSecret
// of External Secrets Operator in the same namespace.
func parseEntry(m *corev1.ConfigMap) (*entry, error) {
	e := &entry{}
	err := json.Unmarshal([]byte(m.Data[journalKey]), e)
	if err != nil || e.Object == nil || e.Object.GetKind() != "ExternalSecret" || e.Object.GroupVersionKind().Group != esoGroup ||
		journalName(client.ObjectKeyFromObject(e.Object)) != client.ObjectKeyFromObject(m) {
		return nil, fmt.Errorf("the ConfigMap %s/%s is no entry of the journal: delete it", m.Namespace, m.Name)
	}
	return e, nil
}

// begin writes the entry of an object before anything is changed. It returns nil if the Secret does not exist.
func (c *Cutover) begin(ctx context.Context, u Unit) (*entry, error) {
	secret := &corev1.Secret{}
	if absent, err := c.get(ctx, target(u.From), secret); absent || err != nil {
		return nil, err
	}
	e := &entry{UID: u.From.GetUID(), Object: manifest(u.From), Secret: secret.Name, SecretUID: secret.UID}
	m, err := e.configMap()
	if err != nil {
		return nil, err
	}
	return e, c.Client.Create(ctx, m)
}

func (e *entry) configMap() (*corev1.ConfigMap, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	name := journalName(client.ObjectKeyFromObject(e.Object))
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{JournalLabel: "true"}},
		Data:       map[string]string{journalKey: string(raw)},
	}, nil
}

// manifest returns an object without its status and what the API server and controllers add.
func manifest(o *unstructured.Unstructured) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{"spec": o.DeepCopy().Object["spec"]}}
	m.SetGroupVersionKind(o.GroupVersionKind())
	m.SetNamespace(o.GetNamespace())
	m.SetName(o.GetName())
	m.SetLabels(o.GetLabels())
	m.SetAnnotations(o.GetAnnotations())
	return m
}

// finish records that an object is moved.
func (c *Cutover) finish(ctx context.Context, e entry) error {
	e.Moved = true
	m, err := e.configMap()
	if err != nil {
		return err
	}
	return c.Client.Update(ctx, m)
}

// entries returns the journal of a namespace, or of all if that is "".
func (c *Cutover) entries(ctx context.Context, namespace string) ([]entry, error) {
	list := &corev1.ConfigMapList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{JournalLabel: "true"}); err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	var all []entry
	for i := range list.Items {
		if e, err := parseEntry(&list.Items[i]); err == nil { // Others must not stop the command for all namespaces.
			all = append(all, *e)
		}
	}
	return all, nil
}

// Originals returns the objects of External Secrets Operator as they were before an earlier call stopped them.
func (c *Cutover) Originals(ctx context.Context, namespace string) (map[types.NamespacedName]*unstructured.Unstructured, error) {
	all, err := c.entries(ctx, namespace)
	originals := map[types.NamespacedName]*unstructured.Unstructured{}
	for _, e := range all {
		originals[client.ObjectKeyFromObject(e.Object)] = e.Object
	}
	return originals, err
}

// Revert gives back the objects of the journal in a namespace, or in all if that is "", whose labels match.
func (c *Cutover) Revert(ctx context.Context, namespace string, matches func(labels map[string]string) bool) ([]Result, error) {
	entries, err := c.entries(ctx, namespace)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return !matches(e.Object.GetLabels()) })
	slices.SortFunc(entries, func(a, b entry) int {
		return strings.Compare(a.Object.GetNamespace()+"/"+a.Object.GetName(), b.Object.GetNamespace()+"/"+b.Object.GetName())
	})
	return each(c, entries, func(e entry) Result {
		r := Result{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName(), Outcome: Reverted}
		if manager := gitOps(e.Object); manager != "" && !c.ReconciliationSuspended {
			r.Outcome, r.Reason = Left, manager+" manages it and would take the change back; suspend that, and use --reconciliation-suspended"
		} else if err := c.giveBack(ctx, e); err != nil {
			r.Outcome, r.Reason = Failed, err.Error()
		}
		return r
	}), nil
}

// giveBack undoes the move of an object, however far it came. The Secret stays as it is.
func (c *Cutover) giveBack(ctx context.Context, e entry) error {
	for _, act := range []func(context.Context, entry) error{c.deleteOurs, c.returnSecret, c.restore} {
		if err := act(ctx, e); err != nil {
			return err
		}
	}
	name := journalName(client.ObjectKeyFromObject(e.Object))
	return client.IgnoreNotFound(c.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}))
}

// deleteOurs deletes the ExternalSecret of direct-secrets without its Secret, and waits until it no longer exists.
func (c *Cutover) deleteOurs(ctx context.Context, e entry) error {
	name := client.ObjectKeyFromObject(e.Object)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.Timeout, true, func(ctx context.Context) (bool, error) {
		to := &v1alpha1.ExternalSecret{}
		absent, err := c.get(ctx, name, to)
		if absent || err != nil || (to.Annotations[fromAnnotation] != string(e.UID) && !e.Moved) {
			return true, err // One that was not created here stays.
		}
		if to.DeletionTimestamp == nil {
			err = c.Client.Delete(ctx, to, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &to.UID})
		}
		return false, client.IgnoreNotFound(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.New("the ExternalSecret of direct-secrets is still being deleted; run the command again")
	}
	return err
}

// returnSecret removes what direct-secrets has added to the metadata of the Secret, and names External Secrets Operator
// as the manager of its keys. The operator adds the rest.
func (c *Cutover) returnSecret(ctx context.Context, e entry) error {
	for {
		s := &corev1.Secret{}
		absent, err := c.get(ctx, types.NamespacedName{Namespace: e.Object.GetNamespace(), Name: e.Secret}, s)
		if absent || err != nil {
			return err
		}
		err = c.patchMetadata(ctx, s, func(meta *metav1.PartialObjectMetadata) {
			name, others := e.Object.GetName(), false
			for i, f := range meta.ManagedFields {
				switch {
				case f.Manager == inspect.FieldManager(name):
					meta.ManagedFields[i].Manager, meta.ManagedFields[i].Operation = esoManager(name), metav1.ManagedFieldsOperationUpdate
				case strings.HasPrefix(f.Manager, v1alpha1.FieldManagerPrefix):
					others = true
				}
			}
			delete(meta.Annotations, inspect.MarkKey(name))
			if others {
				return // Another ExternalSecret of direct-secrets writes the Secret, too.
			}
			ours := func(name, _ string) bool { return isOurs(name) }
			maps.DeleteFunc(meta.Labels, ours)
			maps.DeleteFunc(meta.Annotations, ours)
		})
		if !kerrors.IsConflict(err) {
			return err
		}
	}
}

// restore makes the object of External Secrets Operator what it was, or creates it again.
func (c *Cutover) restore(ctx context.Context, e entry) error {
	for {
		from := &unstructured.Unstructured{}
		from.SetGroupVersionKind(e.Object.GroupVersionKind())
		absent, err := c.get(ctx, client.ObjectKeyFromObject(e.Object), from)
		switch {
		case err != nil:
			return err
		case absent:
			return c.Client.Create(ctx, e.Object.DeepCopy())
		case from.GetDeletionTimestamp() != nil:
			return errors.New("the object of External Secrets Operator is still being deleted; run the command again")
		case !letGo(from):
			return nil // Nothing has changed it, or its manifest was applied again.
		}
		if err := e.undo(from); err != nil {
			return err
		}
		if err := c.Client.Update(ctx, from); !kerrors.IsConflict(err) {
			return err
		}
		time.Sleep(pollInterval)
	}
}

// undo sets the fields that made External Secrets Operator leave the Secret alone to what they were. Other fields may have
// changed since.
func (e entry) undo(from *unstructured.Unstructured) error {
	for _, path := range [][]string{{"refreshInterval"}, {"refreshPolicy"}, {"target", "creationPolicy"}, {"target", "deletionPolicy"}} {
		path = append([]string{"spec"}, path...)
		was, found, err := unstructured.NestedFieldCopy(e.Object.Object, path...)
		switch {
		case err != nil:
			return err
		case found:
			err = unstructured.SetNestedField(from.Object, was, path...)
		default:
			unstructured.RemoveNestedField(from.Object, path...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
