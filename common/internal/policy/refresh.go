// Package policy holds the decisions: is a refresh due, and which action does the target need. Its functions are pure;
// the controllers collect the inputs and execute the results.
package policy

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Heartbeat is the minimum time between two writes of status.refreshTime by refreshes that found nothing new.
const Heartbeat = 10 * time.Minute

// RefreshInput is the input of the decision about a refresh.
type RefreshInput struct {
	Policy   v1alpha1.RefreshPolicy
	Interval time.Duration
	Now      time.Time

	// Refreshed is false until the first success.
	Refreshed bool
	// Failing is true if the last attempt failed.
	Failing bool
	// Notified is true if an event says that a remote secret has changed.
	Notified bool
	// Next is the time of the next periodic refresh, including its jitter.
	Next    time.Time
	Windows WindowState

	Generation, ObservedGeneration     int64
	MetadataHash, ObservedMetadataHash string
	Request, ObservedRequest           string
}

// WindowState is the state of the sync windows of an object.
type WindowState struct {
	// Closed is true while they allow no refresh because of an event or the time.
	Closed bool
	// Held is true if they held a refresh back.
	Held bool
}

// Why is the reason for a refresh.
type Why string

// The reasons for a refresh, most urgent first.
const (
	NotDue     Why = ""
	Requested  Why = "requested"
	First      Why = "first"
	Changed    Why = "changed"
	Notified   Why = "event"
	Retry      Why = "retry"
	Elapsed    Why = "elapsed"
	TargetLost Why = "target changed"
)

// RefreshDue returns why the provider must be read now, or NotDue.
func RefreshDue(in RefreshInput) Why {
	changed := in.Generation != in.ObservedGeneration || in.MetadataHash != in.ObservedMetadataHash
	once := Once(in.Policy, in.Interval)
	switch {
	case in.Request != "" && in.Request != in.ObservedRequest:
		return Requested
	case !in.Refreshed:
		return First
	case in.Notified && in.followsEvents():
		return Notified
	case in.Failing && in.Generation == in.ObservedGeneration:
		return Retry
	case once && !in.Failing:
		return NotDue
	case changed: // This includes CreatedOnce after a failure, so that a corrected spec takes effect.
		return Changed
	case in.Policy == v1alpha1.RefreshOnChange, in.Windows.Closed:
		return NotDue
	case in.Windows.Held, !in.Now.Before(in.Next):
		return Elapsed
	}
	return NotDue
}

// followsEvents reports whether an event causes a refresh now.
func (in RefreshInput) followsEvents() bool {
	return !in.Windows.Closed && !Once(in.Policy, in.Interval) && in.Policy != v1alpha1.RefreshOnChange
}

// RefreshHeld reports whether the sync windows hold back a refresh that is due.
func RefreshHeld(in RefreshInput) bool {
	open := in
	open.Windows.Closed = false
	return in.Windows.Closed && RefreshDue(in) == NotDue && RefreshDue(open) != NotDue
}

// Once reports whether an object is refreshed until the first success, and not again.
func Once(p v1alpha1.RefreshPolicy, interval time.Duration) bool {
	return p == v1alpha1.RefreshCreatedOnce || (interval == 0 && p != v1alpha1.RefreshOnChange)
}

// Periodic reports whether an object is refreshed on an interval.
func Periodic(p v1alpha1.RefreshPolicy, interval time.Duration) bool {
	return (p == "" || p == v1alpha1.RefreshPeriodic) && interval > 0
}

// Jitter returns interval changed by up to a tenth either way; random is in [0, 1).
func Jitter(interval time.Duration, random float64) time.Duration {
	return time.Duration(float64(interval) * (0.9 + 0.2*random))
}

// Planned returns the time of the next read: known, from this process, or else noted, from a former one. A time further
// ahead than one interval is ignored, because a wrong clock planned it. Without a valid time, it returns a time within
// a minute of start. random is in [0, 1).
func Planned(known, noted, now, start time.Time, interval time.Duration, random float64) time.Time {
	latest := now.Add(Jitter(interval, 1))
	switch {
	case !known.IsZero() && !known.After(latest):
		return known
	case noted.After(now) && !noted.After(latest):
		return noted
	case start.After(now):
		start = now
	}
	return Spread(start, interval, random)
}

// Beats reports whether the time of a success must be written although nothing else has changed. That is so if noted,
// which may be zero, is old, or in the future because of a wrong clock.
func Beats(noted, now time.Time) bool { return now.Sub(noted) >= Heartbeat || Ahead(noted, now) }

// Ahead reports whether the time of a past event is in the future, by more than clocks usually differ.
func Ahead(happened, now time.Time) bool { return happened.After(now.Add(time.Minute)) }

// Spread returns when to refresh an object that was overdue at the start of the operator, so that a restart does not
// read everything at once. random is in [0, 1).
func Spread(start time.Time, interval time.Duration, random float64) time.Time {
	return start.Add(time.Duration(float64(min(interval, time.Minute)) * random))
}
