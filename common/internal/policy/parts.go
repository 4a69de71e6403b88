package policy

import (
	"fmt"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// settling is the delay until the next check while the running modules are not known yet.
const settling = 500 * time.Millisecond

// supplyTimeout is how long a running module has to contribute before the status reports that its contribution is
// missing. It is longer than the timeout of a call to a provider, whose error says more.
const supplyTimeout = 45 * time.Second

// An Absence is whether a running module is missing.
type Absence struct {
	// Certain is true if it is. Otherwise it may be certain after Wait; zero if it never is.
	Certain bool
	Wait    time.Duration
	// Hint is the message with the fix.
	Hint string
}

// A Supply is what is known of one source whose values another operator supplies.
type Supply struct {
	// Name is the kind and name of the store or generator, for messages.
	Name string
	// Held is true if a recorded part has the wanted values.
	Held bool
	// Module is the running module that should supply them; empty if none is known.
	Module string
	// Skewed is the message that the versions of the modules are too far apart; empty if they are not.
	Skewed string
	// Due is when held values are read again or expire; zero for never, or while their operator runs.
	Due time.Time
	// Missing is whether no running module serves the source, or for held values whether their operator has stopped.
	Missing Absence
}

// A Report is what an operator reports about its part.
type Report struct {
	Reason, Message string
	Class           provider.Class
}

// verdict returns the verdict on the object.
func (r Report) verdict() *status.Verdict {
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, r.Message)
	v.Class = r.Class
	switch r.Reason {
	case v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonForbidden:
		v.Reason, v.Stalled = r.Reason, true
	case v1alpha1.ReasonStoreNotFound, v1alpha1.ReasonStoreNotReady, v1alpha1.ReasonNoRemoteChanges:
		v.Reason = r.Reason
	}
	return &v
}

// Supplies are the facts about the values that other operators supply to an object.
type Supplies struct {
	// Unknown is true while it is not known yet which modules run.
	Unknown bool
	// Sources are in the order of the plan.
	Sources []Supply
	// Reports are those with a message, of operators that are not known to have stopped.
	Reports []Report
	// Waited is how long the object has been waiting for supplies.
	Waited time.Duration
	Now    time.Time
}

// SupplyDecision is what to do about supplies.
type SupplyDecision struct {
	// Ready is true if all values are available and can be used.
	Ready bool
	// Problem is why values are missing or could not be replaced; nil if there is no problem.
	Problem *status.Verdict
	// Wait is when to decide again; zero if only an event can change the decision.
	Wait time.Duration
}

// Again plans the next decision after a time, or earlier.
func (j *SupplyDecision) Again(wait time.Duration) {
	if wait > 0 && (j.Wait == 0 || wait < j.Wait) {
		j.Wait = wait
	}
}

// DecideSupplies decides whether the values of other operators can be used, and what is wrong with them.
func DecideSupplies(s Supplies) SupplyDecision {
	j := SupplyDecision{Ready: true}
	for _, src := range s.Sources {
		j.Ready = j.Ready && src.Held
	}
	if s.Unknown {
		return SupplyDecision{Wait: settling}
	}
	for _, src := range s.Sources {
		if src.Skewed != "" {
			v := status.Stalled(v1alpha1.ReasonVersionSkew, src.Skewed)
			return SupplyDecision{Problem: &v}
		}
	}
	if len(s.Reports) > 0 {
		j.Problem = s.Reports[0].verdict()
		// Values that were read before the store refused this namespace must not be used.
		j.Ready = j.Ready && j.Problem.Reason != v1alpha1.ReasonForbidden
		return j
	}
	for _, missing := range []bool{true, false} {
		for _, src := range s.Sources {
			if src.Held != missing {
				if j.Problem = s.problem(src, &j); j.Problem != nil {
					return j
				}
			}
		}
	}
	return j
}

// problem returns what is wrong with one source; nil if nothing is, or not yet.
func (s Supplies) problem(src Supply, j *SupplyDecision) *status.Verdict {
	if early := src.Due.Sub(s.Now); src.Held && (src.Due.IsZero() || early > 0) {
		if !src.Due.IsZero() {
			j.Again(early)
		}
		return nil
	}
	if src.Missing.Certain {
		v := status.Stalled(v1alpha1.ReasonProviderNotRunning, src.Missing.Hint)
		return &v
	}
	j.Again(src.Missing.Wait)
	switch {
	case src.Held:
		return nil
	case s.Waited < supplyTimeout:
		j.Again(supplyTimeout - s.Waited)
		return nil
	}
	module := src.Module
	if module == "" {
		module = "the module that serves it"
	}
	v := status.NotSynced(provider.NewError(provider.Unavailable, "%s", fmt.Sprintf("%s: waiting for %s to hand over the values; if this lasts, check the log of that module", src.Name, module)))
	return &v
}
