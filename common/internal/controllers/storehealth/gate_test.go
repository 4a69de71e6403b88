package storehealth

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestGateStaysClosed has a store with an error that is followed by failures without an answer. Its objects must stay
// held.
func TestGateStaysClosed(t *testing.T) {
	cases := map[string]struct {
		reason     string
		bad, later provider.Class
	}{
		"Missed":    {"A timeout after a failed login keeps Ready False.", provider.Denied, provider.Unavailable},
		"Throttled": {"Throttling after a failed login keeps Ready False.", provider.Denied, provider.Throttled},
		"Invalid":   {"A timeout after an invalid spec keeps Ready False.", provider.Invalid, provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st, known := &v1alpha1.StoreStatus{}, &validated{}
			conclude(st, 3, known, answer(tc.bad))
			conclude(st, 3, known, answer(tc.later))
			if c := st.Conditions[0]; c.Status != "False" {
				t.Errorf("\n%s\nconclude(): Ready is %s, want False", tc.reason, c.Status)
			}
		})
	}
}
