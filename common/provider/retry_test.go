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
		"Unset":    {"The defaults are those of the API.", nil, provider.Retries{Max: 5, Interval: 10 * time.Second}, nil},
		"Empty":    {"So are those of empty settings.", &v1alpha1.RetrySettings{}, provider.Retries{Max: 5, Interval: 10 * time.Second}, nil},
		"None":     {"No retry is a wish, too.", &v1alpha1.RetrySettings{MaxRetries: &zero}, provider.Retries{Max: 0, Interval: 10 * time.Second}, nil},
		"Both":     {"What is set counts.", &v1alpha1.RetrySettings{MaxRetries: &nine, RetryInterval: "1m"}, provider.Retries{Max: 9, Interval: time.Minute}, nil},
		"Interval": {"A bad interval is the spec's fault.", &v1alpha1.RetrySettings{RetryInterval: "soon"}, provider.Retries{}, provider.NewError(provider.Invalid, `spec.retrySettings.retryInterval: "soon" is not a duration; write it as 30s, 15m or 1h`)},
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

// TestRetryWait bounds the waits, which have jitter.
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
		"None":     {"A server need not say.", "", 0},
		"Seconds":  {"Seconds are one form.", "7", 7 * time.Second},
		"Date":     {"A date is the other.", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 5 * time.Minute},
		"Past":     {"A date in the past asks for no wait.", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
		"Hours":    {"A wait of hours is cut.", "2588400", 5 * time.Minute},
		"Overflow": {"A number of seconds that no Duration holds is a long wait.", "9223372036854775807", 5 * time.Minute},
		"Digits":   {"So is one that no integer holds.", strings.Repeat("9", 100), 5 * time.Minute},
		"Negative": {"A negative number is none.", "-1", 0},
		"Text":     {"Neither is a text.", "soon", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provider.RetryAfterHeader(http.Header{"Retry-After": {tc.header}})); diff != "" {
				t.Errorf("%s\nRetryAfterHeader(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
