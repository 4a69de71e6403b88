package storehealth

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestGateStaysClosed has no answer from a store that is known to be wrong: that must not let its
// objects go.
func TestGateStaysClosed(t *testing.T) {
	cases := map[string]struct {
		reason     string
		bad, later provider.Class
	}{
		"Missed":    {"A lost packet does not make a wrong login right.", provider.Denied, provider.Unavailable},
		"Throttled": {"Nor does a provider that throttles.", provider.Denied, provider.Throttled},
		"Invalid":   {"Nor a wrong spec.", provider.Invalid, provider.Unavailable},
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
