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
		"Provider":      {"The name of a provider is an audience.", provider + "projects/1/locations/global/workloadIdentityPools/p/providers/q", true},
		"Namespace":     {"The name of an identity namespace is an audience.", namespace + "project.svc.id.goog:https://cluster", true},
		"Longest":       {"A thousand bytes are allowed after the prefix.", provider + strings.Repeat("a", 1000), true},
		"TooLong":       {"More than a thousand bytes are rejected.", provider + strings.Repeat("a", 1001), false},
		"TooLongOfNext": {"The limit applies to both prefixes.", namespace + strings.Repeat("a", 1001), false},
		"Empty":         {"The prefix alone is rejected.", provider, false},
		"OtherHost":     {"An audience of another server is rejected.", "//example.org/projects", false},
		"Newline":       {"Control characters are rejected.", provider + "a\nb", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isAudience(tc.text); got != tc.want {
				t.Errorf("\n%s\nisAudience(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
