package offline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

func TestParseValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	cases := map[string]struct {
		reason, file string
		// want holds the values of the store VaultKV/kv.
		want map[string]string
		err  string
	}{
		"Strings": {reason: "a string is the value itself", file: `remote: {a: hunter2, b: "1"}`, want: map[string]string{"a": secret, "b": "1"}},
		"JSON":    {reason: "any other value becomes JSON", file: `remote: {a: {password: hunter2}, b: 1, c: [x]}`, want: map[string]string{"a": `{"password":"hunter2"}`, "b": "1", "c": `["x"]`}},
		"Store":   {reason: "the values of one store take precedence over those of any store", file: `{remote: {a: x, b: other}, stores: {VaultKV/kv: {a: z}, VaultKV/other: {c: w}}}`, want: map[string]string{"a": "z", "b": "other"}},
		"Unknown": {reason: "the error of a misspelt field shows no values", file: `{remotes: {a: hunter2}}`, err: `unknown field "remotes". The fields are remote, stores, metadata, generators and templates, each a map, and values below the last three must be strings`},
		"Type":    {reason: "the error of a value names the field", file: `{generators: {Password/a: {b: 1}}}`, err: "generators: is a number, and must be a text. The fields are remote, stores, metadata, generators and templates, each a map, and values below the last three must be strings"},
		"Word":    {reason: "text that YAML takes for a boolean is refused by name", file: "remote:\n  a: no", err: `line 2: remote.a: YAML 1.1 reads no without quotes as true or false; write "no" for the text, or true or false. The fields are remote, stores, metadata, generators and templates, each a map, and values below the last three must be strings`},
		"WordKey": {reason: "a key is text, too", file: "remote: {y: hunter2}", err: `line 1: remote.y: YAML 1.1 reads y without quotes as true or false; write "y" for the text, or true or false. The fields are remote, stores, metadata, generators and templates, each a map, and values below the last three must be strings`},
		"Quoted":  {reason: "quotes make it text", file: `remote: {"a": 'no', b: true}`, want: map[string]string{"a": "no", "b": "true"}},
		"NoYAML":  {reason: "the error of the parser is not shown, because it contains a part of the file", file: "a: hunter2: hunter2", err: "the file of values is not valid YAML with unique keys"},
		"Twice":   {reason: "a key that is given twice is an error", file: "remote: {a: x, a: hunter2}", err: "the file of values is not valid YAML with unique keys"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote, err := ParseValues([]byte(tc.file))
			if err != nil {
				if diff := cmp.Diff(tc.err, err.Error()); diff != "" || strings.Contains(err.Error(), secret) {
					t.Errorf("%s: error: -want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			got := map[string]string{}
			for k, v := range remote.Secrets(v1alpha1.StoreRef{Kind: "VaultKV", Name: "kv"}) {
				got[k] = string(v.Data)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || tc.err != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, spec string
		want         []string
		complete     bool
	}{
		"Data":     {reason: "the spec names the keys", spec: `data: [{secretKey: a, remoteRef: {key: x}}]`, want: []string{"a"}, complete: true},
		"DataFrom": {reason: "further keys depend on values", spec: `{data: [{secretKey: a, remoteRef: {key: x}}], dataFrom: [{extract: {key: x}}]}`, want: []string{"a"}},
		"Template": {reason: "a template replaces the keys that were read", spec: `{target: {template: {data: {b: x}}}, dataFrom: [{extract: {key: x}}]}`, want: []string{"b"}, complete: true},
		"Merge":    {reason: "a template can add to the keys that were read", spec: `{target: {template: {mergePolicy: Merge, data: {b: x}}}, data: [{secretKey: a, remoteRef: {key: x}}]}`, want: []string{"a", "b"}, complete: true},
		"From":     {reason: "a template from another object can produce any key", spec: `{target: {template: {templateFrom: [{literal: x}]}}}`},
		"Labels":   {reason: "labels do not change the data", spec: `{target: {template: {metadata: {labels: {x: y}}}}, data: [{secretKey: a, remoteRef: {key: x}}]}`, want: []string{"a"}, complete: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es := &v1alpha1.ExternalSecret{}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &es.Spec); err != nil {
				t.Fatal(err)
			}
			s, complete := Named(es)
			var got []string
			for k := range s.Data {
				got = append(got, k)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" || complete != tc.complete {
				t.Errorf("%s: complete is %t, -want, +got:\n%s", tc.reason, complete, diff)
			}
		})
	}
}

// liveSecret returns a Secret in which the ExternalSecret db owns old and same, and another owner has theirs.
func liveSecret(t *testing.T, change func(*corev1.Secret)) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	s.Name, s.Type = "db", corev1.SecretTypeOpaque
	s.Data = map[string][]byte{"old": []byte("x"), "same": []byte("x"), "theirs": []byte("x")}
	s.Annotations = map[string]string{inspect.MarkKey("db"): `{"name":"db","uid":"1"}`}
	s.ManagedFields = []metav1.ManagedFieldsEntry{
		fields(inspect.FieldManager("db"), `{"f:data":{"f:old":{},"f:same":{}},"f:metadata":{"f:annotations":{"f:`+inspect.MarkKey("db")+`":{}}}}`),
		fields("kubectl", `{"f:data":{"f:theirs":{}}}`),
	}
	if change != nil {
		change(s)
	}
	return s
}

func fields(manager, raw string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(raw)}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	isController, immutable := true, true
	cases := map[string]struct {
		reason string
		spec   string
		want   *corev1.Secret
		live   *corev1.Secret
		values bool
		diff   Difference
	}{
		"Create": {
			reason: "a missing Secret is created with all keys",
			want:   &corev1.Secret{Data: map[string][]byte{"a": nil}},
			diff:   Difference{Action: inspect.Create, Data: v1alpha1.NameDifference{Added: []string{"a"}}},
		},
		"Merge": {
			reason: "Merge creates no Secret",
			spec:   `target: {creationPolicy: Merge}`,
			want:   &corev1.Secret{Data: map[string][]byte{"a": nil}},
			diff:   Difference{Action: inspect.Refuse, Problems: []string{"the Secret does not exist, and creationPolicy Merge does not create it; create it, or set creationPolicy: CreateOrMerge"}},
		},
		"Update": {
			reason: "own keys are added, changed and removed, and those of others stay",
			want:   &corev1.Secret{Data: map[string][]byte{"new": []byte("x"), "same": []byte("y")}},
			live:   liveSecret(t, nil), values: true,
			diff: Difference{Action: inspect.Update, Data: v1alpha1.NameDifference{Added: []string{"new"}, Changed: []string{"same"}, Removed: []string{"old"}}},
		},
		"Unchanged": {
			reason: "equal values are no difference",
			want:   &corev1.Secret{Data: map[string][]byte{"old": []byte("x"), "same": []byte("x")}},
			live:   liveSecret(t, nil), values: true,
			diff: Difference{Action: inspect.Unchanged},
		},
		"Names": {
			reason: "without values only names are compared",
			want:   &corev1.Secret{Data: map[string][]byte{"new": nil, "same": nil}},
			live:   liveSecret(t, func(s *corev1.Secret) { s.Data = nil }),
			diff:   Difference{Action: inspect.Update, Data: v1alpha1.NameDifference{Added: []string{"new"}, Removed: []string{"old"}}, Notes: []string{"values are not compared: use --values"}},
		},
		"Owned": {
			reason: "a Secret with another owner stays unchanged",
			want:   &corev1.Secret{Data: map[string][]byte{"new": nil}},
			live: liveSecret(t, func(s *corev1.Secret) {
				s.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", Name: "x", Controller: &isController}}
			}),
			values: true,
			diff:   Difference{Action: inspect.Refuse, Data: v1alpha1.NameDifference{Added: []string{"new"}, Removed: []string{"old", "same"}}, Problems: []string{`the Secret is controlled by ConfigMap "x"; choose another spec.target.name or remove that owner`}},
		},
		"Immutable": {
			reason: "an immutable Secret cannot change",
			want:   &corev1.Secret{Data: map[string][]byte{"old": []byte("x"), "same": []byte("y")}},
			live:   liveSecret(t, func(s *corev1.Secret) { s.Immutable = &immutable }), values: true,
			diff: Difference{Action: inspect.Refuse, Data: v1alpha1.NameDifference{Changed: []string{"same"}}, Problems: []string{"the Secret is immutable; delete it, it is created again with the new values"}},
		},
		"Taken": {
			reason: "a key of another ExternalSecret is not taken over",
			want:   &corev1.Secret{Data: map[string][]byte{"old": []byte("x"), "same": []byte("x"), "theirs": []byte("x")}},
			live: liveSecret(t, func(s *corev1.Secret) {
				s.Annotations[inspect.MarkKey("other")] = `{"name":"other"}`
				s.ManagedFields[1].Manager = inspect.FieldManager("other")
			}),
			values: true,
			diff:   Difference{Action: inspect.Refuse, Problems: []string{`key "theirs" is written by ExternalSecret "other"`}},
		},
		"Shared": {
			reason: "without remote values a Secret with keys of others stays",
			live:   liveSecret(t, nil), values: true,
			diff: Difference{Action: inspect.Update, Data: v1alpha1.NameDifference{Removed: []string{"old", "same"}}},
		},
		"Deleted": {
			reason: "without remote values the Secret is deleted",
			live:   liveSecret(t, func(s *corev1.Secret) { delete(s.Data, "theirs") }), values: true,
			diff: Difference{Action: inspect.Delete, Data: v1alpha1.NameDifference{Removed: []string{"old", "same"}}},
		},
		"Suspended": {
			reason: "a suspended object has a note",
			spec:   `suspend: true`,
			want:   &corev1.Secret{Data: map[string][]byte{"a": nil}},
			diff:   Difference{Action: inspect.Create, Data: v1alpha1.NameDifference{Added: []string{"a"}}, Notes: []string{"spec.suspend is true: nothing happens until it is false"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es := &v1alpha1.ExternalSecret{}
			es.Name = "db"
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &es.Spec); err != nil {
				t.Fatal(err)
			}
			tc.diff.ExternalSecret, tc.diff.Secret = "db", "db"
			got := Compare(es, tc.want, true, Live{Secret: tc.live, Values: tc.values})
			if diff := cmp.Diff(tc.diff, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReported(t *testing.T) {
	t.Parallel()
	const note = "creationPolicy is None: nothing is written; this is what the operator would change under Owner"
	cases := map[string]struct {
		reason string
		status v1alpha1.ExternalSecretStatus
		want   Difference
		found  bool
	}{
		"None":   {reason: "without a report dsctl compares by itself", status: v1alpha1.ExternalSecretStatus{ObservedGeneration: 2}},
		"Stale":  {reason: "a report of another spec is none", status: v1alpha1.ExternalSecretStatus{ObservedGeneration: 1, Difference: &v1alpha1.Difference{Exists: true}}},
		"Same":   {"nothing differs", v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Difference: &v1alpha1.Difference{Exists: true}}, Difference{Action: inspect.Unchanged, Notes: []string{note}}, true},
		"Create": {"there is no Secret", v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Difference: &v1alpha1.Difference{Data: v1alpha1.NameDifference{Added: []string{"a"}}}}, Difference{Action: inspect.Create, Data: v1alpha1.NameDifference{Added: []string{"a"}}, Notes: []string{note}}, true},
		"Update": {"a label differs", v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Difference: &v1alpha1.Difference{Exists: true, Labels: v1alpha1.NameDifference{Changed: []string{"a"}}}}, Difference{Action: inspect.Update, Labels: v1alpha1.NameDifference{Changed: []string{"a"}}, Notes: []string{note}}, true},
		"Type": {"the type cannot change", v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Difference: &v1alpha1.Difference{Exists: true, Type: "Opaque"}}, Difference{
			Action: inspect.Refuse, Problems: []string{"the type of the Secret cannot change to Opaque: delete the Secret, it is created again"}, Notes: []string{note},
		}, true},
		"Long": {"a list that is cut off is noted", v1alpha1.ExternalSecretStatus{ObservedGeneration: 2, Difference: &v1alpha1.Difference{Exists: true, Data: v1alpha1.NameDifference{Removed: []string{"a"}, Truncated: true}}}, Difference{
			Action: inspect.Update, Data: v1alpha1.NameDifference{Removed: []string{"a"}, Truncated: true}, Notes: []string{note, "a list is cut off: the operator reports 100 names of each"},
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			es := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop", Generation: 2}, Status: tc.status}
			got, found := Reported(es)
			if tc.found {
				tc.want.Namespace, tc.want.ExternalSecret, tc.want.Secret = "shop", "db", "db"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || found != tc.found {
				t.Errorf("%s: found %v, -want, +got:\n%s", tc.reason, found, diff)
			}
		})
	}
}
