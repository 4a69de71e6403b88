package generated

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// An action is what is to be done with the values of one generator.
type action string

// The actions.
const (
	doNothing action = ""
	// doMake makes new values. Those in place stay until the new ones are kept.
	doMake action = "make"
	// doRenew has those in place live longer.
	doRenew action = "renew"
)

// input is what the decision about the values of one generator rests on.
type input struct {
	// Entry describes the values; nil if there are none.
	Entry *handoff.Entry
	Now   time.Time
	// Suspended objects get no other values; those that they have are kept alive.
	Suspended bool
	// Fixed objects keep their values for good, since nothing can be put in their place.
	Fixed bool
	// Rotates is true for objects that get new values without having asked for them.
	Rotates bool
	// Held is true if all consumers hold the values in place. Values that were never delivered are not
	// replaced only because time has passed.
	Held bool
	// Request is the refresh that is asked for.
	Request string
	// Spec is the specHash of the generator.
	Spec string
	// Interval after which values are replaced; 0 for never.
	Interval time.Duration
	// Spread is in [0, 1) and always the same for the same values, so that not all come due together.
	Spread float64
}

// Reasons to make new values.
const (
	whyFirst     = "first"
	whyRequested = "a refresh was requested"
	whyChanged   = "the generator has changed"
	whyElapsed   = "rotationInterval has passed"
	whyExpiring  = "they expire"
)

// actionDue says what is to be done with the values of one generator and why, and when to ask again; a zero
// time stands for never.
func actionDue(in input) (a action, why string, next time.Time) {
	e := in.Entry
	if e == nil {
		if in.Suspended {
			return doNothing, "", time.Time{}
		}
		return doMake, whyFirst, time.Time{}
	}
	replaces := !in.Suspended && !in.Fixed
	rotates := in.Rotates && replaces
	switch {
	case replaces && in.Request != "" && in.Request != e.Request:
		return doMake, whyRequested, time.Time{}
	case rotates && in.Spec != e.Spec:
		return doMake, whyChanged, time.Time{}
	}
	if rotates && in.Held && in.Interval > 0 {
		if next = e.Made.Add(early(in.Interval, in.Spread)); in.reached(next, e.Made) {
			return doMake, whyElapsed, time.Time{}
		}
	}
	if e.Expires.IsZero() {
		return doNothing, "", next
	}
	return in.expiring(rotates, next)
}

// expiring is actionDue for values that expire. next is when they are to be looked at for another reason.
func (in input) expiring(rotates bool, next time.Time) (action, string, time.Time) {
	e := in.Entry
	if due := renewal(*e, in.Spread); !in.reached(due, latest(e.Made, e.Renewed)) {
		if next.IsZero() || due.Before(next) {
			next = due
		}
		return doNothing, "", next
	}
	switch {
	case !e.Final && e.State != "" && in.Now.Before(e.Expires):
		return doRenew, "", next
	case rotates:
		return doMake, whyExpiring, time.Time{}
	}
	return doNothing, "", next
}

// reached reports whether a time has come that was planned at another. One that a clock has planned which was ahead has.
func (in input) reached(next, planned time.Time) bool {
	return !in.Now.Before(next) || policy.Ahead(planned, in.Now)
}

// shortest is the least time between two renewals. What makes credentials from one that is about to end makes
// them ever shorter.
const shortest = 10 * time.Second

// renewal is when values that expire are renewed or replaced: when two thirds of their time have passed.
func renewal(e handoff.Entry, spread float64) time.Time {
	since := latest(e.Made, e.Renewed)
	return since.Add(max(early(e.Expires.Sub(since)*2/3, spread), shortest))
}

// latest is when values were made or renewed last.
func latest(made, renewed time.Time) time.Time {
	if renewed.IsZero() {
		return made
	}
	return renewed
}

// early returns d less up to a tenth.
func early(d time.Duration, spread float64) time.Duration {
	return time.Duration(float64(d) * (1 - spread/10))
}
