package gcpconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewToken(t *testing.T) {
	now := time.Unix(0, 0)
	cases := map[string]struct {
		reason string
		value  string
		expiry time.Time
		ok     bool
	}{
		"Good":    {"A token that is valid in a header is accepted.", "ya29.a0-_~+/=", now.Add(time.Hour), true},
		"Empty":   {"An empty token is rejected.", "", now.Add(time.Hour), false},
		"Newline": {"A token with a line break is rejected.", "a\nb", now.Add(time.Hour), false},
		"Over":    {"An expired token is rejected.", "a", now, false},
		"Unset":   {"A token without an expiry is rejected.", "a", time.Time{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newToken(tc.value, now, tc.expiry)
			if diff := cmp.Diff(tc.ok, err == nil); diff != "" {
				t.Errorf("%s\nnewToken(...): %v", tc.reason, err)
			}
		})
	}
}
