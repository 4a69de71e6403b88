package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// What Yield says before is what Apply does, and it changes nothing that it was given.
func TestYield(t *testing.T) {
	held := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Apply", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const metadata = `{"f:metadata":{"f:labels":{"f:example.com/team":{},"f:l":{},"f:fake.direct-secrets.io/managed":{},"f:stores.direct-secrets.io/x":{}},"f:annotations":{"f:n":{}}}}`
	const a, ab = `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:a":{},"f:b":{}}}`
	yes := func(string) bool { return true }
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		contest target.Contest
		want    []string
	}{
		"Nobody":       {reason: "Keys of nobody are to be had."},
		"Ours":         {reason: "What we hold is ours.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab)}},
		"Tool":         {reason: "Keys of a tool are taken over.", entries: []metav1.ManagedFieldsEntry{held("flux", ab)}},
		"Living":       {reason: "Those of another ExternalSecret are not.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", ab)}, want: []string{"a", "b"}},
		"SomeOfLiving": {reason: "Each key for itself.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", a)}, want: []string{"a"}},
		"Dead": {
			reason:  "Unless it is gone.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", ab)}, contest: target.Contest{Dead: yes},
		},
		"SharedWithYounger": {
			reason:  "What both hold stays with the older.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)},
		},
		"SharedWithOlder": {
			reason:  "And the later lets go.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)}, contest: target.Contest{Older: yes},
			want: []string{"a"},
		},
		"SharedWithDeadOlder": {
			reason:  "Not to one that is gone.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)}, contest: target.Contest{Older: yes, Dead: yes},
		},
		"OneOfTwo": {
			reason:  "One living holder is enough.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", a), held("direct-secrets:y", a)}, contest: target.Contest{Dead: only("direct-secrets:x")},
			want: []string{"a"},
		},
		"Metadata": {
			reason:  "Labels and annotations are as keys are; those of this project are shared.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", metadata)},
			want:    []string{"annotations/n", "labels/example.com/team", "labels/l"},
		},
		"MetadataSharedWithYounger": {
			reason:  "The older keeps them.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", metadata), held("direct-secrets:x", metadata)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wants := func(without ...string) target.Desired {
				d := object{e: &env{ns: "ns"}, name: "db", uid: "1"}.wants("db")
				d.Data = map[string][]byte{"a": []byte("1"), "b": []byte("2")}
				d.Labels = map[string]string{"l": "1", "example.com/team": "x", "fake.direct-secrets.io/managed": "true", "stores.direct-secrets.io/x": "true"}
				d.Annotations = map[string]string{"n": "1"}
				for _, name := range without {
					delete(d.Data, name)
					delete(d.Labels, strings.TrimPrefix(name, "labels/"))
					delete(d.Annotations, strings.TrimPrefix(name, "annotations/"))
				}
				d.Mark.Yields = without
				return immutable(d)
			}
			d := wants()
			got, yielded := d.Yield(tc.entries, tc.contest)
			if diff := cmp.Diff(tc.want, yielded); diff != "" {
				t.Errorf("\n%s\nyielded: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(wants(), d); diff != "" {
				t.Errorf("\n%s\nwhat was asked: -before, +after:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(wants(tc.want...), got); diff != "" {
				t.Errorf("\n%s\nwhat is left, sealed anew: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
