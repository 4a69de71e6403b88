package awsconfig

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestNewRetryer(t *testing.T) {
	zero, nine := int32(0), int32(9)
	cases := map[string]struct {
		reason   string
		settings *common.RetrySettings
		want     int
		err      error
	}{
		"Unset":    {"Without settings the defaults of the API apply.", nil, 6, nil},
		"Empty":    {"Empty settings use the defaults, too.", &common.RetrySettings{}, 6, nil},
		"None":     {"Zero retries mean one attempt.", &common.RetrySettings{MaxRetries: &zero}, 1, nil},
		"Nine":     {"Retries are counted in addition to the first attempt.", &common.RetrySettings{MaxRetries: &nine}, 10, nil},
		"Interval": {"The error of an invalid interval names the field.", &common.RetrySettings{RetryInterval: "soon"}, 0, provider.NewError(provider.Invalid, `spec.retrySettings.retryInterval: "soon" is not a duration; write it as 30s, 15m or 1h`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := newRetryer(tc.settings)
			if diff := cmp.Diff(tc.err, err); diff != "" {
				t.Errorf("%s\nnewRetryer(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err == nil && f().MaxAttempts() != tc.want {
				t.Errorf("%s\nMaxAttempts(): got %d, want %d", tc.reason, f().MaxAttempts(), tc.want)
			}
		})
	}
}

func TestRetryable(t *testing.T) {
	throttled := &smithy.GenericAPIError{Code: "ThrottlingException"}
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Status":    {"A server error is retried.", answer(http.StatusServiceUnavailable, "", throttled), true},
		"Throttled": {"Throttling is retried.", answer(http.StatusBadRequest, "", throttled), true},
		"Told":      {"An answer that says how long to wait is not retried here: the caller waits, and delays its other calls.", answer(http.StatusBadRequest, "60", throttled), false},
		"Login":     {"A failed login is not retried, because it has its own retries.", &loginError{err: answer(http.StatusServiceUnavailable, "", throttled)}, false},
		"Denied":    {"A denied call is not retried.", coded("AccessDeniedException", ""), false},
	}
	f, err := newRetryer(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := f().IsErrorRetryable(tc.err); got != tc.want {
				t.Errorf("%s\nIsErrorRetryable(...): got %t", tc.reason, got)
			}
		})
	}
}

func TestLastError(t *testing.T) {
	lastError, other := errors.New("throttled"), errors.New("other")
	over := &aws.RequestCanceledError{Err: context.DeadlineExceeded}
	cases := map[string]struct {
		reason    string
		lastError error
		err       error
		want      error
	}{
		"Over":      {"After a timeout the recorded error is returned.", lastError, over, lastError},
		"Cancelled": {"After a cancellation the recorded error is returned.", lastError, context.Canceled, lastError},
		"Answered":  {"Another error takes precedence over the recorded one.", lastError, other, other},
		"Silent":    {"Without a recorded error the timeout is returned.", nil, over, over},
		"Success":   {"Success returns no error.", lastError, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := newRetryer(nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, s := provider.KeepLastError(t.Context())
			if tc.lastError != nil {
				if _, err := f().GetRetryToken(ctx, tc.lastError); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, s.Or(tc.err), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nOr(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
