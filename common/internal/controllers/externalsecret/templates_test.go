package externalsecret

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// TestTemplateStates has a watch tell of a later version of a template's source while the sources are read.
func TestTemplateStates(t *testing.T) {
	ref := render.TextRef{Name: "templates"}
	read := func(version string, s templateState) templateState {
		return templateState{version: version, told: s.told, seen: s.told}
	}
	cases := map[string]struct {
		reason string
		// before and during say how often the watch tells, before the read begins and until it ends.
		before, during int
		want           bool
	}{
		"Quiet":  {"What was read is the latest.", 0, 0, false},
		"Before": {"So it is if the read was asked for afterwards.", 2, 0, false},
		"During": {"What came meanwhile is to be read yet.", 0, 1, true},
		"Both":   {"Also if that is why it was read.", 1, 1, true},
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
