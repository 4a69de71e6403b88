package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// entry returns the managedFields of a server-side apply.
func entry(manager, raw string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(raw)}
}

// writtenSecret returns a Secret to which the ExternalSecret db has written the key a.
func writtenSecret(change func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "db", Annotations: map[string]string{MarkKey("db"): `{"name":"db","uid":"1","module":"aws.direct-secrets.io"}`},
			ManagedFields: []metav1.ManagedFieldsEntry{entry(FieldManager("db"), `{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:team":{}}}}`)},
			Labels:        map[string]string{"team": "shop"},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte("x")},
	}
	if change != nil {
		change(s)
	}
	return s
}

func TestPreview(t *testing.T) {
	t.Parallel()
	immutable := true
	data := func(values ...string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "shop"}}, Data: map[string][]byte{}}
		for i := 0; i < len(values); i += 2 {
			s.Data[values[i]] = []byte(values[i+1])
		}
		return s
	}
	names := func(n ...string) []string { return n }
	owner := func(apiVersion, kind, name string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			s.Annotations = nil
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "9"}}
		}
	}
	other := func(s *corev1.Secret) {
		s.Data["b"] = []byte("x")
		s.Annotations[MarkKey("other")] = `{"name":"other","uid":"2"}`
		s.ManagedFields = append(s.ManagedFields, entry(FieldManager("other"), `{"f:data":{"f:b":{}}}`))
	}
	cases := map[string]struct {
		reason        string
		target        string
		want, live    *corev1.Secret
		withoutValues bool
		change        Change
	}{
		"Create": {reason: "all keys of a missing Secret are added", want: data("a", "x"), change: Change{Action: Create, Data: v1alpha1.NameDifference{Added: names("a")}, Labels: v1alpha1.NameDifference{Added: names("team")}}},
		"None":   {reason: "creationPolicy None counts as Owner", target: `creationPolicy: None`, want: data("a", "x"), change: Change{Action: Create, Data: v1alpha1.NameDifference{Added: names("a")}, Labels: v1alpha1.NameDifference{Added: names("team")}}},
		"TooLarge": {
			reason: "a Secret that is too large cannot be created", want: data("a", strings.Repeat("x", corev1.MaxSecretSize+1)),
			change: Change{
				Action: Refuse, Data: v1alpha1.NameDifference{Added: names("a")}, Labels: v1alpha1.NameDifference{Added: names("team")},
				Problems: names("the Secret would have 1048577 bytes, and the API server accepts at most 1048576; use fewer or smaller keys, or split the ExternalSecret"),
			},
		},
		"Nothing":     {reason: "without values no Secret is created", change: Change{Action: Unchanged}},
		"Missing":     {reason: "Merge creates no Secret", target: `creationPolicy: Merge`, want: data("a", "x"), change: Change{Action: Refuse, Problems: names("the Secret does not exist, and creationPolicy Merge does not create it; create it, or set creationPolicy: CreateOrMerge")}},
		"Same":        {reason: "equal values are no change", want: data("a", "x"), live: writtenSecret(nil), change: Change{Action: Unchanged}},
		"Update":      {reason: "another value is a change", want: data("a", "y"), live: writtenSecret(nil), change: Change{Action: Update, Data: v1alpha1.NameDifference{Changed: names("a")}}},
		"WithoutData": {reason: "without values only names are compared", want: data("b", ""), live: writtenSecret(func(s *corev1.Secret) { s.Data = nil }), withoutValues: true, change: Change{Action: Update, Data: v1alpha1.NameDifference{Added: names("b"), Removed: names("a")}}},
		"CoOwned": {
			reason: "a key that another client has applied, too, stays", want: data("b", "x"),
			live: writtenSecret(func(s *corev1.Secret) {
				s.ManagedFields = append(s.ManagedFields, entry("kubectl", `{"f:data":{"f:a":{}}}`))
			}),
			change: Change{Action: Update, Data: v1alpha1.NameDifference{Added: names("b")}},
		},
		"Type":    {reason: "the type of a Secret cannot change", want: data("a", "x"), live: writtenSecret(func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS }), change: Change{Action: Refuse, Problems: names(`the Secret has type "kubernetes.io/tls", which cannot change to "Opaque"; delete the Secret, it is created again with the new type`)}},
		"AnyType": {reason: "Merge accepts any type", target: `creationPolicy: Merge`, want: data("a", "x"), live: writtenSecret(func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS }), change: Change{Action: Unchanged}},
		"Sealed": {
			reason: "an immutable Secret is not changed", target: `immutable: true`, want: data("a", "y"),
			live: writtenSecret(func(s *corev1.Secret) {
				s.Immutable = &immutable
				s.ManagedFields[0] = entry(FieldManager("db"), `{"f:data":{"f:a":{}},"f:immutable":{}}`)
			}),
			change: Change{Action: Unchanged},
		},
		"Immutable":   {reason: "a Secret that another client has made immutable cannot be written", want: data("a", "y"), live: writtenSecret(func(s *corev1.Secret) { s.Immutable = &immutable }), change: Change{Action: Refuse, Data: v1alpha1.NameDifference{Changed: names("a")}, Problems: names("the Secret is immutable; delete it, it is created again with the new values")}},
		"Foreign":     {reason: "a Secret of another owner is not written", want: data("a", "x"), live: writtenSecret(owner("v1", "ConfigMap", "x")), change: Change{Action: Refuse, Problems: names(`the Secret is owned by ConfigMap "x"; choose another spec.target.name or remove that owner`)}},
		"ForeignKind": {reason: "an ExternalSecret of another API group is another owner", want: data("a", "x"), live: writtenSecret(owner("external-secrets.io/v1", "ExternalSecret", "db")), change: Change{Action: Refuse, Problems: names(`the Secret is owned by ExternalSecret "db"; choose another spec.target.name or remove that owner`)}},
		"Rival":       {reason: "a Secret that another ExternalSecret has written first is not written", want: data("b", "x"), live: writtenSecret(func(s *corev1.Secret) { other(s); delete(s.Annotations, MarkKey("db")) }), change: Change{Action: Refuse, Data: v1alpha1.NameDifference{Removed: names("a")}, Problems: names(`the Secret is written by ExternalSecret "other"; choose another spec.target.name`)}},
		"Yield":       {reason: "keys of another ExternalSecret are left out", want: data("a", "y", "b", "y"), live: writtenSecret(other), change: Change{Action: Update, Data: v1alpha1.NameDifference{Changed: names("a")}, Problems: names(`key "b" is written by ExternalSecret "other"`)}},
		"YieldAll":    {reason: "only keys of another ExternalSecret would change", want: data("a", "x", "b", "y"), live: writtenSecret(other), change: Change{Action: Refuse, Problems: names(`key "b" is written by ExternalSecret "other"`)}},
		"YieldMerge": {
			reason: "an object that has written nothing wants only keys of another ExternalSecret", target: `creationPolicy: Merge`, want: data("b", "y"),
			live: writtenSecret(func(s *corev1.Secret) {
				other(s)
				delete(s.Annotations, MarkKey("db"))
				s.ManagedFields = s.ManagedFields[1:]
			}),
			change: Change{Action: Refuse, Problems: names(`key "b" is written by ExternalSecret "other"`)},
		},
		"Delete":       {reason: "without values the Secret is deleted", live: writtenSecret(nil), change: Change{Action: Delete, Data: v1alpha1.NameDifference{Removed: names("a")}, Labels: v1alpha1.NameDifference{Removed: names("team")}}},
		"DeleteShared": {reason: "a Secret with keys of others is not deleted", live: writtenSecret(other), change: Change{Action: Update, Data: v1alpha1.NameDifference{Removed: names("a")}, Labels: v1alpha1.NameDifference{Removed: names("team")}}},
		"Terminating":  {reason: "a Secret that is being deleted is not written", want: data("a", "x"), live: writtenSecret(func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{} }), change: Change{Action: Refuse, Problems: names("the Secret is being deleted")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
			if err := yaml.UnmarshalStrict([]byte(tc.target), &es.Spec.Target); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.change, Preview(es, tc.want, tc.live, !tc.withoutValues)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
