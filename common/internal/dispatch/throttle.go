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
	if tokens := m.bucket.TokensAt(now); tokens < 1 && m.bucket.Limit() != rate.Inf {
		return time.Duration((1 - tokens) / float64(m.bucket.Limit()) * float64(time.Second))
	}
	return 0
}

func (m *limiter) take(now time.Time) bool { return m.bucket.AllowN(now, 1) }

// learn adjusts the rate to the provider's answers.
func (m *limiter) learn(now time.Time, results []provider.Result) {
	var throttled bool
	for _, r := range results {
		if r.Err == nil || provider.ClassOf(r.Err) != provider.Throttled {
			continue
		}
		throttled = true
		if until := now.Add(provider.RetryAfter(r.Err)); until.After(m.until) {
			m.until = until
		}
	}
	current := m.bucket.Limit()
	switch {
	case throttled && current == rate.Inf:
		m.bucket = rate.NewLimiter(throttledRate, 1)
	case throttled:
		m.bucket.SetLimitAt(now, max(lowestRate, current/2))
	case current == rate.Inf:
	case current*1.1 > healthyRate:
		m.bucket = rate.NewLimiter(rate.Inf, 1)
	default:
		m.bucket.SetLimitAt(now, current*1.1)
	}
}
