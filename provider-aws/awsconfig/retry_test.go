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
		"Unset":    {"The defaults are those of the API.", nil, 6, nil},
		"Empty":    {"So are those of empty settings.", &common.RetrySettings{}, 6, nil},
		"None":     {"No retry is one attempt.", &common.RetrySettings{MaxRetries: &zero}, 1, nil},
		"Nine":     {"Retries come on top of the first attempt.", &common.RetrySettings{MaxRetries: &nine}, 10, nil},
		"Interval": {"A bad interval is the spec's fault.", &common.RetrySettings{RetryInterval: "soon"}, 0, provider.NewError(provider.Invalid, `spec.retrySettings.retryInterval: "soon" is not a duration; write it as 30s, 15m or 1h`)},
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
		"Status":    {"A failure of the service may pass.", answer(http.StatusServiceUnavailable, "", throttled), true},
		"Throttled": {"So may too many calls.", answer(http.StatusBadRequest, "", throttled), true},
		"Told":      {"Where AWS says how long to wait, whoever called waits, and holds back its other calls.", answer(http.StatusBadRequest, "60", throttled), false},
		"Login":     {"A login was tried often enough on its own.", &loginError{err: answer(http.StatusServiceUnavailable, "", throttled)}, false},
		"Denied":    {"A refusal stays one.", coded("AccessDeniedException", ""), false},
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

func TestSaid(t *testing.T) {
	said, other := errors.New("throttled"), errors.New("other")
	over := &aws.RequestCanceledError{Err: context.DeadlineExceeded}
	cases := map[string]struct {
		reason string
		said   error
		err    error
		want   error
	}{
		"Over":      {"The end of time hides why so much of it was needed.", said, over, said},
		"Cancelled": {"So does the end of the caller.", said, context.Canceled, said},
		"Answered":  {"A later answer counts more.", said, other, other},
		"Silent":    {"Without any answer there is only the end of time.", nil, over, over},
		"Success":   {"Success needs no reason.", said, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := newRetryer(nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, s := Listen(t.Context())
			if tc.said != nil {
				if _, err := f().GetRetryToken(ctx, tc.said); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, s.Or(tc.err), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nOr(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
