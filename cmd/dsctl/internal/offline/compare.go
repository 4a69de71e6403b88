package offline

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// A Difference lists what an ExternalSecret would change. It contains names only.
type Difference struct {
	Namespace string `json:"namespace,omitempty"`
	// ExternalSecret, Secret and ConfigMap are the objects' names. One of Secret and ConfigMap is empty.
	ExternalSecret string                  `json:"externalSecret"`
	Secret         string                  `json:"secret,omitempty"`
	ConfigMap      string                  `json:"configMap,omitempty"`
	Action         inspect.Action          `json:"action"`
	Data           v1alpha1.NameDifference `json:"data,omitzero"`
	Labels         v1alpha1.NameDifference `json:"labels,omitzero"`
	Annotations    v1alpha1.NameDifference `json:"annotations,omitzero"`
	// Problems are the reasons why the Secret would stay unchanged.
	Problems []string `json:"problems,omitempty"`
	// Notes list what is unknown.
	Notes []string `json:"notes,omitempty"`
}

// Live is the present Secret. Secret is nil if it does not exist. Its data is nil if it was not read.
type Live struct {
	Secret *corev1.Secret
	// Values is set if the data was read.
	Values bool
}

// Compare returns what an ExternalSecret would change to get the Secret want; nil means no Secret. complete is
// false if want may lack keys.
func Compare(es *v1alpha1.ExternalSecret, want *corev1.Secret, complete bool, live Live) Difference {
	if live.Secret != nil && !complete { // Any of the present keys may be one of those that want lacks.
		want = want.DeepCopy()
		for _, k := range inspect.FieldsOf(live.Secret.ManagedFields, inspect.FieldManager(es.Name)).Data {
			want.Data[k] = nil
		}
	}
	d := differenceOf(es, inspect.Preview(es, want, live.Secret, live.Values))
	if es.Spec.Suspend {
		d.Notes = append(d.Notes, "spec.suspend is true: nothing happens until it is false")
	}
	if es.Spec.Target.CreationPolicy == v1alpha1.CreateNone {
		d.Notes = append(d.Notes, "creationPolicy is None: nothing is written; this is what another policy would change")
	}
	if live.Secret != nil && !live.Values {
		d.Notes = append(d.Notes, "values are not compared: use --values")
	}
	if live.Secret != nil && !complete {
		d.Notes = append(d.Notes, "dataFrom and templateFrom can add keys that depend on values: use --values")
	}
	return d
}

// Reported returns the difference that the operator reports for creationPolicy None, with the values compared; false if
// it reports none for the present spec.
func Reported(es *v1alpha1.ExternalSecret) (Difference, bool) {
	is := es.Status.Difference
	if is == nil || es.Status.ObservedGeneration != es.Generation {
		return Difference{}, false
	}
	c := inspect.Change{Action: inspect.Update, Data: is.Data, Labels: is.Labels, Annotations: is.Annotations}
	switch {
	case !is.Exists:
		c.Action = inspect.Create
	case is.Type != "":
		c.Action = inspect.Refuse
		c.Problems = append(c.Problems, "the type of the Secret cannot change to "+is.Type+": delete the Secret, it is created again")
	case c.IsEmpty():
		c.Action = inspect.Unchanged
	}
	d := differenceOf(es, c, "creationPolicy is None: nothing is written; this is what the operator would change under Owner")
	if is.Data.Truncated || is.Labels.Truncated || is.Annotations.Truncated {
		d.Notes = append(d.Notes, "a list is cut off: the operator reports 100 names of each")
	}
	return d, true
}

func differenceOf(es *v1alpha1.ExternalSecret, c inspect.Change, notes ...string) Difference {
	d := Difference{
		Namespace: es.Namespace, ExternalSecret: es.Name, Notes: notes,
		Action: c.Action, Data: c.Data, Labels: c.Labels, Annotations: c.Annotations, Problems: c.Problems,
	}
	if kind, name := inspect.TargetOf(es); kind == v1alpha1.TargetConfigMap {
		d.ConfigMap = name
	} else {
		d.Secret = name
	}
	return d
}
