package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestOnNotFound is the table of deletionPolicy.
func TestOnNotFound(t *testing.T) {
	type answer struct {
		notFound bool
		values   int
	}
	whole, part, nothing, optional := answer{false, 2}, answer{true, 1}, answer{true, 0}, answer{false, 0}
	for _, tc := range []struct {
		reason string
		policy v1alpha1.DeletionPolicy
		want   map[answer]Consequence
	}{
		{"Retain keeps the Secret unchanged if anything is missing", v1alpha1.DeletionRetain, map[answer]Consequence{whole: Fill, part: KeepAll, nothing: KeepAll, optional: Fill}},
		{"Retain is the default", "", map[answer]Consequence{whole: Fill, part: KeepAll, nothing: KeepAll, optional: Fill}},
		{"an unknown policy, of a later version, removes nothing", "Later", map[answer]Consequence{whole: Fill, part: KeepAll, nothing: KeepAll, optional: Fill}},
		{"Delete drops keys one by one, and the Secret with the last", v1alpha1.DeletionDelete, map[answer]Consequence{whole: Fill, part: Fill, nothing: DropSecret, optional: DropSecret}},
		{"Merge drops keys and never deletes the Secret", v1alpha1.DeletionMerge, map[answer]Consequence{whole: Fill, part: Fill, nothing: DropKeys, optional: Fill}},
	} {
		for a, want := range tc.want {
			if diff := cmp.Diff(want, OnNotFound(tc.policy, a.notFound, a.values)); diff != "" {
				t.Errorf("\n%s\nOnNotFound(%q, %t, %d): -want, +got:\n%s", tc.reason, tc.policy, a.notFound, a.values, diff)
			}
		}
	}
}
