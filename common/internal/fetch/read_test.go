package fetch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

func TestUrgency(t *testing.T) {
	type outcome struct {
		Succeeded, Failed dispatch.Urgency
		// Again is true if the read must start after the object was seen.
		Again bool
	}
	cases := map[policy.Why]struct {
		reason string
		want   outcome
	}{
		policy.Requested:  {"A user asks for the value of this moment.", outcome{dispatch.New, dispatch.Periodic, true}},
		policy.First:      {"A user writes the value, and then creates the object.", outcome{dispatch.New, dispatch.Periodic, true}},
		policy.Changed:    {"A user writes the value, and then changes the object.", outcome{dispatch.New, dispatch.Periodic, true}},
		policy.TargetLost: {"A missing Secret is urgent, and any value will do.", outcome{dispatch.New, dispatch.Periodic, false}},
		policy.Retry:      {"A retry comes last.", outcome{dispatch.Periodic, dispatch.Periodic, false}},
		policy.Elapsed:    {"A periodic refresh comes last.", outcome{dispatch.Periodic, dispatch.Periodic, false}},
	}
	for why, tc := range cases {
		t.Run(string(why), func(t *testing.T) {
			seen := time.Now()
			if diff := cmp.Diff(tc.want, outcome{Urgency(why, false), Urgency(why, true), After(why, seen).Equal(seen)}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
