package awsconfig

import (
	"context"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// newRetryer returns what makes a retryer for each client.
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

// A retryer leaves it to the caller to wait where AWS says how long, and notes why it tries again.
type retryer struct{ *retry.Standard }

// IsErrorRetryable reports whether to try again at once.
func (r retryer) IsErrorRetryable(err error) bool {
	return retryAfter(err) == 0 && r.Standard.IsErrorRetryable(err)
}

// GetRetryToken is called before each wait.
func (r retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	if s, ok := ctx.Value(said{}).(*Said); ok {
		s.last.Store(&err)
	}
	return r.Standard.GetRetryToken(ctx, err)
}

type said struct{}

// Said is what AWS said last.
type Said struct{ last atomic.Pointer[error] }

// Listen returns a context for one call, and what AWS will have said when its deadline cuts the
// retries short: a caller must learn that it was throttled, not that time ran out.
func Listen(ctx context.Context) (context.Context, *Said) {
	s := &Said{}
	return context.WithValue(ctx, said{}, s), s
}

// Or returns err unless that is only the end of the call's context, after a retry.
func (s *Said) Or(err error) error {
	last := s.last.Load()
	if last == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return *last
}
