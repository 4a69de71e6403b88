package provider

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Defaults of a store's retry settings.
const (
	defaultMaxRetries    = 5
	defaultRetryInterval = 10 * time.Second
	// firstRetry is the wait before the first retry. It doubles for each further retry.
	firstRetry = 100 * time.Millisecond
)

// Retries limit the retries within one call to a provider.
type Retries struct {
	// Max is the maximum number of retries of a call.
	Max int
	// Interval is the maximum wait between two tries.
	Interval time.Duration
}

// Sleep waits. It returns false if ctx has ended before the time is over.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// RetriesOf returns the limits of a store's settings. An error has class Invalid and names the field.
func RetriesOf(s *v1alpha1.RetrySettings) (Retries, error) {
	r := Retries{Max: defaultMaxRetries, Interval: defaultRetryInterval}
	if s == nil {
		return r, nil
	}
	if s.MaxRetries != nil {
		r.Max = int(*s.MaxRetries)
	}
	var err error
	if r.Interval, err = s.RetryInterval.Or(r.Interval); err != nil {
		return r, NewError(Invalid, "spec.retrySettings.retryInterval: %s", err)
	}
	return r, nil
}

// Wait returns the wait before retry n; the first is 0. It doubles each time, with jitter, up to Interval.
func (r Retries) Wait(n int) time.Duration {
	d := min(firstRetry<<min(n, 16), r.Interval)
	return d/2 + rand.N(d/2+1)
}

type lastErrorKey struct{}

// LastError is the last error that a service returned within one call with retries.
type LastError struct{ is atomic.Pointer[error] }

// KeepLastError returns a context for one call, and where SetLastError keeps the errors that its retries get.
func KeepLastError(ctx context.Context) (context.Context, *LastError) {
	l := &LastError{}
	return context.WithValue(ctx, lastErrorKey{}, l), l
}

// SetLastError keeps an error for the call that ctx is of.
func SetLastError(ctx context.Context, err error) {
	if l, ok := ctx.Value(lastErrorKey{}).(*LastError); ok {
		l.is.Store(&err)
	}
}

// Or returns the error that was kept if err only means that the context has ended, and otherwise err: a user must learn of the throttling
// rather than of the timeout that it led to.
func (l *LastError) Or(err error) error {
	last := l.is.Load()
	if last == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return *last
}

// MaxRetryAfter limits how long one answer of a provider can stop the calls to its store. Without it, a server could
// stop a store forever, including new objects.
//
//limit:reads `Retry-After` of a provider | A longer one counts as this.
const MaxRetryAfter = 5 * time.Minute

// RetryAfterHeader returns the wait of an answer's Retry-After header, at most MaxRetryAfter; zero if there is none.
// It accepts both forms of RFC 9110, section 10.2.3.
func RetryAfterHeader(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	// A number that is too large for an int counts as the largest one.
	if n, err := strconv.Atoi(v); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(max(0, min(n, int(MaxRetryAfter/time.Second)))) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, min(time.Until(at), MaxRetryAfter))
	}
	return 0
}
