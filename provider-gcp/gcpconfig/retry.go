package gcpconfig

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// retries repeats one call.
type retries struct{ provider.Retries }

// do tries until it succeeds, or a retry is of no use. If time runs out after an answer, it returns that
// answer, so that the caller learns of the throttling rather than of the timeout.
func (r retries) do(ctx context.Context, try func(context.Context) error) error {
	return r.doWhile(ctx, worthRetrying, try)
}

// doWhile is do with a function that decides which errors are retried.
func (r retries) doWhile(ctx context.Context, worth func(error) bool, try func(context.Context) error) error {
	var lastError error
	for n := 0; ; n++ {
		err := r.once(ctx, try)
		if lastError != nil && ctx.Err() != nil && isEndOfTime(err) {
			return lastError
		}
		if err == nil || n >= r.Max || ctx.Err() != nil || !worth(err) {
			return err
		}
		lastError = err
		if !provider.Sleep(ctx, r.Wait(n)) {
			return lastError
		}
	}
}

func (r retries) once(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return try(ctx)
}

func isEndOfTime(err error) bool {
	code := codeOf(err)
	return code == codes.DeadlineExceeded || code == codes.Canceled
}

// codeOf returns the code of an error, or OK if it is not an answer of gRPC. The end of a context has a code,
// too.
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

// wasRefused reports whether to retry a call that must not have its effect twice. Only throttling proves that
// it had none. After any other error the answer may have been lost.
func wasRefused(err error) bool { return codeOf(err) == codes.ResourceExhausted && worthRetrying(err) }

// worthRetrying reports whether to retry without the caller. If Google asks to wait, that is up to the caller.
// A login has its own retries.
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
		return retryAfter(err) == 0 && !IsTooLarge(err)
	case codes.Internal, codes.DeadlineExceeded, codes.Aborted:
		return true
	case codes.OK: // there was no answer
		return provider.CertificateFaultOf(err) == ""
	}
	return false
}
