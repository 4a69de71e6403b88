package cutover

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// esoPush returns a PushSecret of External Secrets Operator. pushed is the version that it pushed last.
func esoPush(spec map[string]any, pushed string) *unstructured.Unstructured {
	o := esoObject(spec)
	o.SetAPIVersion("external-secrets.io/v1alpha1")
	o.SetKind("PushSecret")
	o.SetGeneration(3)
	_ = unstructured.SetNestedField(o.Object, pushed, "status", "syncedResourceVersion")
	return o
}

// ourPush returns a PushSecret of direct-secrets that is created here, with the status and reason of Ready; "" for none.
func ourPush(spec v1alpha1.PushSecretSpec, ready metav1.ConditionStatus, reason string, store v1alpha1.PushStoreStatus) *v1alpha1.PushSecret {
	o := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{fromAnnotation: "eso"}}, Spec: spec}
	store.Kind, store.Name = "VaultKV", "prod"
	o.Status.Stores = []v1alpha1.PushStoreStatus{store}
	if ready != "" {
		o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: "why", ObservedGeneration: 2}}
	}
	return o
}

func TestNextPush(t *testing.T) {
	active := map[string]any{"refreshInterval": "1h0m0s", "deletionPolicy": "Delete"}
	stop := map[string]any{"refreshInterval": "0s", "deletionPolicy": "None"}
	quiet := esoPush(stop, "3-a")
	final := map[string]any{"deletionPolicy": "Delete"}
	held := esoPush(stop, "3-a")
	held.SetFinalizers([]string{pushFinalizer})
	deleted := esoPush(stop, "3-a")
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	dry, own, done := v1alpha1.PushSecretSpec{DryRun: true}, v1alpha1.PushSecretSpec{AdoptionPolicy: v1alpha1.AdoptionOwn}, v1alpha1.PushSecretSpec{}
	plan := func(entries ...v1alpha1.PushDifferenceEntry) *v1alpha1.PushSecret {
		return ourPush(dry, metav1.ConditionUnknown, v1alpha1.ReasonDryRun, v1alpha1.PushStoreStatus{Difference: &v1alpha1.PushDifference{Entries: entries}})
	}
	same := plan(v1alpha1.PushDifferenceEntry{RemoteKey: "a", Action: v1alpha1.PushOwn}, v1alpha1.PushDifferenceEntry{RemoteKey: "b", Action: v1alpha1.PushKeep})
	synced := func(spec v1alpha1.PushSecretSpec, created bool) *v1alpha1.PushSecret {
		return ourPush(spec, metav1.ConditionTrue, v1alpha1.ReasonSecretSynced, v1alpha1.PushStoreStatus{Entries: []v1alpha1.PushEntryStatus{
			{RemoteKey: "a", Created: true}, {RemoteKey: "b", Property: "x", Created: created}, {RemoteKey: "b", Property: "y", Created: created},
		}})
	}
	foreign := synced(done, true)
	foreign.Annotations = nil
	old := plan()
	old.Generation = 3
	for name, tc := range map[string]struct {
		from  *unstructured.Unstructured
		to    *v1alpha1.PushSecret
		final map[string]any
		want  step
		why   string
	}{
		"Begin":       {from: esoPush(active, "3-a"), want: stepCreate},
		"NothingLeft": {want: stepGiveBack, why: "it was deleted meanwhile"},
		"Foreign":     {from: esoPush(active, "3-a"), to: foreign, want: stepGiveBack, why: "a PushSecret of direct-secrets with this name exists already; delete it first"},
		"NoOperator":  {from: esoPush(active, "3-a"), to: ourPush(dry, "", "", v1alpha1.PushStoreStatus{}), want: stepWait, why: "no operator of direct-secrets has reconciled it; check that its module is installed"},
		"OldStatus":   {from: esoPush(active, "3-a"), to: old, want: stepWait, why: "no operator of direct-secrets has reconciled it; check that its module is installed"},
		"NotPlanned":  {from: esoPush(active, "3-a"), to: ourPush(dry, metav1.ConditionFalse, "StoreNotReady", v1alpha1.PushStoreStatus{}), want: stepWait, why: "direct-secrets cannot plan it: StoreNotReady: why"},
		"NotCompared": {
			from: esoPush(active, "3-a"), to: ourPush(dry, metav1.ConditionUnknown, v1alpha1.ReasonDryRun, v1alpha1.PushStoreStatus{}),
			want: stepGiveBack, why: "direct-secrets would change remote secrets: VaultKV prod was not compared",
		},
		"Differs": {
			from: esoPush(active, "3-a"), to: plan(v1alpha1.PushDifferenceEntry{RemoteKey: "a", Action: v1alpha1.PushUpdate}, v1alpha1.PushDifferenceEntry{RemoteKey: "b", Property: "x", Action: v1alpha1.PushCreate}),
			want: stepGiveBack, why: "direct-secrets would change remote secrets: Update a in VaultKV prod; Create b in VaultKV prod, property x",
		},
		"Same":        {from: esoPush(active, "3-a"), to: same, want: stepStopESO},
		"DeletedFrom": {to: same, want: stepGiveBack, why: "it was deleted meanwhile"},
		"LastPush":    {from: esoPush(stop, "2-a"), to: same, want: stepWait, why: "External Secrets Operator has not made its last push; check that it runs"},
		"Finalizer":   {from: held, to: same, want: stepWait, why: "External Secrets Operator has not made its last push; check that it runs"},
		"Stopped":     {from: quiet, to: same, want: stepAdopt},
		"ChangedBack": {from: esoPush(active, "4-a"), to: synced(own, true), want: stepGiveBack, why: "the object of External Secrets Operator was changed back; suspend the tool that manages it"},
		"Adopting":    {from: quiet, to: ourPush(own, "", "", v1alpha1.PushStoreStatus{}), want: stepWait, why: "no operator of direct-secrets has reconciled it"},
		"NotAdopted":  {from: quiet, to: ourPush(own, metav1.ConditionFalse, "SecretSyncedError", v1alpha1.PushStoreStatus{}), want: stepWait, why: "direct-secrets cannot take it over: SecretSyncedError: why"},
		"Owned":       {from: quiet, to: synced(own, true), want: stepFinish},
		"Done":        {from: quiet, to: synced(done, true), want: stepDone},
		"Kept":        {from: quiet, to: synced(done, false), want: stepDone, why: "deletionPolicy Delete does not delete these, because they have the mark of another PushSecret: b"},
		"DeletesNone": {from: quiet, to: synced(done, false), final: map[string]any{}, want: stepDone},
		"Removing":    {from: deleted, to: synced(done, true), want: stepDone},
		"Removed":     {to: synced(done, true), want: stepDone},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.final == nil {
				tc.final = final
			}
			s := pushState{from: tc.from, to: tc.to, final: esoPush(tc.final, ""), journal: entry{UID: "eso"}}
			if got, why := s.next(); got != tc.want || why != tc.why {
				t.Errorf("step %d (%s), want %d (%s)", got, why, tc.want, tc.why)
			}
		})
	}
}
