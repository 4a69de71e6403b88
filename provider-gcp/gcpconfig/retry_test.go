package gcpconfig

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/store"
)

func TestRetriesOf(t *testing.T) {
	zero, nine := int32(0), int32(9)
	cases := map[string]struct {
		reason   string
		settings *common.RetrySettings
		want     retries
		err      error
	}{
		"Unset":    {"The defaults are those of the API.", nil, retries{5, 10 * time.Second}, nil},
		"Empty":    {"So are those of empty settings.", &common.RetrySettings{}, retries{5, 10 * time.Second}, nil},
		"None":     {"No retry is a wish, too.", &common.RetrySettings{MaxRetries: &zero}, retries{0, 10 * time.Second}, nil},
		"Both":     {"What is set counts.", &common.RetrySettings{MaxRetries: &nine, RetryInterval: "1m"}, retries{9, time.Minute}, nil},
		"Interval": {"A bad interval is the spec's fault.", &common.RetrySettings{RetryInterval: "soon"}, retries{}, store.NewError(store.Invalid, `spec.retrySettings.retryInterval: "soon" is not a duration; write it as 30s, 15m or 1h`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := retriesOf(tc.settings)
			if diff := cmp.Diff(tc.err, err); diff != "" {
				t.Errorf("%s\nretriesOf(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(retries{})); diff != "" && err == nil {
				t.Errorf("%s\nretriesOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDo(t *testing.T) {
	throttled := status.Error(codes.ResourceExhausted, "slow down")
	cases := map[string]struct {
		reason  string
		answers []error // one a try; after the last the try hangs until the caller gives up
		want    codes.Code
		tries   int
	}{
		"Success":  {"Success ends it.", []error{nil}, codes.OK, 1},
		"Passes":   {"What passes is tried again.", []error{throttled, throttled, nil}, codes.OK, 3},
		"Final":    {"A later answer counts more.", []error{throttled, status.Error(codes.NotFound, "")}, codes.NotFound, 2},
		"Exceeded": {"Retries end with the last answer.", []error{throttled, throttled, throttled, status.Error(codes.Unavailable, "")}, codes.Unavailable, 4},
		"Hangs":    {"Who gives up while a retry hangs learns why there was one.", []error{throttled}, codes.ResourceExhausted, 2},
		"Silent":   {"Without any answer there is only the end of time.", nil, codes.Canceled, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			tries := 0
			err := retries{max: 3, interval: time.Millisecond}.do(ctx, func(ctx context.Context) error {
				tries++
				if tries <= len(tc.answers) {
					return tc.answers[tries-1]
				}
				giveUp()
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			})
			if status.Code(err) != tc.want || tries != tc.tries {
				t.Errorf("%s\n%v after %d tries, want %s after %d", tc.reason, err, tries, tc.want, tc.tries)
			}
		})
	}
}
