package keyvault

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLatest(t *testing.T) {
	at := func(id string, second int64) otherVersion { return otherVersion{id: id, created: time.Unix(second, 0)} }
	cases := map[string]struct {
		reason string
		others others
		want   string
	}{
		"None":    {"Without other versions nothing is covered.", others{}, ""},
		"Latest":  {"The latest version was derived from the others.", others{current: "own", versions: []otherVersion{at("a", 1), at("b", 3), at("c", 2)}}, "b"},
		"Current": {"The version of another client that is current is not covered.", others{current: "b", versions: []otherVersion{at("a", 1), at("b", 3)}}, "a"},
		"Only":    {"If another client wrote last, nothing of it is covered.", others{current: "b", versions: []otherVersion{at("b", 3)}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.others.latest("own")); diff != "" {
				t.Errorf("%s\nlatest(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
