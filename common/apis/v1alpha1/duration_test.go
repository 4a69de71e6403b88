package v1alpha1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInterval(t *testing.T) {
	type want struct {
		Interval time.Duration
		Failed   bool
	}
	cases := map[string]struct {
		reason   string
		duration Duration
		want     want
	}{
		"Unset":    {"The default counts.", "", want{Interval: time.Hour}},
		"Zero":     {"Zero has a meaning of its own.", "0", want{}},
		"ZeroUnit": {"Also with a unit.", "0s", want{}},
		"TooShort": {"One that was stored before the API server refused it is no load either.", "1ms", want{Interval: time.Second}},
		"Shortest": {"The shortest interval is allowed.", "1s", want{Interval: time.Second}},
		"Long":     {"A longer one counts as it is.", "90m", want{Interval: 90 * time.Minute}},
		"Negative": {"An interval is not negative.", "-1s", want{Failed: true}},
		"Text":     {"An interval is a duration.", "soon", want{Failed: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.duration.Interval(time.Hour)
			if diff := cmp.Diff(tc.want, want{got, err != nil}); diff != "" {
				t.Errorf("\n%s\nInterval(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
