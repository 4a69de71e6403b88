package kit

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// TestRefusedNamesTheStore checks that the message names a store as a user does.
func TestRefusedNamesTheStore(t *testing.T) {
	const absent = "does not exist; create it or correct the reference"
	cases := map[string]struct {
		reason, kind string
		key          types.NamespacedName
		why          resolve.Why
		want         string
	}{
		"Namespaced": {"A store that is missing is named with its namespace, which is often the mistake.", "FakeStore", types.NamespacedName{Namespace: "shop", Name: "prod"}, resolve.Absent, `FakeStore "shop/prod" ` + absent},
		"Cluster":    {"A cluster store has no namespace.", "ClusterFakeStore", types.NamespacedName{Name: "prod"}, resolve.Absent, `ClusterFakeStore "prod" ` + absent},
		"Exists":     {"A store that exists is in the namespace of the object.", "FakeStore", types.NamespacedName{Namespace: "shop", Name: "prod"}, resolve.ReadOnly, `FakeStore "prod" ` + absent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := v1alpha1.StoreRef{Kind: tc.kind, Name: tc.key.Name}
			if got := Refused(ref, resolve.Handle{Key: tc.key}, &resolve.Refusal{Why: tc.why, Message: absent}).Error(); got != tc.want {
				t.Errorf("%s\nRefused(): %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
