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
		// want are the values of store VaultKV/kv.
		want map[string]string
		err  string
	}{
		"Strings": {reason: "a string is the value as it is", file: `remote: {a: hunter2, b: "1"}`, want: map[string]string{"a": secret, "b": "1"}},
		"JSON":    {reason: "anything else becomes JSON", file: `remote: {a: {password: hunter2}, b: 1, c: [x]}`, want: map[string]string{"a": `{"password":"hunter2"}`, "b": "1", "c": `["x"]`}},
		"Store":   {reason: "the values of one store go before those of any", file: `{remote: {a: x, b: other}, stores: {VaultKV/kv: {a: z}, VaultKV/other: {c: w}}}`, want: map[string]string{"a": "z", "b": "other"}},
		"Unknown": {reason: "a misspelt field is an error, without values", file: `{remotes: {a: hunter2}}`, err: "the values must have the fields remote, stores, metadata, generators and templates, each a map; generators and templates hold strings"},
		"NoYAML":  {reason: "the error of the parser, which has a part of the file, is not shown", file: "a: hunter2: hunter2", err: "the values are no YAML in which each key is unique"},
		"Twice":   {reason: "a key that is given twice is an error", file: "remote: {a: x, a: hunter2}", err: "the values are no YAML in which each key is unique"},
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
		"DataFrom": {reason: "values decide about further keys", spec: `{data: [{secretKey: a, remoteRef: {key: x}}], dataFrom: [{extract: {key: x}}]}`, want: []string{"a"}},
		"Template": {reason: "a template replaces what was read", spec: `{target: {template: {data: {b: x}}}, dataFrom: [{extract: {key: x}}]}`, want: []string{"b"}, complete: true},
		"Merge":    {reason: "or adds to it", spec: `{target: {template: {mergePolicy: Merge, data: {b: x}}}, data: [{secretKey: a, remoteRef: {key: x}}]}`, want: []string{"a", "b"}, complete: true},
		"From":     {reason: "a template of elsewhere can yield any key", spec: `{target: {template: {templateFrom: [{literal: x}]}}}`},
		"Labels":   {reason: "labels shape no data", spec: `{target: {template: {metadata: {labels: {x: y}}}}, data: [{secretKey: a, remoteRef: {key: x}}]}`, want: []string{"a"}, complete: true},
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

// liveSecret is a Secret of which the ExternalSecret db holds old and same, and others hold theirs.
func liveSecret(t *testing.T, change func(*corev1.Secret)) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	s.Name, s.Type = "db", corev1.SecretTypeOpaque
	s.Data = map[string][]byte{"old": []byte("x"), "same": []byte("x"), "theirs": []byte("x")}
	s.Annotations = map[string]string{inspect.MarkKey("db"): "{}"}
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
			reason: "a Secret that is absent is created with all keys",
			want:   &corev1.Secret{Data: map[string][]byte{"a": nil}},
			diff:   Difference{Action: Create, Data: Names{Added: []string{"a"}}},
		},
		"Merge": {
			reason: "Merge creates none",
			spec:   `target: {creationPolicy: Merge}`,
			want:   &corev1.Secret{Data: map[string][]byte{"a": nil}},
			diff:   Difference{Action: Refuse, Problems: []string{"the Secret does not exist, and creationPolicy Merge waits until it does"}},
		},
		"Update": {
			reason: "own keys are added, changed and removed, those of others stay",
			want:   &corev1.Secret{Data: map[string][]byte{"new": []byte("x"), "same": []byte("y")}},
			live:   liveSecret(t, nil), values: true,
			diff: Difference{Action: Update, Data: Names{Added: []string{"new"}, Changed: []string{"same"}, Removed: []string{"old"}}},
		},
		"Unchanged": {
			reason: "equal values are no difference",
			want:   &corev1.Secret{Data: map[string][]byte{"old": []byte("x"), "same": []byte("x")}},
			live:   liveSecret(t, nil), values: true,
			diff: Difference{Action: Unchanged},
		},
		"Names": {
			reason: "without values only names are compared",
			want:   &corev1.Secret{Data: map[string][]byte{"new": nil, "same": nil}},
			live:   liveSecret(t, func(s *corev1.Secret) { s.Data = nil }),
			diff:   Difference{Action: Update, Data: Names{Added: []string{"new"}, Removed: []string{"old"}}, Notes: []string{"values are not compared: use --values"}},
		},
		"Owned": {
			reason: "a Secret of another owner is left alone",
			want:   &corev1.Secret{Data: map[string][]byte{"new": nil}},
			live: liveSecret(t, func(s *corev1.Secret) {
				s.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", Name: "x", Controller: &isController}}
			}),
			values: true,
			diff:   Difference{Action: Refuse, Data: Names{Added: []string{"new"}, Removed: []string{"old", "same"}}, Problems: []string{`the Secret is controlled by ConfigMap "x"`}},
		},
		"Immutable": {
			reason: "an immutable Secret cannot change",
			want:   &corev1.Secret{Data: map[string][]byte{"old": []byte("x"), "same": []byte("y")}},
			live:   liveSecret(t, func(s *corev1.Secret) { s.Immutable = &immutable }), values: true,
			diff: Difference{Action: Refuse, Data: Names{Changed: []string{"same"}}, Problems: []string{"the Secret is immutable: delete it, it is created again"}},
		},
		"Taken": {
			reason: "a key of another ExternalSecret is not taken over",
			want:   &corev1.Secret{Data: map[string][]byte{"old": []byte("x"), "same": []byte("x"), "theirs": []byte("x")}},
			live: liveSecret(t, func(s *corev1.Secret) {
				s.Annotations[inspect.MarkKey("other")] = `{"name":"other"}`
				s.ManagedFields[1].Manager = inspect.FieldManager("other")
			}),
			values: true,
			diff:   Difference{Action: Refuse, Problems: []string{`key "theirs" is held by ExternalSecret "other"`}},
		},
		"Gone": {
			reason: "without values the Secret is deleted",
			live:   liveSecret(t, nil), values: true,
			diff: Difference{Action: Delete, Data: Names{Removed: []string{"old", "same"}}},
		},
		"Suspended": {
			reason: "a suspended object says so",
			spec:   `suspend: true`,
			want:   &corev1.Secret{Data: map[string][]byte{"a": nil}},
			diff:   Difference{Action: Create, Data: Names{Added: []string{"a"}}, Notes: []string{"spec.suspend is true: nothing happens until it is false"}},
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
