package provider

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// What counts where a store does not say.
const (
	defaultMaxRetries    = 5
	defaultRetryInterval = 10 * time.Second
	// firstRetry is the wait before the first retry; each further one is twice as long.
	firstRetry = 100 * time.Millisecond
)

// Retries are the bounds of the retries inside one call to a provider.
type Retries struct {
	// Max is how often a call is tried again.
	Max int
	// Interval is the longest wait between two tries.
	Interval time.Duration
}

// RetriesOf returns the bounds that a store asks for. An error is of class Invalid and names the field.
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

// Wait returns how long to wait before retry n, the first of which is 0: twice as long each time, with
// jitter, and at most Interval.
func (r Retries) Wait(n int) time.Duration {
	d := min(firstRetry<<min(n, 16), r.Interval)
	return d/2 + rand.N(d/2+1)
}

// MaxRetryAfter bounds how long one answer of a provider stops the calls to its store. Without a bound a server could
// stop a store for good, new objects included.
const MaxRetryAfter = 5 * time.Minute

// RetryAfterHeader returns how long the Retry-After header of an answer asks to wait, at most MaxRetryAfter; zero if it
// does not say. It reads both forms of RFC 9110, section 10.2.3.
func RetryAfterHeader(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	// A number that no int holds is the largest one.
	if n, err := strconv.Atoi(v); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(max(0, min(n, int(MaxRetryAfter/time.Second)))) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, min(time.Until(at), MaxRetryAfter))
	}
	return 0
}
