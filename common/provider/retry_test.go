package provider_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestRetriesOf(t *testing.T) {
	zero, nine := int32(0), int32(9)
	cases := map[string]struct {
		reason   string
		settings *v1alpha1.RetrySettings
		want     provider.Retries
		err      error
	}{
		"Unset":    {"Without settings the defaults apply.", nil, provider.Retries{Max: 5, Interval: 10 * time.Second}, nil},
		"Empty":    {"Empty settings have the defaults.", &v1alpha1.RetrySettings{}, provider.Retries{Max: 5, Interval: 10 * time.Second}, nil},
		"None":     {"Zero retries can be set.", &v1alpha1.RetrySettings{MaxRetries: &zero}, provider.Retries{Max: 0, Interval: 10 * time.Second}, nil},
		"Both":     {"Set values override the defaults.", &v1alpha1.RetrySettings{MaxRetries: &nine, RetryInterval: "1m"}, provider.Retries{Max: 9, Interval: time.Minute}, nil},
		"Interval": {"An invalid interval is an error of the spec.", &v1alpha1.RetrySettings{RetryInterval: "soon"}, provider.Retries{}, provider.NewError(provider.Invalid, `spec.retrySettings.retryInterval: "soon" is not a duration; write it as 30s, 15m or 1h`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := provider.RetriesOf(tc.settings)
			if diff := cmp.Diff(tc.err, err); diff != "" {
				t.Errorf("%s\nRetriesOf(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && err == nil {
				t.Errorf("%s\nRetriesOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRetryWait checks the range of the waits, which have jitter.
func TestRetryWait(t *testing.T) {
	r := provider.Retries{Interval: time.Second}
	for n, most := range map[int]time.Duration{0: 100 * time.Millisecond, 1: 200 * time.Millisecond, 3: 800 * time.Millisecond, 4: time.Second, 1000: time.Second} {
		for range 100 {
			if got := r.Wait(n); got < most/2 || got > most+1 {
				t.Fatalf("Wait(%d): %s, want between %s and %s", n, got, most/2, most)
			}
		}
	}
}

func TestRetryAfterHeader(t *testing.T) {
	cases := map[string]struct {
		reason, header string
		want           time.Duration
	}{
		"None":     {"Without the header the wait is zero.", "", 0},
		"Seconds":  {"The header can be in seconds.", "7", 7 * time.Second},
		"Date":     {"The header can be a date.", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 5 * time.Minute},
		"Past":     {"A date in the past is zero.", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
		"Hours":    {"A wait of hours is cut.", "2588400", 5 * time.Minute},
		"Overflow": {"A number that is too large for a Duration is the maximum wait.", "9223372036854775807", 5 * time.Minute},
		"Digits":   {"A number that is too large for an int is the maximum wait.", strings.Repeat("9", 100), 5 * time.Minute},
		"Negative": {"A negative number is zero.", "-1", 0},
		"Text":     {"Any other text is zero.", "soon", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provider.RetryAfterHeader(http.Header{"Retry-After": {tc.header}})); diff != "" {
				t.Errorf("%s\nRetryAfterHeader(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
