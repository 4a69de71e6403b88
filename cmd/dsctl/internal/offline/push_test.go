package offline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

func TestReportedPush(t *testing.T) {
	t.Parallel()
	type entry = v1alpha1.PushDifferenceEntry
	store := func(status metav1.ConditionStatus, generation int64, d *v1alpha1.PushDifference) v1alpha1.PushStoreStatus {
		return v1alpha1.PushStoreStatus{Kind: "VaultKV", Name: "prod", Difference: d, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionSynced, Status: status, ObservedGeneration: generation, Message: "m"},
		}}
	}
	differs := func(actions ...v1alpha1.PushAction) *v1alpha1.PushDifference {
		d := &v1alpha1.PushDifference{}
		for _, a := range actions {
			d.Entries = append(d.Entries, entry{RemoteKey: "db", Action: a})
		}
		return d
	}
	const unknown = metav1.ConditionUnknown
	cases := map[string]struct {
		reason string
		spec   v1alpha1.PushSecretSpec
		stores []v1alpha1.PushStoreStatus
		ready  string
		want   []PushDifference
		err    string
	}{
		"Pushes":    {reason: "only a dry run reports", stores: []v1alpha1.PushStoreStatus{store(unknown, 2, nil)}, err: "spec.dryRun is not true; set it, and the operator reports what a push would do, without a write"},
		"Suspended": {reason: "a suspended object reports nothing", spec: v1alpha1.PushSecretSpec{DryRun: true, Suspend: true}, err: "spec.suspend is true, so the operator compares nothing; set it to false"},
		"New":       {reason: "the operator has not seen the object", spec: v1alpha1.PushSecretSpec{DryRun: true}, err: "the operator has not compared a store yet; try again"},
		"Invalid":   {reason: "the condition has the error", spec: v1alpha1.PushSecretSpec{DryRun: true}, ready: "wrong", err: "wrong"},
		"Stale":     {reason: "a report of another spec is none", spec: v1alpha1.PushSecretSpec{DryRun: true}, stores: []v1alpha1.PushStoreStatus{store(unknown, 1, differs())}, err: "the operator has not compared all stores with the present spec; try again"},
		"Same":      {reason: "nothing differs", spec: v1alpha1.PushSecretSpec{DryRun: true}, stores: []v1alpha1.PushStoreStatus{store(unknown, 2, differs())}, want: []PushDifference{{Action: inspect.Unchanged}}},
		"Kept":      {reason: "what stays is no change", spec: v1alpha1.PushSecretSpec{DryRun: true}, stores: []v1alpha1.PushStoreStatus{store(unknown, 2, differs(v1alpha1.PushKeep))}, want: []PushDifference{{Action: inspect.Unchanged, Entries: differs(v1alpha1.PushKeep).Entries}}},
		"Update":    {reason: "a write is a change", spec: v1alpha1.PushSecretSpec{DryRun: true}, stores: []v1alpha1.PushStoreStatus{store(unknown, 2, differs(v1alpha1.PushKeep, v1alpha1.PushDelete))}, want: []PushDifference{{Action: inspect.Update, Entries: differs(v1alpha1.PushKeep, v1alpha1.PushDelete).Entries}}},
		"Fails":     {reason: "the condition has the reason", spec: v1alpha1.PushSecretSpec{DryRun: true}, stores: []v1alpha1.PushStoreStatus{store(metav1.ConditionFalse, 2, differs(v1alpha1.PushFail))}, want: []PushDifference{{Action: inspect.Refuse, Entries: differs(v1alpha1.PushFail).Entries, Problems: []string{"m"}}}},
		"Unnamed":   {reason: "a store that is not compared has a note", spec: v1alpha1.PushSecretSpec{DryRun: true}, stores: []v1alpha1.PushStoreStatus{store(unknown, 2, nil)}, want: []PushDifference{{Action: inspect.Unchanged, Notes: []string{"m"}}}},
		"Long": {reason: "a list that is cut off is noted", spec: v1alpha1.PushSecretSpec{DryRun: true}, stores: []v1alpha1.PushStoreStatus{store(unknown, 2, &v1alpha1.PushDifference{Truncated: true})}, want: []PushDifference{{
			Action: inspect.Unchanged, Notes: []string{"the list is cut off: the operator reports 100 entries for each store"},
		}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop", Generation: 2}, Spec: tc.spec, Status: v1alpha1.PushSecretStatus{Stores: tc.stores}}
			if tc.ready != "" {
				ps.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: tc.ready}}
			}
			got, err := ReportedPush(ps)
			for i := range tc.want {
				w := &tc.want[i]
				w.Namespace, w.PushSecret, w.StoreKind, w.StoreName = "shop", "db", "VaultKV", "prod"
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff([]any{tc.want, tc.err}, []any{got, text}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
