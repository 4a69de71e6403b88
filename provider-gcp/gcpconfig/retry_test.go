package gcpconfig

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

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
			err := retries{provider.Retries{Max: 3, Interval: time.Millisecond}}.do(ctx, func(ctx context.Context) error {
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
