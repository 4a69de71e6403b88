package externalsecret

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

// TestTemplateStates has a watch report a change of a template's source around the read of its content.
func TestTemplateStates(t *testing.T) {
	ref := render.TextRef{Name: "templates"}
	cases := map[string]struct {
		reason string
		steps  func(*templateStates)
		want   string
		known  bool
	}{
		"New":    {"A source is unknown until its version was read.", func(*templateStates) {}, "", false},
		"Quiet":  {"Without a change the version of the content counts.", func(o *templateStates) { o.set(ref, "1"); o.saw(ref, "2") }, "2", true},
		"Before": {"After a change the version must be read again.", func(o *templateStates) { o.set(ref, "1"); o.changed(ref) }, "", false},
		"During": {"A change between version and content may be later than the content.", func(o *templateStates) { o.set(ref, "1"); o.changed(ref); o.saw(ref, "2") }, "", false},
		"After":  {"A change after the content requires another read.", func(o *templateStates) { o.set(ref, "1"); o.saw(ref, "2"); o.changed(ref) }, "", false},
		"Kept":   {"A source that the spec still names stays known.", func(o *templateStates) { o.set(ref, "1"); o.keep([]render.TextRef{ref}) }, "1", true},
		"Unused": {"A source that the spec no longer names is dropped with its watch.", func(o *templateStates) { o.set(ref, "1"); o.keep(nil) }, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &templateStates{}
			tc.steps(o)
			if got, known := o.get(ref); got != tc.want || known != tc.known {
				t.Errorf("\n%s\nget(): %q, %t, want %q, %t", tc.reason, got, known, tc.want, tc.known)
			}
		})
	}
}
