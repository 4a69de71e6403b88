package push

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestVerdict decides about something that an object no longer wants.
func TestVerdict(t *testing.T) {
	ours := Facts{Owned: true, Intact: true}
	behind := func(waited time.Duration, near, far bool) Facts {
		f := ours
		f.Behind = Behind{waited, near, far}
		return f
	}
	used := func(waited time.Duration, unproven bool) Facts {
		f := behind(waited, false, false)
		f.Used, f.Unproven = true, unproven
		return f
	}
	cases := map[string]struct {
		reason string
		facts  Facts
		want   Verdict
	}{
		"Ours":         {"No other object uses it.", ours, Remove},
		"Foreign":      {"Another client created it.", Facts{Intact: true}, Ignore},
		"ForeignNear":  {"No wait is needed for that.", Facts{Intact: true, Behind: Behind{Near: true}}, Ignore},
		"Changed":      {"Another client has changed it.", Facts{Owned: true}, Keep},
		"Used":         {"Another object uses it.", used(0, false), Release},
		"UsedChanged":  {"Its change is the affair of that object.", Facts{Owned: true, Used: true}, Release},
		"Near":         {"An object of its namespace may use it.", behind(Near-1, true, false), Postpone},
		"NearLate":     {"After a minute it counts as used.", behind(Near, true, false), Release},
		"Far":          {"An object of another namespace may use it.", behind(Far-1, false, true), Postpone},
		"FarLate":      {"Other tenants hold nothing up for long.", behind(Far, false, true), Remove},
		"BothLate":     {"Its own namespace counts for longer.", behind(Far, true, true), Postpone},
		"Unproven":     {"A use is not certain yet.", used(Near-1, true), Postpone},
		"UnprovenLate": {"After a minute it counts.", used(Near, true), Release},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.facts.Verdict()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAgain decides a postponed removal again. It is decided at the end of each limit.
func TestAgain(t *testing.T) {
	var times []time.Duration
	for at := time.Duration(0); at < Near; {
		at += Behind{Waited: at}.Again()
		times = append(times, at.Round(time.Second/10))
	}
	want := []time.Duration{10, 25, 48, 80, 130, 205, 318, 486, 600}
	for i := range want {
		want[i] *= time.Second / 10
	}
	if diff := cmp.Diff(want, times); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
