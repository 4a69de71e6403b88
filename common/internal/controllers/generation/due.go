package generation

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
)

// input is the input of the decision about the values of one generator.
type input struct {
	// Entry describes the values; nil if there are none.
	Entry *handoff.Entry
	Now   time.Time
	// Suspended objects get no new values, but their present values are renewed.
	Suspended bool
	// Fixed objects keep their values for good, because nothing can replace them.
	Fixed bool
	// Rotates is true for objects that get new values without a request.
	Rotates bool
	// Held is true if all consumers hold the present values. Values that were never delivered are not replaced just
	// because time has passed.
	Held bool
	// Request is the value of the refresh request annotation.
	Request string
	// Spec is the specHash of the generator.
	Spec string
	// Interval is the time after which values are replaced; 0 for never.
	Interval time.Duration
	// Windows are the sync windows of the object. They hold back only replacements because of Interval.
	Windows windows.Windows
	// Spread is in [0, 1) and constant for the same values, so that not all are due at the same time.
	Spread float64
}

// The reasons to make new values. The present values stay until the new ones are stored. With whyRenew, the lifetime of
// the present values is extended instead.
const (
	whyFirst     = "first"
	whyRequested = "a refresh was requested"
	whyChanged   = "the spec of the generator changed"
	whyElapsed   = "rotationInterval has passed"
	whyExpiring  = "they are about to expire"
	whyRenew     = "they can be renewed"
)

// valuesDue returns the reason to make or renew the values of one generator; without one, when to check again. A zero
// time stands for never. hold is how long the sync windows hold a replacement back.
func valuesDue(in input) (why string, next time.Time, hold windows.Hold) {
	e := in.Entry
	if e == nil {
		if in.Suspended {
			return "", time.Time{}, hold
		}
		return whyFirst, time.Time{}, hold
	}
	replaces := !in.Suspended && !in.Fixed
	rotates := in.Rotates && replaces
	switch {
	case replaces && in.Request != "" && in.Request != e.Request:
		return whyRequested, time.Time{}, hold
	case rotates && in.Spec != e.Spec:
		return whyChanged, time.Time{}, hold
	}
	if rotates && in.Held && in.Interval > 0 {
		var elapsed bool
		if elapsed, next, hold = in.rotation(); elapsed {
			return whyElapsed, time.Time{}, hold
		}
	}
	if e.Expires.IsZero() {
		return "", next, hold
	}
	why, next = in.expiring(rotates, next)
	return why, next, hold
}

// rotation reports whether values are replaced because of Interval, and otherwise when to check again. hold is as in valuesDue.
func (in input) rotation() (elapsed bool, next time.Time, hold windows.Hold) {
	if next = in.Entry.Made.Add(early(in.Interval, in.Spread)); !in.reached(next, in.Entry.Made) {
		return false, next, hold
	}
	hold = in.Windows.Hold(in.Now, in.Spread)
	return !hold.Holds(), hold.Resume, hold
}

// expiring is valuesDue for values that expire. next is the time of the next check for another reason.
func (in input) expiring(rotates bool, next time.Time) (string, time.Time) {
	e := in.Entry
	if due := renewal(*e, in.Spread); !in.reached(due, latest(e.Made, e.Renewed)) {
		if next.IsZero() || due.Before(next) {
			next = due
		}
		return "", next
	}
	switch {
	case !e.Final && e.State != "" && in.Now.Before(e.Expires):
		return whyRenew, time.Time{}
	case rotates:
		return whyExpiring, time.Time{}
	}
	return "", next
}

// reached reports whether the time next has passed. If planned is in the future, a wrong clock computed next, and it
// counts as reached.
func (in input) reached(next, planned time.Time) bool {
	return !in.Now.Before(next) || policy.Ahead(planned, in.Now)
}

// shortest is the minimum time between two renewals. A generator whose own credentials are about to expire makes values
// with ever shorter lifetimes.
const shortest = 10 * time.Second

// renewal returns when expiring values are renewed or replaced: at the time that the generator has set, or after two
// thirds of their lifetime.
func renewal(e handoff.Entry, spread float64) time.Time {
	since := latest(e.Made, e.Renewed)
	after := e.Expires.Sub(since) * 2 / 3
	if e.Replace.After(since) && e.Replace.Before(e.Expires) {
		after = e.Replace.Sub(since)
	}
	return since.Add(max(early(after, spread), shortest))
}

// latest returns when values were last made or renewed.
func latest(made, renewed time.Time) time.Time {
	if renewed.IsZero() {
		return made
	}
	return renewed
}

// early returns d shortened by up to a tenth.
func early(d time.Duration, spread float64) time.Duration {
	return time.Duration(float64(d) * (1 - spread/10))
}
