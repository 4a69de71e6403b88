package provider_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestFingerprint holds the hashes to those in existing statuses.
func TestFingerprint(t *testing.T) {
	value := map[string]string{"a": "1"}
	got := []string{provider.Fingerprint("id", value), provider.Fingerprint("other", value), provider.Fingerprint("id", nil), provider.HashedID("id")}
	want := []string{"a81ada4bb3fbaf969b84b89c23a596fa", "9ca3dfb457236c3ccfce458873d09c00", "b9534a58bfefc09ddd77c334716e81fa", "df620ad87c984258b64d94141a1d2909"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
