package target

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestDifference compares every combination of what a Secret has and what an ExternalSecret yields.
func TestDifference(t *testing.T) {
	const canary = "c4n4ry"
	names := func(added, changed, removed string) v1alpha1.NameDifference {
		return v1alpha1.NameDifference{Added: strings.Fields(added), Changed: strings.Fields(changed), Removed: strings.Fields(removed)}
	}
	desired := Desired{
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte(canary + "-a")},
		Labels:      map[string]string{"team": canary, "aws.direct-secrets.io/managed": "true"},
		Annotations: map[string]string{"note": canary},
	}
	live := func(change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": canary}, Annotations: map[string]string{"note": canary}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte(canary + "-a")},
		}
		change(s)
		return s
	}
	cases := map[string]struct {
		reason  string
		desired func(*Desired)
		live    *corev1.Secret
		want    v1alpha1.Difference
	}{
		"Same":        {"no name is listed, not even of the operator's own labels", nil, live(func(*corev1.Secret) {}), v1alpha1.Difference{Exists: true}},
		"Absent":      {"everything is added", nil, nil, v1alpha1.Difference{Data: names("a", "", ""), Labels: names("team", "", ""), Annotations: names("note", "", "")}},
		"Added":       {"a key that the Secret lacks is added", nil, live(func(s *corev1.Secret) { s.Data = nil }), v1alpha1.Difference{Exists: true, Data: names("a", "", "")}},
		"Changed":     {"a key with another value is changed", nil, live(func(s *corev1.Secret) { s.Data["a"] = []byte(canary) }), v1alpha1.Difference{Exists: true, Data: names("", "a", "")}},
		"Empty":       {"an empty value is a value", nil, live(func(s *corev1.Secret) { s.Data["a"] = nil }), v1alpha1.Difference{Exists: true, Data: names("", "a", "")}},
		"Removed":     {"a key that only the Secret has is removed", nil, live(func(s *corev1.Secret) { s.Data["b"] = []byte(canary) }), v1alpha1.Difference{Exists: true, Data: names("", "", "b")}},
		"Mixed":       {"each key is listed once", func(d *Desired) { d.Data = map[string][]byte{"x": nil, "y": []byte("1")} }, live(func(s *corev1.Secret) { s.Data["y"] = []byte("2") }), v1alpha1.Difference{Exists: true, Data: names("x", "y", "a")}},
		"Label":       {"a label with another value is changed", nil, live(func(s *corev1.Secret) { s.Labels["team"] = "x" }), v1alpha1.Difference{Exists: true, Labels: names("", "team", "")}},
		"NoLabel":     {"a label that the Secret lacks is added", nil, live(func(s *corev1.Secret) { s.Labels = nil }), v1alpha1.Difference{Exists: true, Labels: names("team", "", "")}},
		"OtherLabel":  {"a label that only the Secret has stays, so it is not listed", nil, live(func(s *corev1.Secret) { s.Labels["of"] = "others" }), v1alpha1.Difference{Exists: true}},
		"Annotation":  {"annotations count like labels", nil, live(func(s *corev1.Secret) { s.Annotations = map[string]string{"note": "x", "of": "others"} }), v1alpha1.Difference{Exists: true, Annotations: names("", "note", "")}},
		"Type":        {"another type is named", nil, live(func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS }), v1alpha1.Difference{Exists: true, Type: "Opaque"}},
		"AnyType":     {"a policy that takes any type asks for none", func(d *Desired) { d.Type = "" }, live(func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS }), v1alpha1.Difference{Exists: true}},
		"Nothing":     {"an object that yields nothing would remove everything", func(d *Desired) { *d = Desired{} }, live(func(*corev1.Secret) {}), v1alpha1.Difference{Exists: true, Data: names("", "", "a")}},
		"NothingBoth": {"nothing and no Secret are the same", func(d *Desired) { *d = Desired{} }, nil, v1alpha1.Difference{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := desired
			if tc.desired != nil {
				tc.desired(&d)
			}
			got := d.Difference(tc.live)
			if diff := cmp.Diff(tc.want, *got, cmp.Comparer(func(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") })); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if raw, err := json.Marshal(got); err != nil || strings.Contains(string(raw), canary) {
				t.Errorf("%s, %v: a value is in it", raw, err)
			}
		})
	}
}

// TestDifferenceTruncated cuts off long lists, so that a status stays small.
func TestDifferenceTruncated(t *testing.T) {
	d := Desired{Data: map[string][]byte{}}
	for i := range mostNames + 1 {
		d.Data[fmt.Sprint("key-", i)] = nil
	}
	got := d.Difference(nil).Data
	if len(got.Added) != mostNames || !got.Truncated {
		t.Errorf("%d names, truncated %v, want %d and true", len(got.Added), got.Truncated, mostNames)
	}
}
