package gcpconfig

import (
	"strings"
	"testing"
)

func TestIsAudience(t *testing.T) {
	const provider, namespace = "//iam.googleapis.com/", "identitynamespace:"
	cases := map[string]struct {
		reason string
		text   string
		want   bool
	}{
		"Provider":      {"A provider is one.", provider + "projects/1/locations/global/workloadIdentityPools/p/providers/q", true},
		"Namespace":     {"A namespace is one.", namespace + "project.svc.id.goog:https://cluster", true},
		"Longest":       {"A thousand bytes are allowed behind the prefix.", provider + strings.Repeat("a", 1000), true},
		"TooLong":       {"One more is not.", provider + strings.Repeat("a", 1001), false},
		"TooLongOfNext": {"Whichever the prefix is.", namespace + strings.Repeat("a", 1001), false},
		"Empty":         {"The prefix alone names nothing.", provider, false},
		"OtherHost":     {"Tokens are for Google only.", "//example.org/projects", false},
		"Newline":       {"Control characters are refused.", provider + "a\nb", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isAudience(tc.text); got != tc.want {
				t.Errorf("\n%s\nisAudience(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
