package cutover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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
	"github.com/direct-secrets/direct-secrets/migrate/strict"
)

// pollInterval is how often the state of an object is read while an operator acts.
const pollInterval = 300 * time.Millisecond

// move is the move of one object.
type move struct {
	*Cutover

	unit    Unit
	name    types.NamespacedName
	journal entry
	// before is the data of the Secret when it was released; nil in a call that only finishes the move.
	before map[string][]byte
	// data is that of the Secrets of a ClusterExternalSecret, by the ExternalSecrets.
	data map[string]map[string][]byte
}

// A decision is the next step for an object.
type decision struct {
	step
	// why says why to wait or to give the object back, or what the user should know of one that is moved.
	why string
	// take takes the step. It is safe to repeat, and fails if another client has changed the object since it was read.
	take func(context.Context) error
}

// run takes steps until the object is moved or has to be left, and says why. It returns an error if a request failed.
func (m *move) run(ctx context.Context) (outcome Outcome, why string, err error) {
	if err := m.createStores(ctx); err != nil {
		return Left, err.Error(), nil
	}
	decide := m.decide
	switch {
	case isPush(m.unit.From):
		decide = m.decidePush
	case IsCluster(m.unit.From):
		decide = m.decideCluster
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, m.Timeout, true, func(ctx context.Context) (bool, error) {
		for {
			next, err := decide(ctx)
			if err != nil {
				return false, err
			}
			why = next.why
			switch next.step {
			case stepWait:
				return false, nil
			case stepDone, stepGiveBack:
				outcome = map[step]Outcome{stepDone: Moved, stepGiveBack: Left}[next.step]
				return true, nil
			}
			switch err := next.take(ctx); {
			case kerrors.IsConflict(err):
				return false, nil // Another client changed the object, so decide again.
			case err != nil && next.step == stepCreate:
				outcome, why = Left, fmt.Sprintf("cannot create the %s of direct-secrets: %v", m.unit.To.GetKind(), err)
				return true, nil
			case err != nil:
				return false, err
			}
		}
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		return Left, fmt.Sprintf("%s; waited %s", why, m.Timeout), nil
	case err != nil || outcome == Left:
		return outcome, why, err
	}
	return outcome, why, m.finish(ctx, m.journal)
}

// decide decides on the next step for an ExternalSecret.
func (m *move) decide(ctx context.Context) (decision, error) {
	s, err := m.observe(ctx)
	if err != nil {
		return decision{}, err
	}
	next, why := s.next(m.Options)
	if next == stepDone && m.before != nil && !reflect.DeepEqual(m.before, s.secret.Data) {
		next, why = stepGiveBack, "the data of the Secret changed meanwhile"
	}
	return decision{next, why, func(ctx context.Context) error { return m.take(ctx, next, s) }}, nil
}

// observe reads the state of the object.
func (m *move) observe(ctx context.Context) (state, error) {
	s := state{to: &v1alpha1.ExternalSecret{}, secret: &corev1.Secret{}, journal: m.journal, name: m.name.Name}
	s.merges = slices.Contains([]string{string(v1alpha1.CreateMerge), string(v1alpha1.CreateCreateOrMerge)}, field(m.unit.To, "target", "creationPolicy"))
	from, err := m.readFrom(ctx, m.unit.From)
	s.from = from
	errs := []error{err}
	absent, err := m.get(ctx, m.name, s.to)
	if absent {
		s.to = nil
	}
	errs = append(errs, err)
	if absent, err = m.get(ctx, types.NamespacedName{Namespace: m.name.Namespace, Name: m.journal.Secret}, s.secret); absent {
		s.secret = nil
	}
	return s, errors.Join(append(errs, err)...)
}

// readFrom reads an object of External Secrets Operator; nil if there is none.
func (c *Cutover) readFrom(ctx context.Context, of *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	from := &unstructured.Unstructured{}
	from.SetGroupVersionKind(of.GroupVersionKind())
	if absent, err := c.get(ctx, client.ObjectKeyFromObject(of), from); absent || err != nil {
		return nil, err
	}
	return from, nil
}

// get reads an object, and reports whether it is absent.
func (c *Cutover) get(ctx context.Context, name types.NamespacedName, o client.Object) (absent bool, err error) {
	err = c.Client.Get(ctx, name, o)
	if kerrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// createStores creates the converted stores and generators that do not exist.
func (m *move) createStores(ctx context.Context) error {
	for _, s := range m.unit.Stores {
		if err := m.Client.Create(ctx, withoutTracking(s)); err != nil && !kerrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create %s %s: %w", s.GetKind(), s.GetName(), err)
		}
	}
	return nil
}

// withoutTracking returns a copy of an object that no tool takes for one of its own.
func withoutTracking(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetLabels(untracked(o.GetLabels()))
	o.SetAnnotations(untracked(o.GetAnnotations()))
	return o
}

// take takes a step for an ExternalSecret.
func (m *move) take(ctx context.Context, next step, s state) error {
	switch next {
	case stepCreate:
		return m.create(ctx, m.plan())
	case stepStopESO:
		return m.StopESO(ctx, s.from)
	case stepRelease:
		m.before = s.secret.Data
		return m.release(ctx, s.secret, m.name.Name)
	case stepAdopt:
		return m.patchFields(ctx, s.to, fieldsOf(m.final(), planned(m.unit.To)...))
	}
	return fmt.Errorf("step %d is not to be taken", next)
}

// create creates an object, unless it exists.
func (m *move) create(ctx context.Context, o *unstructured.Unstructured) error {
	if err := m.Client.Create(ctx, o); !kerrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// patchFields sets single fields of an object, and removes those whose value is nil, if the object has not changed since it
// was read.
func (c *Cutover) patchFields(ctx context.Context, read client.Object, fields map[string]any) error {
	merge := &unstructured.Unstructured{Object: map[string]any{}}
	merge.SetResourceVersion(read.GetResourceVersion())
	for path, value := range fields {
		_ = unstructured.SetNestedField(merge.Object, value, strings.Split(path, ".")...) // The paths are those of mappings.
	}
	patch, err := json.Marshal(merge.Object)
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, read.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch))
}

// fieldsOf returns fields of an object as patchFields takes them.
func fieldsOf(o *unstructured.Unstructured, paths ...string) map[string]any {
	fields := map[string]any{}
	for _, path := range paths {
		fields[path], _, _ = unstructured.NestedFieldCopy(o.Object, strings.Split(path, ".")...) // Those of a valid object.
	}
	return fields
}

// final returns the object that takes over.
func (m *move) final() *unstructured.Unstructured {
	o := withoutTracking(m.unit.To)
	o.SetNamespace(m.name.Namespace)
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fromAnnotation] = string(m.journal.UID)
	o.SetAnnotations(annotations)
	return o
}

// planned returns the fields that an ExternalSecret has only once it takes over.
func planned(to *unstructured.Unstructured) []string {
	var all []string
	for _, name := range []string{"cleanupPolicy", "creationPolicy", "deletionPolicy", "immutable"} {
		all = append(all, strings.Join(specOf(to), ".")+".target."+name)
	}
	return all
}

// specOf returns the path of the spec of an ExternalSecret in an object.
func specOf(o *unstructured.Unstructured) []string {
	if IsCluster(o) {
		return []string{"spec", "externalSecretSpec"}
	}
	return []string{"spec"}
}

// plan returns the ExternalSecret as long as it only compares.
func (m *move) plan() *unstructured.Unstructured {
	o := m.final()
	for _, path := range planned(o) {
		unstructured.RemoveNestedField(o.Object, strings.Split(path, ".")...) // They cannot be combined with None.
	}
	// The paths are those of mappings in a valid object.
	_ = unstructured.SetNestedField(o.Object, string(v1alpha1.CreateNone), append(specOf(o), "target", "creationPolicy")...)
	return o
}

// stops are the fields of the spec, by Kind, with which External Secrets Operator writes nothing any more. All are set at once: with
// some of them it writes the Secret once more.
var stops = map[string]map[string]any{
	"ExternalSecret": stopsWriting, clusterKind: stopsWriting,
	"PushSecret": {"refreshInterval": "0s", "deletionPolicy": "None"},
}

var stopsWriting = map[string]any{
	"refreshInterval": "0s", "refreshPolicy": "CreatedOnce",
	"target.creationPolicy": "Orphan", "target.deletionPolicy": "Retain",
}

// stopping returns the fields with which External Secrets Operator writes nothing any more for an object, by their paths.
func stopping(from *unstructured.Unstructured) map[string]any {
	fields := map[string]any{}
	for path, value := range stops[from.GetKind()] {
		fields[strings.Join(specOf(from), ".")+"."+path] = value
	}
	return fields
}

// StopESO makes External Secrets Operator write nothing any more for an object.
func (c *Cutover) StopESO(ctx context.Context, from *unstructured.Unstructured) error {
	fields := stopping(from)
	err := c.patchFields(ctx, from, fields)
	if policy := strings.Join(specOf(from), ".") + ".refreshPolicy"; strict.IsUnknown(err, policy) { // Older versions do not have it, and need only the interval.
		delete(fields, policy)
		err = c.patchFields(ctx, from, fields)
	}
	return err
}

// release removes from a Secret what External Secrets Operator knows it by, and names direct-secrets as the manager of
// its keys. If they had no manager, or a second one, the first write of direct-secrets could not remove a key later.
func (m *move) release(ctx context.Context, s *corev1.Secret, name string) error {
	managed, err := handOver(s.ManagedFields, name, inspect.FieldManager(name))
	if err != nil {
		return err
	}
	return m.patchMetadata(ctx, s, func(meta *metav1.PartialObjectMetadata) {
		meta.OwnerReferences = slices.DeleteFunc(meta.OwnerReferences, func(r metav1.OwnerReference) bool { return ownedByESO(r) && r.Name == name })
		meta.ManagedFields = managed
		if slices.ContainsFunc(meta.OwnerReferences, ownedByESO) {
			return // Another object of External Secrets Operator owns the Secret.
		}
		delete(meta.Labels, createdByLabel)
		delete(meta.Labels, managedLabel)
		delete(meta.Annotations, dataHashAnnotation)
	})
}

// patchMetadata changes the metadata of a Secret, and fails if it has changed since it was read.
func (c *Cutover) patchMetadata(ctx context.Context, s *corev1.Secret, change func(*metav1.PartialObjectMetadata)) error {
	meta := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	before := meta.DeepCopy()
	change(meta)
	return c.Client.Patch(ctx, meta, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// isOurs reports whether direct-secrets gives a name of a label or an annotation.
func isOurs(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return domain == v1alpha1.Group || strings.HasSuffix(domain, "."+v1alpha1.Group)
}
