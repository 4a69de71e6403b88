package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// Action is what the operator would do with a Secret.
type Action string

// These are the actions.
const (
	Create    Action = "Create"
	Update    Action = "Update"
	Unchanged Action = "Unchanged"
	// Delete means that the provider has nothing, and that deletionPolicy is Delete.
	Delete Action = "Delete"
	// Refuse means that the Secret stays unchanged, for the reasons in Problems.
	Refuse Action = "Refuse"
)

// A Change is what the operator would do with the Secret of an ExternalSecret. It contains names only.
type Change struct {
	Action Action
	// Data, Labels and Annotations are complete lists.
	Data, Labels, Annotations v1alpha1.NameDifference
	// Problems are the reasons why the operator would not write the Secret, or some of its keys.
	Problems []string
}

// IsEmpty reports whether no name changes.
func (c Change) IsEmpty() bool {
	n := 0
	for _, d := range []v1alpha1.NameDifference{c.Data, c.Labels, c.Annotations} {
		n += len(d.Added) + len(d.Changed) + len(d.Removed)
	}
	return n == 0
}

// Preview decides with the operator's own code what the operator would do to write the Secret want. A nil want means that
// the provider has nothing, and that deletionPolicy is Delete. live is the present Secret; nil if there is none. values is
// false if want and live have no values: they are then taken as equal, and the keys of live are those in its managedFields.
//
// Preview makes no request. It assumes that all ExternalSecrets with a mark on the Secret exist and write it. An
// ExternalSecret without a uid, such as one from a manifest, is taken for the one of its name that wrote the Secret.
// creationPolicy None counts as Owner.
func Preview(es *v1alpha1.ExternalSecret, want, live *corev1.Secret, values bool) Change {
	es = es.DeepCopy()
	if p := &es.Spec.Target.CreationPolicy; *p == "" || *p == v1alpha1.CreateNone {
		*p = v1alpha1.CreateOwner
	}
	reading := &policy.Reading{NotFound: want == nil}
	if want != nil {
		reading.Values = 1 // The number does not matter.
	} else {
		want, es.Spec.Target.DeletionPolicy = &corev1.Secret{}, v1alpha1.DeletionDelete
	}
	content := target.Content{Data: want.Data, Labels: want.Labels, Annotations: want.Annotations}
	switch {
	case live == nil:
		return previewAbsent(es, content, reading)
	case !values:
		live = live.DeepCopy()
		live.Data = map[string][]byte{}
		for _, k := range keysOf(live.ManagedFields) {
			live.Data[k] = nil
		}
		content.Data = withValuesOf(live.Data, content.Data)
		content.Labels, content.Annotations = withValuesOf(live.Labels, content.Labels), withValuesOf(live.Annotations, content.Annotations)
	}
	return previewExisting(es, content, live, reading, values)
}

// previewAbsent is Preview for a Secret that does not exist.
func previewAbsent(es *v1alpha1.ExternalSecret, content target.Content, reading *policy.Reading) Change {
	d := policy.Decide(policy.SelfOf(es, ""), policy.Target{}, reading)
	c := newChange(d)
	if d.Action != policy.Create {
		return c
	}
	desired := target.DesiredOf(es, v1alpha1.Group, false, content)
	if err := c.list(desired, &corev1.Secret{Type: desired.Type}); err != nil {
		c.Action, c.Problems = Refuse, []string{err.Error()}
	}
	return c
}

// previewExisting is Preview for a Secret that exists.
func previewExisting(es *v1alpha1.ExternalSecret, content target.Content, live *corev1.Secret, reading *policy.Reading, values bool) Change {
	mark := Marks(live.Annotations)[es.Name]
	if es.UID == "" {
		es.UID = mark.UID
	}
	module := cmp.Or(mark.Module, v1alpha1.Group) // Only its own label depends on it.
	self := policy.SelfOf(es, "")
	t := target.Observe(context.Background(), live, target.Identity{
		Name: es.Name, UID: es.UID, Module: module, Exclusive: self.Creation == v1alpha1.CreateOwner,
	}, allExist{})
	desired := target.DesiredOf(es, module, self.Owns, content)
	if !values {
		desired.Type = live.Type // It is unknown.
	}
	desired.Seal()
	desired, blocked := desired.WithoutBlocked(live.ManagedFields, target.Others{})
	reading.Keys, reading.Hash, reading.Fields = len(desired.Data), desired.Mark.Hash, desired.Mark.Fields
	c := newChange(policy.Decide(self, t, reading))
	var err error
	if c.Action != Unchanged {
		err = c.list(desired, live)
	}
	if c.Action != Unchanged && c.Action != Update {
		return c
	}
	for _, k := range blocked {
		c.Problems = append(c.Problems, fmt.Sprintf("key %q is written by %s", k, holder(live, es.Name, k)))
	}
	switch {
	case err != nil:
		c.Action, c.Problems = Refuse, append(c.Problems, err.Error())
	case c.IsEmpty() && len(blocked) > 0:
		c.Action = Refuse
	case c.IsEmpty():
		c.Action = Unchanged
	}
	return c
}

// actions are the actions by those of the operator.
var actions = map[policy.Action]Action{
	policy.Nothing: Unchanged, policy.Own: Unchanged, policy.Keep: Unchanged,
	policy.Create: Create, policy.Apply: Update, policy.Delete: Delete,
	policy.Conflict: Refuse, policy.Missing: Refuse, policy.Wait: Refuse, policy.Refuse: Refuse,
}

// newChange returns a change without names.
func newChange(d policy.Decision) Change {
	c := Change{Action: actions[d.Action]}
	if d.Message != "" {
		c.Problems = []string{d.Message}
	}
	return c
}

// list sets the names that a write would change. The error says why the write would fail.
func (c *Change) list(desired target.Desired, live *corev1.Secret) error {
	d, err := desired.Changes(live)
	c.Data, c.Labels, c.Annotations = d.Data, d.Labels, d.Annotations
	return err
}

// withValuesOf returns the names in want, with the values of live.
func withValuesOf[V any](live, want map[string]V) map[string]V {
	all := map[string]V{}
	for k := range want {
		all[k] = live[k]
	}
	return all
}

// allExist is a target.Peers in which every ExternalSecret exists and writes its Secret.
type allExist struct{}

func (allExist) Exists(context.Context, string, types.UID) bool { return true }

func (allExist) Writes(context.Context, string, types.UID, string) bool { return true }

// holder describes which ExternalSecret, other than self, holds a key.
func holder(live *corev1.Secret, self, key string) string {
	for _, name := range slices.Sorted(maps.Keys(Marks(live.Annotations))) {
		if name != self && slices.Contains(FieldsOf(live.ManagedFields, FieldManager(name)).Data, key) {
			return fmt.Sprintf("ExternalSecret %q", name)
		}
	}
	return "another ExternalSecret"
}
