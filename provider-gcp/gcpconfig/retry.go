package gcpconfig

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// retries try one call again.
type retries struct{ provider.Retries }

// do tries until it succeeds, or a further try is of no use. When time runs out after an answer it
// returns that: a caller must learn that it was throttled, not that time ran out.
func (r retries) do(ctx context.Context, try func(context.Context) error) error {
	return r.doWhile(ctx, worthRetrying, try)
}

// doWhile is do that leaves it to worth which errors are tried again.
func (r retries) doWhile(ctx context.Context, worth func(error) bool, try func(context.Context) error) error {
	var said error
	for n := 0; ; n++ {
		err := r.once(ctx, try)
		if said != nil && ctx.Err() != nil && isEndOfTime(err) {
			return said
		}
		if err == nil || n >= r.Max || ctx.Err() != nil || !worth(err) {
			return err
		}
		said = err
		if !pause(ctx, r.Wait(n)) {
			return said
		}
	}
}

func (r retries) once(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return try(ctx)
}

// pause reports whether the time is over before ctx is.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func isEndOfTime(err error) bool {
	code := codeOf(err)
	return code == codes.DeadlineExceeded || code == codes.Canceled
}

// codeOf is OK for what is no answer of gRPC. The end of a context counts as if it were one.
func codeOf(err error) codes.Code {
	var s interface{ GRPCStatus() *status.Status }
	switch {
	case errors.As(err, &s):
		return s.GRPCStatus().Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return codes.OK
}

// wasRefused reports whether to try again at once what must not be done twice: only throttling proves
// that nothing was done. After any other error it may have been, and the answer was lost.
func wasRefused(err error) bool { return codeOf(err) == codes.ResourceExhausted && worthRetrying(err) }

// worthRetrying reports whether to try again at once. Where Google says how long to wait that is left
// to the caller. A login was tried often enough on its own.
func worthRetrying(err error) bool {
	var own *provider.Error
	var r *refusal
	switch {
	case errors.As(err, &own):
		return false
	case errors.As(err, &r):
		return r.retryAfter == 0 && (r.status >= 500 || r.status == 429)
	}
	switch codeOf(err) {
	case codes.Unavailable:
		return provider.CertificateFaultOf(err) == ""
	case codes.ResourceExhausted:
		return retryAfter(err) == 0 && !isTooLarge(err)
	case codes.Internal, codes.DeadlineExceeded, codes.Aborted:
		return true
	case codes.OK: // no answer over HTTP
		return provider.CertificateFaultOf(err) == ""
	}
	return false
}
