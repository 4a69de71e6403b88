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

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// JournalLabel is on each ConfigMap of the journal. There is one for each object that was moved, in a namespace in which
// tenants cannot write: the way back creates and changes objects as the journal has them.
const JournalLabel = v1alpha1.Group + "/migration"

// entry is what the journal keeps of an object. Everything else is read from the cluster.
type entry struct {
	// UID is that of the object of External Secrets Operator.
	UID types.UID `json:"uid"`
	// Object is the object as it was, without status and what the API server adds.
	Object *unstructured.Unstructured `json:"object"`
	// Secret is the name of the Secret of an ExternalSecret, SecretUID its UID.
	Secret    string    `json:"secret,omitempty"`
	SecretUID types.UID `json:"secretUID,omitempty"`
	// Children are what a ClusterExternalSecret made.
	Children []child `json:"children,omitempty"`
	Moved    bool    `json:"moved"`
}

// journalKey is the key of a ConfigMap of the journal.
const journalKey = "entry"

// journalName returns the name of the ConfigMap of an object. A name of an object with a prefix can be too long.
func (o Options) journalName(from *unstructured.Unstructured) types.NamespacedName {
	sum := sha256.Sum256([]byte(from.GetKind() + "/" + from.GetNamespace() + "/" + from.GetName()))
	return types.NamespacedName{Namespace: o.JournalNamespace, Name: "dsctl-migration-" + hex.EncodeToString(sum[:16])}
}

// readEntry returns the entry of an object; nil if there is none.
func (c *Cutover) readEntry(ctx context.Context, from *unstructured.Unstructured) (*entry, error) {
	m := &corev1.ConfigMap{}
	if absent, err := c.get(ctx, c.journalName(from), m); absent || err != nil {
		return nil, err
	}
	return c.parseEntry(m)
}

// parseEntry reads an entry. It must be for the ExternalSecret or the PushSecret of External Secrets Operator by which the
// ConfigMap is named.
func (o Options) parseEntry(m *corev1.ConfigMap) (*entry, error) {
	e := &entry{}
	err := json.Unmarshal([]byte(m.Data[journalKey]), e)
	if err != nil || e.Object == nil || stops[e.Object.GetKind()] == nil || e.Object.GroupVersionKind().Group != esoGroup ||
		o.journalName(e.Object) != client.ObjectKeyFromObject(m) {
		return nil, fmt.Errorf("the ConfigMap %s/%s is no entry of the journal: delete it", m.Namespace, m.Name)
	}
	return e, nil
}

// begin writes the entry of an object before anything is changed. It returns nil if the Secret does not exist.
func (c *Cutover) begin(ctx context.Context, u Unit) (*entry, error) {
	e := &entry{UID: u.From.GetUID(), Object: manifest(u.From)}
	switch {
	case IsCluster(u.From):
		children, complete, err := c.children(ctx, u.From)
		if err != nil || !complete {
			return nil, err
		}
		e.Children = children
	case !isPush(u.From):
		secret := &corev1.Secret{}
		if absent, err := c.get(ctx, target(u.From), secret); absent || err != nil {
			return nil, err
		}
		e.Secret, e.SecretUID = secret.Name, secret.UID
	}
	m, err := c.configMap(*e)
	if err != nil {
		return nil, err
	}
	if err := c.Client.Create(ctx, m); err != nil {
		return nil, fmt.Errorf("cannot write the journal in the namespace %s; for another one use --journal-namespace: %w", m.Namespace, err)
	}
	return e, nil
}

// configMap returns the ConfigMap of an entry.
func (o Options) configMap(e entry) (*corev1.ConfigMap, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	name := o.journalName(e.Object)
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
	m, err := c.configMap(e)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": m.Data})
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch))
}

// entries returns the entries of the objects in a namespace, or in all if that is "", and a Result for each entry that
// cannot be read.
func (c *Cutover) entries(ctx context.Context, namespace string) (all []entry, damaged []Result, err error) {
	list := &corev1.ConfigMapList{}
	if err := c.Client.List(ctx, list, client.InNamespace(c.JournalNamespace), client.MatchingLabels{JournalLabel: "true"}); err != nil {
		return nil, nil, fmt.Errorf("cannot read the journal in the namespace %s; for another one use --journal-namespace: %w", c.JournalNamespace, err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		switch e, err := c.parseEntry(m); {
		case err != nil: // One entry must not stop the command for the others.
			damaged = append(damaged, Result{Kind: "ConfigMap", Namespace: m.Namespace, Name: m.Name, Outcome: Left, Reason: err.Error()})
		case namespace == "" || namespace == e.Object.GetNamespace():
			all = append(all, *e)
		}
	}
	return all, damaged, nil
}

// Originals returns the objects of External Secrets Operator as they were before an earlier call stopped them.
func (c *Cutover) Originals(ctx context.Context) ([]*unstructured.Unstructured, error) {
	all, _, err := c.entries(ctx, "")
	var originals []*unstructured.Unstructured
	for _, e := range all {
		originals = append(originals, e.Object)
	}
	return originals, err
}

// Revert gives back the objects of the journal in a namespace, or in all if that is "", whose labels match.
func (c *Cutover) Revert(ctx context.Context, namespace string, matches func(labels map[string]string) bool) ([]Result, error) {
	entries, damaged, err := c.entries(ctx, namespace)
	if err != nil {
		return nil, err
	}
	for _, r := range damaged {
		c.Report(r)
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return !matches(e.Object.GetLabels()) })
	slices.SortFunc(entries, func(a, b entry) int {
		return strings.Compare(a.Object.GetNamespace()+"/"+a.Object.GetName(), b.Object.GetNamespace()+"/"+b.Object.GetName())
	})
	return append(damaged, each(c, entries, func(e entry) Result {
		r := resultOf(e.Object)
		r.Outcome = Reverted
		if why := c.unsuspended(e.Object); why != "" {
			r.Outcome, r.Reason = Left, why
		} else if err := c.giveBack(ctx, e); err != nil {
			r.Outcome, r.Reason = Failed, err.Error()
		}
		return r
	})...), nil
}

// giveBack undoes the move of an object, however far it came. The Secret and the remote secrets stay as they are.
func (c *Cutover) giveBack(ctx context.Context, e entry) error {
	undo := []func(context.Context, entry) error{c.deleteOurs, c.returnSecret, c.restore}
	switch {
	case isPush(e.Object):
		undo = []func(context.Context, entry) error{c.deletePush, c.restore}
	case IsCluster(e.Object):
		undo = []func(context.Context, entry) error{c.deleteCluster, c.returnSecrets, c.restore}
	}
	for _, act := range undo {
		if err := act(ctx, e); err != nil {
			return err
		}
	}
	name := c.journalName(e.Object)
	return client.IgnoreNotFound(c.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}))
}

// deleteOurs deletes the ExternalSecret of direct-secrets without its Secret, and waits until it no longer exists.
func (c *Cutover) deleteOurs(ctx context.Context, e entry) error {
	to := &v1alpha1.ExternalSecret{}
	return c.deleteObject(ctx, e, to, func(ctx context.Context) error {
		return c.Client.Delete(ctx, to, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &to.UID})
	})
}

// deleteObject deletes the object of direct-secrets, and waits until it no longer exists. It reads it into to, and calls
// remove until it is being deleted.
func (c *Cutover) deleteObject(ctx context.Context, e entry, to client.Object, remove func(context.Context) error) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.Timeout, true, func(ctx context.Context) (bool, error) {
		absent, err := c.get(ctx, client.ObjectKeyFromObject(e.Object), to)
		if absent || err != nil || (to.GetAnnotations()[fromAnnotation] != string(e.UID) && !e.Moved) {
			return true, err // One that was not created here stays.
		}
		if to.GetDeletionTimestamp() == nil {
			err = remove(ctx)
		}
		if kerrors.IsConflict(err) {
			return false, nil
		}
		return false, client.IgnoreNotFound(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the %s of direct-secrets is still being deleted; run the command again", e.Object.GetKind())
	}
	return err
}

// returnSecret removes what direct-secrets has added to the metadata of the Secret, and names External Secrets Operator
// as the manager of its keys. The operator adds the rest.
func (c *Cutover) returnSecret(ctx context.Context, e entry) error {
	return c.returnSecretOf(ctx, child{Namespace: e.Object.GetNamespace(), Name: e.Object.GetName(), Secret: e.Secret})
}

// returnSecretOf returns the Secret of one ExternalSecret.
func (c *Cutover) returnSecretOf(ctx context.Context, of child) error {
	for {
		s := &corev1.Secret{}
		absent, err := c.get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Secret}, s)
		if absent || err != nil {
			return err
		}
		err = c.patchMetadata(ctx, s, func(meta *metav1.PartialObjectMetadata) {
			name, others := of.Name, false
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
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
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
		return c.patchFields(ctx, from, e.before())
	})
}

// before returns the fields that made External Secrets Operator write nothing, as they were.
func (e entry) before() map[string]any {
	return fieldsOf(e.Object, slices.Collect(maps.Keys(stopping(e.Object)))...)
}
