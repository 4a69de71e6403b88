package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestWithoutBlocked checks that WithoutBlocked returns what Apply does, and does not change its input.
func TestWithoutBlocked(t *testing.T) {
	held := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Apply", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const metadata = `{"f:metadata":{"f:labels":{"f:example.com/team":{},"f:l":{},"f:fake.direct-secrets.io/managed":{},"f:stores.direct-secrets.io/x":{}},"f:annotations":{"f:n":{}}}}`
	const a, ab = `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:a":{},"f:b":{}}}`
	yes := func(string) bool { return true }
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		others  target.Others
		want    []string
	}{
		"Free":         {reason: "Keys without an owner are free."},
		"Ours":         {reason: "Keys that we hold are ours.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab)}},
		"Tool":         {reason: "Keys of a tool are taken over.", entries: []metav1.ManagedFieldsEntry{held("flux", ab)}},
		"Living":       {reason: "Keys of another existing ExternalSecret are not taken over.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", ab)}, want: []string{"a", "b"}},
		"SomeOfLiving": {reason: "Each key is decided separately.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", a)}, want: []string{"a"}},
		"Dead": {
			reason:  "Keys of a deleted ExternalSecret are taken over.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", ab)}, others: target.Others{ManagerDeleted: yes},
		},
		"SharedWithYounger": {
			reason:  "A key that both hold stays with the older one.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)},
		},
		"SharedWithOlder": {
			reason:  "The younger one gives the key up.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)}, others: target.Others{Older: yes},
			want: []string{"a"},
		},
		"SharedWithDeadOlder": {
			reason:  "A deleted one does not keep the key.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)}, others: target.Others{Older: yes, ManagerDeleted: yes},
		},
		"OneOfTwo": {
			reason:  "One existing owner is enough.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", a), held("direct-secrets:y", a)}, others: target.Others{ManagerDeleted: only("direct-secrets:x")},
			want: []string{"a"},
		},
		"Metadata": {
			reason:  "Labels and annotations are handled like keys; those of this project are shared.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", metadata)},
			want:    []string{"annotations/n", "labels/example.com/team", "labels/l"},
		},
		"MetadataSharedWithYounger": {
			reason:  "The older one keeps labels and annotations.",
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
				d.Mark.Blocked = without
				return immutable(d)
			}
			d := wants()
			got, blocked := d.WithoutBlocked(tc.entries, tc.others)
			if diff := cmp.Diff(tc.want, blocked); diff != "" {
				t.Errorf("\n%s\nyielded: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(wants(), d); diff != "" {
				t.Errorf("\n%s\nthe input: -before, +after:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(wants(tc.want...), got); diff != "" {
				t.Errorf("\n%s\nthe rest, sealed again: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
