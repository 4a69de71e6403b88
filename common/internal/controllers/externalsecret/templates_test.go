package externalsecret

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// TestTemplateStates has a watch report changes of a template's source before and during a read of its version.
func TestTemplateStates(t *testing.T) {
	ref := render.TextRef{Name: "templates"}
	read := func(version string, s templateState) templateState {
		return templateState{version: version, told: s.told, seen: s.told}
	}
	cases := map[string]struct {
		reason string
		// before and during are how often the watch reports a change, before the read begins and before it ends.
		before, during int
		want           bool
	}{
		"Quiet":  {"Without a change the read has the latest version.", 0, 0, false},
		"Before": {"A read after the changes has the latest version.", 2, 0, false},
		"During": {"A change during the read requires another one.", 0, 1, true},
		"Both":   {"A change during the read requires another one, also after an earlier change.", 1, 1, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &templateStates{}
			o.set(map[render.TextRef]templateState{ref: {version: "1"}})
			tell := func(times int) {
				for range times {
					o.outdate(ref)
				}
			}
			tell(tc.before)
			states := o.get()
			tell(tc.during)
			o.set(map[render.TextRef]templateState{ref: read("2", states[ref])})
			got := o.get()[ref]
			if got.version != "2" || got.stale() != tc.want {
				t.Errorf("\n%s\nversion %s, stale %t, want 2 and %t", tc.reason, got.version, got.stale(), tc.want)
			}
		})
	}
}
