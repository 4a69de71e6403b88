package snapshot

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// shared holds the fields that dsctl reads from every Kind.
type shared struct {
	Meta metav1.ObjectMeta `json:"metadata"`
	Spec struct {
		Suspend    bool   `json:"suspend"`
		Controller string `json:"controller"`
		// Conditions are those of a cluster store.
		Conditions []v1alpha1.StoreCondition `json:"conditions"`
		// These are the specs of the objects that cluster Kinds create.
		ExternalSecretSpec struct {
			Suspend bool `json:"suspend"`
		} `json:"externalSecretSpec"`
		PushSecretSpec struct {
			Suspend bool `json:"suspend"`
		} `json:"pushSecretSpec"`
	} `json:"spec"`
	Status v1alpha1.StoreStatus `json:"status"`
}

// NewObject decodes an object of any Kind of direct-secrets.
func NewObject(k Kind, u *unstructured.Unstructured) (Object, error) {
	o := Object{Kind: k}
	var s shared
	if err := decode(u, &s); err != nil {
		return o, err
	}
	o.Meta = s.Meta
	o.Status = Status{ObservedGeneration: s.Status.ObservedGeneration, Conditions: s.Status.Conditions}
	o.Suspended = s.Spec.Suspend || s.Spec.ExternalSecretSpec.Suspend || s.Spec.PushSecretSpec.Suspend
	if o.IsSource() {
		o.Class, o.Conditions = s.Spec.Controller, s.Spec.Conditions
		return o, nil
	}
	switch k.Kind {
	case ExternalSecret:
		o.ExternalSecret = &v1alpha1.ExternalSecret{}
		if err := decode(u, o.ExternalSecret); err != nil {
			return o, err
		}
		o.uses = usesOf(o.ExternalSecret)
	case PushSecret:
		o.PushSecret = &v1alpha1.PushSecret{}
		if err := decode(u, o.PushSecret); err != nil {
			return o, err
		}
		o.uses = pushUsesOf(o.PushSecret)
	case ClusterExternalSecret, ClusterPushSecret:
		var f struct {
			Status v1alpha1.FanOutStatus `json:"status"`
		}
		if err := decode(u, &f); err != nil {
			return o, err
		}
		o.FanOut = &f.Status
	}
	return o, nil
}

func decode(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("cannot decode %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

func usesOf(es *v1alpha1.ExternalSecret) []Use {
	var all uses
	all.add(es.Spec.StoreRef)
	for i := range es.Spec.Data {
		if s := es.Spec.Data[i].SourceRef; s != nil {
			all.add(&s.StoreRef)
		}
	}
	for i := range es.Spec.DataFrom {
		if s := es.Spec.DataFrom[i].SourceRef; s != nil {
			all.add(s.StoreRef)
			all.add(s.GeneratorRef)
		}
	}
	return all
}

func pushUsesOf(ps *v1alpha1.PushSecret) []Use {
	var all uses
	for _, r := range ps.Spec.StoreRefs {
		if r.LabelSelector != nil {
			all = append(all, Use{StoreRef: v1alpha1.StoreRef{APIVersion: r.APIVersion, Kind: r.Kind}, Selector: r.LabelSelector})
			continue
		}
		all.add(&v1alpha1.StoreRef{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name})
	}
	all.add(ps.Spec.Selector.GeneratorRef)
	return all
}

type uses []Use

func (u *uses) add(ref *v1alpha1.StoreRef) {
	if ref == nil {
		return
	}
	for _, have := range *u {
		if have.Selector == nil && have.StoreRef == *ref {
			return
		}
	}
	*u = append(*u, Use{StoreRef: *ref})
}
