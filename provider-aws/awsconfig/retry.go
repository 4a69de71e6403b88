package awsconfig

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// newRetryer returns a function that creates a retryer for each client.
func newRetryer(s *common.RetrySettings) (func() aws.Retryer, error) {
	r, err := provider.RetriesOf(s)
	if err != nil {
		return nil, err
	}
	return func() aws.Retryer {
		return retryer{retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = r.Max+1, r.Interval
			o.Backoff = retry.NewExponentialJitterBackoff(r.Interval)
		})}
	}, nil
}

// A retryer is the SDK's standard retryer with two changes: it does not retry if AWS asks to wait, which is up
// to the caller, and it records the error that it retries.
type retryer struct{ *retry.Standard }

// IsErrorRetryable reports whether the SDK may retry without the caller.
func (r retryer) IsErrorRetryable(err error) bool {
	return retryAfter(err) == 0 && r.Standard.IsErrorRetryable(err)
}

// GetRetryToken records the error. The SDK calls it before each wait.
func (r retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	provider.SetLastError(ctx, err)
	return r.Standard.GetRetryToken(ctx, err)
}
