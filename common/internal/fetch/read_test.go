package fetch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// from is when a read must start.
type from string

const ever, sight, event from = "any time", "after the object was seen", "after the event"

func TestUrgent(t *testing.T) {
	type outcome struct {
		Succeeded, Failed bool
		After             from
	}
	cases := map[policy.Why]struct {
		reason string
		want   outcome
	}{
		policy.Requested:  {"A user asks for the value of this moment.", outcome{true, false, sight}},
		policy.First:      {"A user writes the value, and then creates the object.", outcome{true, false, sight}},
		policy.Changed:    {"A user writes the value, and then changes the object.", outcome{true, false, sight}},
		policy.Notified:   {"The value has changed just now.", outcome{true, false, event}},
		policy.TargetLost: {"A missing Secret is urgent, and any value will do.", outcome{true, false, ever}},
		policy.Retry:      {"A retry comes last.", outcome{false, false, ever}},
		policy.Elapsed:    {"A periodic refresh comes last.", outcome{false, false, ever}},
	}
	for why, tc := range cases {
		t.Run(string(why), func(t *testing.T) {
			notified, of := time.Now(), &kit.Attempts{}
			of.Begin(kit.Attempt{Generation: 1})
			of.Notify(notified, "")
			after := map[time.Time]from{{}: ever, notified: event}
			after[of.Seen()] = sight
			if diff := cmp.Diff(tc.want, outcome{Urgent(why, false), Urgent(why, true), after[After(why, of)]}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
