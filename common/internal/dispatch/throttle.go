package dispatch

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Rates of the bucket that limits a store, in calls per second.
const (
	throttledRate = 8
	lowestRate    = 0.5
	// Above this rate the store counts as healthy, and the bucket is removed.
	healthyRate = 64
)

// limiter is a token bucket that is only used while the provider throttles. Each Throttled answer halves its rate,
// each other answer raises it by a tenth.
type limiter struct {
	bucket *rate.Limiter
	until  time.Time
}

// wait returns how long no call can be made.
func (m *limiter) wait(now time.Time) time.Duration {
	if d := m.until.Sub(now); d > 0 {
		return d
	}
	if tokens := m.bucket.TokensAt(now); tokens < 1 {
		return time.Duration((1 - tokens) / float64(m.bucket.Limit()) * float64(time.Second))
	}
	return 0
}

// learn adjusts the rate to the provider's answers.
func (m *limiter) learn(now time.Time, answers []provider.Answer) {
	var throttled bool
	for _, r := range answers {
		if r.Err == nil || provider.ClassOf(r.Err) != provider.Throttled {
			continue
		}
		throttled = true
		if until := now.Add(provider.RetryAfter(r.Err)); until.After(m.until) {
			m.until = until
		}
	}
	next := m.bucket.Limit() * 1.1
	switch {
	case throttled && m.bucket.Limit() == rate.Inf:
		next = throttledRate
	case throttled:
		next = max(lowestRate, m.bucket.Limit()/2)
	case next > healthyRate:
		next = rate.Inf
	}
	m.bucket.SetLimitAt(now, next)
}
