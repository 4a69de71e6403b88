package cutover

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// esoObject returns an object of External Secrets Operator.
func esoObject(spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}}}
	o.SetAPIVersion("external-secrets.io/v1")
	o.SetKind("ExternalSecret")
	o.SetNamespace("shop")
	o.SetName("db")
	o.SetUID("eso")
	return o
}

// stoppedSpec is the spec of an object that External Secrets Operator leaves alone.
func stoppedSpec() map[string]any {
	return map[string]any{"refreshInterval": "0s", "target": map[string]any{"creationPolicy": "Orphan"}}
}

// ours returns an ExternalSecret of direct-secrets that is created here, with Ready as given; "" for none.
func ours(policy v1alpha1.CreationPolicy, ready metav1.ConditionStatus, diff *v1alpha1.Difference) *v1alpha1.ExternalSecret {
	o := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{fromAnnotation: "eso"}}}
	o.Spec.Target.CreationPolicy = policy
	if ready != "" {
		o.Status = v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Difference: diff, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: ready, Reason: "Conflict", Message: "another owner"},
		}}
	}
	return o
}

func secretOf(change func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "secret"}}
	change(s)
	return s
}

func TestNext(t *testing.T) {
	same := &v1alpha1.Difference{Exists: true}
	free := secretOf(func(*corev1.Secret) {})
	owned := secretOf(func(s *corev1.Secret) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "db"}}
	})
	managed := secretOf(func(s *corev1.Secret) {
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "externalsecrets.external-secrets.io/db", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
	})
	labelled := secretOf(func(s *corev1.Secret) {
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "externalsecrets.external-secrets.io/db", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:reconcile.external-secrets.io/managed":{}}}}`)}}
	})
	copied := secretOf(func(s *corev1.Secret) {
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "externalsecrets.external-secrets.io/db", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:app":{}}}}`)}}
	})
	ofAnother := secretOf(func(s *corev1.Secret) {
		s.Labels = map[string]string{createdByLabel: "a"}
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "external-secrets.io/v1", Kind: "ExternalSecret", Name: "other"}}
		s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "externalsecrets.external-secrets.io/other", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
	})
	further := &v1alpha1.Difference{Exists: true, Data: v1alpha1.NameDifference{Removed: []string{"b"}}}
	active := esoObject(map[string]any{"refreshInterval": "1h"})
	deleted := esoObject(stoppedSpec())
	now := metav1.Now()
	deleted.SetDeletionTimestamp(&now)
	foreign := ours(v1alpha1.CreateOwner, metav1.ConditionTrue, nil)
	foreign.Annotations = nil
	old := ours(v1alpha1.CreateNone, metav1.ConditionTrue, same)
	old.Generation = 3
	for name, tc := range map[string]struct {
		state   state
		options Options
		merges  bool
		want    step
		why     string
	}{
		"Begin":              {state: state{from: active, secret: owned}, want: stepCreate},
		"NoSecret":           {state: state{from: active}, want: stepGiveBack, why: "the Secret was deleted meanwhile"},
		"OtherSecret":        {state: state{from: active, secret: secretOf(func(s *corev1.Secret) { s.UID = "new" })}, want: stepGiveBack, why: "the Secret was created again meanwhile"},
		"NothingLeft":        {state: state{secret: owned}, want: stepGiveBack, why: "it was deleted meanwhile"},
		"Foreign":            {state: state{from: active, to: foreign, secret: owned}, want: stepGiveBack, why: "an ExternalSecret of direct-secrets with this name exists already; delete it first"},
		"NotReconciled":      {state: state{from: active, to: ours(v1alpha1.CreateNone, "", nil), secret: owned}, want: stepWait, why: "no operator of direct-secrets has reconciled it; check that its module is installed"},
		"OldStatus":          {state: state{from: active, to: old, secret: owned}, want: stepWait, why: "no operator of direct-secrets has reconciled it; check that its module is installed"},
		"NotReadable":        {state: state{from: active, to: ours(v1alpha1.CreateNone, metav1.ConditionFalse, nil), secret: owned}, want: stepWait, why: "direct-secrets cannot read it: Conflict: another owner"},
		"NotCompared":        {state: state{from: active, to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, nil), secret: owned}, want: stepWait, why: "direct-secrets has not compared it"},
		"PlannedWithoutFrom": {state: state{to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, same), secret: owned}, want: stepGiveBack, why: "it was deleted meanwhile"},
		"Differs": {
			state: state{from: active, to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, &v1alpha1.Difference{
				Exists: true, Type: "Opaque", Data: v1alpha1.NameDifference{Added: []string{"a"}, Removed: []string{"b", "c"}}, Labels: v1alpha1.NameDifference{Changed: []string{"l"}},
			}), secret: owned},
			want: stepGiveBack, why: "direct-secrets would change the Secret: its type to Opaque; adds key a; does not have key b, c; changes label l",
		},
		"FurtherKeys":      {state: state{from: active, to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, further), secret: owned}, options: Options{AcceptChanges: true}, want: stepStopESO},
		"FurtherKeysMerge": {state: state{from: active, to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, further), secret: ofAnother}, merges: true, want: stepStopESO},
		"MergeOfAnother":   {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, further), secret: ofAnother}, merges: true, want: stepAdopt},
		"WouldCreate":      {state: state{from: active, to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, &v1alpha1.Difference{}), secret: owned}, want: stepGiveBack, why: "direct-secrets would change the Secret: it would create it"},
		"Same":             {state: state{from: active, to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, same), secret: owned}, want: stepStopESO},
		"Stopped":          {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, same), secret: owned}, want: stepRelease},
		"StoppedManaged":   {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, same), secret: managed}, want: stepRelease},
		"OnlyLabelManaged": {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, same), secret: labelled}, want: stepAdopt},
		"LabelsCopied":     {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, same), secret: copied}, want: stepRelease},
		"Free":             {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateNone, metav1.ConditionTrue, same), secret: free}, want: stepAdopt},
		"Adopting":         {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateOwner, "", nil), secret: free}, want: stepWait, why: "no operator of direct-secrets has reconciled it"},
		"LateWrite":        {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateOwner, metav1.ConditionFalse, nil), secret: owned}, want: stepRelease},
		"NotAdopted":       {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateOwner, metav1.ConditionFalse, nil), secret: free}, want: stepWait, why: "direct-secrets cannot take it over: Conflict: another owner"},
		"ChangedBack":      {state: state{from: active, to: ours(v1alpha1.CreateOwner, metav1.ConditionTrue, nil), secret: free}, want: stepGiveBack, why: "the object of External Secrets Operator was changed back; suspend the tool that manages it"},
		"Done":             {state: state{from: esoObject(stoppedSpec()), to: ours(v1alpha1.CreateOwner, metav1.ConditionTrue, nil), secret: free}, want: stepDone},
		"Removing":         {state: state{from: deleted, to: ours("", metav1.ConditionTrue, nil), secret: free}, want: stepDone},
		"Removed":          {state: state{to: ours("", metav1.ConditionTrue, nil), secret: free}, want: stepDone},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.name, tc.state.merges = "db", tc.merges
			tc.state.journal = entry{UID: "eso", SecretUID: "secret"}
			got, why := tc.state.next(tc.options)
			if got != tc.want || why != tc.why {
				t.Errorf("step %d (%s), want %d (%s)", got, why, tc.want, tc.why)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	labelled := func(key string) *unstructured.Unstructured {
		o := esoObject(map[string]any{})
		o.SetLabels(map[string]string{key: "a"})
		return o
	}
	applied := esoObject(map[string]any{})
	applied.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "argocd-controller"}})
	unsynced := esoObject(map[string]any{})
	unstructured.RemoveNestedField(unsynced.Object, "status")
	to, push := &unstructured.Unstructured{}, esoPush(map[string]any{}, "")
	for name, tc := range map[string]struct {
		unit    Unit
		options Options
		want    string
	}{
		"Good":            {unit: Unit{From: esoObject(map[string]any{}), To: to}},
		"MadeByFanOut":    {unit: Unit{From: esoObject(map[string]any{}), MadeBy: "ClusterExternalSecret all"}, want: "ClusterExternalSecret all makes it and would take the change back; move that, with -A, or as the guide on moving says"},
		"NotConverted":    {unit: Unit{From: esoObject(map[string]any{})}, want: "it cannot be converted; the report of migrate says why"},
		"Changes":         {unit: Unit{From: esoObject(map[string]any{}), To: to, Changes: 2}, want: "the conversion changes something (2 findings); check the report of migrate, and use --accept-changes"},
		"Accepted":        {unit: Unit{From: esoObject(map[string]any{}), To: to, Changes: 2}, options: Options{AcceptChanges: true}},
		"ArgoCD":          {unit: Unit{From: labelled("argocd.argoproj.io/instance"), To: to}, want: "Argo CD manages it and would take the change back; suspend that, and use --reconciliation-suspended"},
		"ArgoCDByName":    {unit: Unit{From: applied, To: to}, want: "Argo CD manages it and would take the change back; suspend that, and use --reconciliation-suspended"},
		"Flux":            {unit: Unit{From: labelled("kustomize.toolkit.fluxcd.io/name"), To: to}, want: "Flux manages it and would take the change back; suspend that, and use --reconciliation-suspended"},
		"Suspended":       {unit: Unit{From: labelled("helm.toolkit.fluxcd.io/name"), To: to}, options: Options{ReconciliationSuspended: true}},
		"None":            {unit: Unit{From: esoObject(map[string]any{"target": map[string]any{"creationPolicy": "None"}}), To: to}, want: "it writes no Secret; apply the converted manifest"},
		"Stopped":         {unit: Unit{From: esoObject(stoppedSpec()), To: to}, want: "it has creationPolicy Orphan and a refreshInterval of 0 already, so External Secrets Operator does not write it; apply the converted manifest"},
		"Push":            {unit: Unit{From: push, To: push}},
		"PushGenerates":   {unit: Unit{From: push, To: esoPush(map[string]any{"selector": map[string]any{"generatorRef": map[string]any{"kind": "Password"}}}, "")}, want: "a generator supplies its value, and direct-secrets would generate and push a new one; the guide on moving says how to move that"},
		"PushIfNotExists": {unit: Unit{From: push, To: esoPush(map[string]any{"updatePolicy": "IfNotExists", "deletionPolicy": "Delete"}, "")}, want: "with updatePolicy IfNotExists it may name remote secrets that External Secrets Operator did not create, and deletionPolicy Delete would delete them; set deletionPolicy None"},
		"PushRefuse":      {unit: Unit{From: push, To: esoPush(map[string]any{"adoptionPolicy": "Refuse"}, "")}, want: "adoptionPolicy Refuse would leave its remote secrets alone"},
		"ConfigMap":       {unit: Unit{From: esoObject(map[string]any{}), To: esoObject(map[string]any{"target": map[string]any{"kind": "ConfigMap"}})}, options: Options{AcceptChanges: true}, want: "it writes a ConfigMap, and only Secrets are moved; apply the converted manifest with another spec.target.name, let workloads read that ConfigMap, and delete the object of External Secrets Operator"},
		"NotSynced":       {unit: Unit{From: unsynced, To: to}, want: "External Secrets Operator has not synced it; correct that first"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cutover{Options: tc.options}
			if diff := cmp.Diff(tc.want, c.refused(tc.unit)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHandOver hands over what External Secrets Operator manages, also after an object was moved and given back.
func TestHandOver(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const eso, own, update, apply = "externalsecrets.external-secrets.io/db", "own", metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	foreign := entry("kubectl", update, `{"f:data":{"f:c":{}}}`)
	cases := map[string]struct {
		reason   string
		in, want []metav1.ManagedFieldsEntry
	}{
		"None":  {"Fields of others stay.", []metav1.ManagedFieldsEntry{foreign}, []metav1.ManagedFieldsEntry{foreign}},
		"First": {"The fields get the manager.", []metav1.ManagedFieldsEntry{entry(eso, update, `{"f:data":{"f:a":{}}}`), foreign}, []metav1.ManagedFieldsEntry{foreign, entry(own, apply, `{"f:data":{"f:a":{}}}`)}},
		"Again": {
			"Fields that the manager has from before stay with it.",
			[]metav1.ManagedFieldsEntry{entry(own, apply, `{"f:data":{"f:a":{}}}`), entry(eso, update, `{"f:metadata":{"f:labels":{"f:app":{}}}}`)},
			[]metav1.ManagedFieldsEntry{entry(own, apply, `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:app":{}}}}`)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := handOver(tc.in, "db", own)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nhandOver(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFinal removes what a tool knows its objects by from the object that takes over, and keeps everything else.
func TestFinal(t *testing.T) {
	o := &unstructured.Unstructured{}
	o.SetLabels(map[string]string{"app": "a", "app.kubernetes.io/instance": "team", "kustomize.toolkit.fluxcd.io/name": "team", "helm.toolkit.fluxcd.io/name": "team"})
	o.SetAnnotations(map[string]string{"note": "n", "argocd.argoproj.io/tracking-id": "team:a", "objectset.rio.cattle.io/id": "team"})
	m := &move{unit: Unit{To: o}, journal: entry{UID: "uid"}}
	is := m.final()
	if diff := cmp.Diff([]map[string]string{{"app": "a"}, {"note": "n", fromAnnotation: "uid"}}, []map[string]string{is.GetLabels(), is.GetAnnotations()}); diff != "" {
		t.Errorf("labels and annotations: -want, +got:\n%s", diff)
	}
	if len(o.GetLabels()) != 4 {
		t.Error("the object itself was changed")
	}
}
