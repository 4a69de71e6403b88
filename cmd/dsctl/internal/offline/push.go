package offline

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// A PushDifference lists what a PushSecret would do in one store. It contains names only.
type PushDifference struct {
	Namespace  string `json:"namespace,omitempty"`
	PushSecret string `json:"pushSecret"`
	// StoreKind and StoreName name the store.
	StoreKind string `json:"storeKind"`
	StoreName string `json:"storeName"`
	// Action is Update, Unchanged or Refuse. Refuse means that a value would not be written, for the reason in Problems.
	Action  inspect.Action                 `json:"action"`
	Entries []v1alpha1.PushDifferenceEntry `json:"entries,omitempty"`
	// Problems are the reasons why values would not be written.
	Problems []string `json:"problems,omitempty"`
	// Notes list what is unknown.
	Notes []string `json:"notes,omitempty"`
}

// ReportedPush returns what the operators report for a dry run, by store. The error says why there is no report.
func ReportedPush(ps *v1alpha1.PushSecret) ([]PushDifference, error) {
	switch {
	case !ps.Spec.DryRun:
		return nil, errors.New("spec.dryRun is not true; set it, and the operator reports what a push would do, without a write")
	case ps.Spec.Suspend:
		return nil, errors.New("spec.suspend is true, so the operator compares nothing; set it to false")
	}
	var all []PushDifference
	for i := range ps.Status.Stores {
		s := &ps.Status.Stores[i]
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
		if c == nil || c.ObservedGeneration != ps.Generation {
			return nil, errors.New("the operator has not compared all stores with the present spec; try again")
		}
		all = append(all, reportedStore(ps, s, c))
	}
	if len(all) == 0 {
		if c := meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionFalse {
			return nil, errors.New(c.Message)
		}
		return nil, errors.New("the operator has not compared a store yet; try again")
	}
	return all, nil
}

func reportedStore(ps *v1alpha1.PushSecret, s *v1alpha1.PushStoreStatus, synced *metav1.Condition) PushDifference {
	d := PushDifference{Namespace: ps.Namespace, PushSecret: ps.Name, StoreKind: s.Kind, StoreName: s.Name, Action: inspect.Unchanged}
	if is := s.Difference; is != nil {
		d.Entries = is.Entries
		if is.Truncated {
			d.Notes = append(d.Notes, "the list is cut off: the operator reports 100 entries for each store")
		}
	}
	for _, e := range d.Entries {
		if e.Action != v1alpha1.PushKeep {
			d.Action = inspect.Update
		}
	}
	switch {
	case synced.Status == metav1.ConditionFalse:
		d.Action, d.Problems = inspect.Refuse, append(d.Problems, synced.Message)
	case s.Difference == nil:
		d.Notes = append(d.Notes, synced.Message)
	}
	return d
}
