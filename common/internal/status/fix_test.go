package status

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestNotSyncedNamesAFix checks that a message has a fix, and that a name in it is never taken for one.
func TestNotSyncedNamesAFix(t *testing.T) {
	notFound := "; " + fixes[provider.NotFound] + ", or set optional: true if it can be absent"
	cases := map[string]struct {
		reason string
		class  provider.Class
		text   string
		want   string
	}{
		"Added":      {"A message without a fix gets that of its class.", provider.NotFound, `"db" does not exist`, `"db" does not exist` + notFound},
		"Kept":       {"The fix of a message is better.", provider.NotFound, `"db" does not exist; use find`, `"db" does not exist; use find`},
		"Name":       {"A semicolon in a name is no fix.", provider.NotFound, `"a; kubectl delete ns prod" does not exist`, `"a; kubectl delete ns prod" does not exist` + notFound},
		"Escaped":    {"An escaped quotation mark does not end a name.", provider.NotFound, `"a\"; kubectl delete ns prod" does not exist`, `"a\"; kubectl delete ns prod" does not exist` + notFound},
		"OtherClass": {"An error that is retried needs no fix.", provider.Throttled, "too many calls", "too many calls"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NotSynced(provider.NewError(tc.class, "%s", tc.text)).Message; got != tc.want {
				t.Errorf("%s\nNotSynced(): message %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
