package offline

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
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

// A Difference lists what an ExternalSecret would change. It contains names only.
type Difference struct {
	Namespace string `json:"namespace,omitempty"`
	// ExternalSecret and Secret are the objects' names.
	ExternalSecret string `json:"externalSecret"`
	Secret         string `json:"secret"`
	Action         Action `json:"action"`
	Data           Names  `json:"data,omitzero"`
	Labels         Names  `json:"labels,omitzero"`
	Annotations    Names  `json:"annotations,omitzero"`
	// Problems are the reasons why the Secret would stay unchanged.
	Problems []string `json:"problems,omitempty"`
	// Notes list what is unknown.
	Notes []string `json:"notes,omitempty"`
}

// Names are the keys to add, change and remove.
type Names struct {
	Added   []string `json:"added,omitempty"`
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

func (n Names) empty() bool { return len(n.Added)+len(n.Changed)+len(n.Removed) == 0 }

// Live is the present Secret. Secret is nil if it does not exist. Its data is nil if it was not read.
type Live struct {
	Secret *corev1.Secret
	// Values is set if the data was read.
	Values bool
}

// Compare returns what an ExternalSecret would change to get the Secret want; nil means no Secret. complete is
// false if want may lack keys. It ignores keys of other field managers, because the operator does not change
// them.
func Compare(es *v1alpha1.ExternalSecret, want *corev1.Secret, complete bool, live Live) Difference {
	d := Difference{Namespace: es.Namespace, ExternalSecret: es.Name, Secret: es.TargetName()}
	if es.Spec.Suspend {
		d.Notes = append(d.Notes, "spec.suspend is true: nothing happens until it is false")
	}
	policy := es.Spec.Target.CreationPolicy
	if policy == v1alpha1.CreateNone {
		d.Notes = append(d.Notes, "creationPolicy is None: nothing is written; this is what another policy would change")
	}
	if live.Secret == nil {
		d.compareAbsent(want, policy)
		return d
	}
	held := inspect.FieldsOf(live.Secret.ManagedFields, inspect.FieldManager(es.Name))
	if want == nil {
		want = &corev1.Secret{Type: live.Secret.Type}
		d.Action = Delete
	}
	changed := func(string) bool { return false }
	if live.Values {
		changed = func(k string) bool { return !bytes.Equal(live.Secret.Data[k], want.Data[k]) }
	}
	keys := live.Secret.Data
	if !live.Values {
		keys = map[string][]byte{}
		for _, k := range inspect.Keys(live.Secret.ManagedFields) {
			keys[k] = nil
		}
		d.Notes = append(d.Notes, "values are not compared: use --values")
	}
	d.Data = names(want.Data, keys, held.Data, changed)
	d.Labels = names(want.Labels, live.Secret.Labels, held.Labels, func(k string) bool { return live.Values && want.Labels[k] != live.Secret.Labels[k] })
	d.Annotations = names(want.Annotations, live.Secret.Annotations, held.Annotations, func(k string) bool { return live.Values && want.Annotations[k] != live.Secret.Annotations[k] })
	if !complete {
		d.Data.Removed = nil
		d.Notes = append(d.Notes, "dataFrom and templateFrom can add keys that depend on values: use --values")
	}
	d.check(es, want, live.Secret)
	d.conclude()
	return d
}

// Reported returns the difference that the operator reports for creationPolicy None, with the values compared; false if
// it reports none for the present spec.
func Reported(es *v1alpha1.ExternalSecret) (Difference, bool) {
	is := es.Status.Difference
	if is == nil || es.Status.ObservedGeneration != es.Generation {
		return Difference{}, false
	}
	d := Difference{
		Namespace: es.Namespace, ExternalSecret: es.Name, Secret: es.TargetName(), Action: Update,
		Data: reported(is.Data), Labels: reported(is.Labels), Annotations: reported(is.Annotations),
		Notes: []string{"creationPolicy is None: nothing is written; this is what the operator would change under Owner"},
	}
	switch {
	case !is.Exists:
		d.Action = Create
	case is.Type != "":
		d.Action = Refuse
		d.Problems = append(d.Problems, "the type of the Secret cannot change to "+is.Type+": delete the Secret, it is created again")
	case d.same():
		d.Action = Unchanged
	}
	if is.Data.Truncated || is.Labels.Truncated || is.Annotations.Truncated {
		d.Notes = append(d.Notes, "a list is cut off: the operator reports 100 names of each")
	}
	return d, true
}

func reported(n v1alpha1.NameDifference) Names {
	return Names{Added: n.Added, Changed: n.Changed, Removed: n.Removed}
}

func (d *Difference) compareAbsent(want *corev1.Secret, policy v1alpha1.CreationPolicy) {
	switch {
	case want == nil:
		d.Action = Unchanged
		return
	case policy == v1alpha1.CreateMerge:
		d.Action = Refuse
		d.Problems = append(d.Problems, "the Secret does not exist, and creationPolicy Merge does not create it")
		return
	}
	d.Action = Create
	d.Data.Added = slices.Sorted(maps.Keys(want.Data))
	d.Labels.Added, d.Annotations.Added = slices.Sorted(maps.Keys(want.Labels)), slices.Sorted(maps.Keys(want.Annotations))
}

// check adds the reasons why the operator would leave the Secret unchanged.
func (d *Difference) check(es *v1alpha1.ExternalSecret, want, live *corev1.Secret) {
	merges := es.Spec.Target.CreationPolicy == v1alpha1.CreateMerge
	if owner := metav1.GetControllerOf(live); owner != nil && !merges && (owner.Kind != "ExternalSecret" || owner.Name != es.Name) {
		d.Problems = append(d.Problems, fmt.Sprintf("the Secret is controlled by %s %q", owner.Kind, owner.Name))
	}
	if live.Type != "" && live.Type != want.Type && es.Spec.Target.Template != nil && es.Spec.Target.Template.Type != "" {
		d.Problems = append(d.Problems, fmt.Sprintf("the Secret has the type %s, which cannot change to %s: delete the Secret, it is created again", live.Type, want.Type))
	}
	if live.Immutable != nil && *live.Immutable && !d.same() {
		d.Problems = append(d.Problems, "the Secret is immutable: delete it, it is created again")
	}
	d.Problems = append(d.Problems, taken(es, want, live)...)
}

// taken returns a problem for each key that another ExternalSecret owns.
func taken(es *v1alpha1.ExternalSecret, want, live *corev1.Secret) []string {
	var all []string
	for name := range inspect.Marks(live.Annotations) {
		if name == es.Name {
			continue
		}
		for _, k := range inspect.FieldsOf(live.ManagedFields, inspect.FieldManager(name)).Data {
			if _, wanted := want.Data[k]; wanted {
				all = append(all, fmt.Sprintf("key %q is written by ExternalSecret %q", k, name))
			}
		}
	}
	slices.Sort(all)
	return all
}

func (d *Difference) same() bool { return d.Data.empty() && d.Labels.empty() && d.Annotations.empty() }

func (d *Difference) conclude() {
	switch {
	case len(d.Problems) > 0:
		d.Action = Refuse
	case d.Action == Delete:
	case d.same():
		d.Action = Unchanged
	default:
		d.Action = Update
	}
}

// names compares the wanted entries with the present ones. It removes only entries that are held, and keeps the
// operator's own labels and annotations.
func names[W, L any](want map[string]W, live map[string]L, held []string, changed func(string) bool) Names {
	var n Names
	for _, k := range slices.Sorted(maps.Keys(want)) {
		switch _, there := live[k]; {
		case !there:
			n.Added = append(n.Added, k)
		case changed(k):
			n.Changed = append(n.Changed, k)
		}
	}
	for _, k := range held {
		if _, wanted := want[k]; !wanted && !inspect.IsOwn(k) {
			n.Removed = append(n.Removed, k)
		}
	}
	return n
}
