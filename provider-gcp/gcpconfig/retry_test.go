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
		answers []error // one answer for each try; a further try hangs until the caller cancels
		want    codes.Code
		tries   int
	}{
		"Success":  {"After a success there is no further try.", []error{nil}, codes.OK, 1},
		"Passes":   {"A temporary error is retried.", []error{throttled, throttled, nil}, codes.OK, 3},
		"Final":    {"A later answer takes precedence.", []error{throttled, status.Error(codes.NotFound, "")}, codes.NotFound, 2},
		"Exceeded": {"The last answer is returned after all retries.", []error{throttled, throttled, throttled, status.Error(codes.Unavailable, "")}, codes.Unavailable, 4},
		"Hangs":    {"If the caller cancels a hanging retry, the previous answer is returned.", []error{throttled}, codes.ResourceExhausted, 2},
		"Silent":   {"Without any answer the cancellation is returned.", nil, codes.Canceled, 1},
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
