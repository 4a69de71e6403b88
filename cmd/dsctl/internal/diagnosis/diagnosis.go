// Package diagnosis finds what is wrong in a cluster, the cause, and the fix. It makes no requests: its only
// input is a snapshot, which contains no values of Secrets.
package diagnosis

import (
	"cmp"
	"slices"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

// Severity is that of a Finding.
type Severity string

// An Error means that something does not match its spec. A Warning means that this can change, or could not be
// checked.
const (
	Error   Severity = "Error"
	Warning Severity = "Warning"
)

// A Finding is one problem.
type Finding struct {
	Severity Severity `json:"severity"`
	// Object is the cause. If a store fails, it is the store, not the objects that use it. It might not exist.
	Object snapshot.Ref `json:"object"`
	// Reason is the reason of a condition (see docs/operate/runbook.md), or one of this package.
	Reason string `json:"reason"`
	// Message describes the cause.
	Message string `json:"message"`
	// Fix tells the user what to do.
	Fix string `json:"fix"`
	// Affects are the objects that wait for the fix.
	Affects []snapshot.Ref `json:"affects,omitempty"`

	// cause is the object whose own finding explains this one.
	cause *snapshot.Ref
}

// These are reasons in addition to those of conditions.
const (
	ReasonNotInstalled     = "NotInstalled"
	ReasonNotAllowed       = "NotAllowed"
	ReasonOperatorAbsent   = "OperatorAbsent"
	ReasonDeletionStuck    = "DeletionStuck"
	ReasonNotReconciled    = "NotReconciled"
	ReasonRefreshOverdue   = "RefreshOverdue"
	ReasonOperatorsUnknown = "OperatorsUnknown"
)

// Diagnose returns all problems, errors first. One cause is one finding, however many objects it affects.
func Diagnose(s *snapshot.Snapshot) []Finding {
	var all []Finding
	for _, rule := range clusterRules {
		all = append(all, rule(s)...)
	}
	used := sources(s)
	for i := range s.Objects {
		if o := &s.Objects[i]; s.Namespace != "" && o.Meta.Namespace == "" && o.IsSource() && !used[o] {
			continue // It is used only in other namespaces.
		}
		for _, rule := range objectRules {
			found := rule(s, &s.Objects[i])
			all = append(all, found...)
			if len(found) > 0 {
				break
			}
		}
	}
	return arrange(fold(all))
}

// sources returns the stores and generators that objects of the snapshot use.
func sources(s *snapshot.Snapshot) map[*snapshot.Object]bool {
	used := map[*snapshot.Object]bool{}
	for i := range s.Objects {
		o := &s.Objects[i]
		if o.Meta.Namespace == "" {
			continue
		}
		for _, u := range o.Uses() {
			for _, source := range s.Selected(u, o.Meta.Namespace) {
				used[source] = true
			}
		}
	}
	return used
}

// objectRules are checked in this order. The first rule with a finding ends the check of an object.
var objectRules = []func(*snapshot.Snapshot, *snapshot.Object) []Finding{
	deletionStuck,   // Other problems do not matter for a deleted object.
	missingProvider, // Without an operator the conditions are outdated, or missing.
	suspended,       // The conditions are from before it was suspended.
	failingPush,     // The stores of a PushSecret can fail separately.
	failingFanOut,   // The namespaces of a cluster Kind can fail separately.
	failing,         // The operator reports a failure.
	failingRestart,  // The Secret is in sync, and pods have old values.
	dryRun,          // The values are not pushed.
	noRemoteChanges,
	unexpectedlyDeleted,
	notReconciled,  // The operator has not handled the spec.
	refreshOverdue, // The operator is late.
}

// fold merges findings with the same cause. An object whose finding is explained by that of another object is
// added to Affects of the latter.
func fold(all []Finding) []Finding {
	type key struct {
		object snapshot.Ref
		reason string
	}
	var out []Finding
	at, byObject := map[key]int{}, map[snapshot.Ref]int{}
	for _, f := range all {
		if f.cause != nil {
			continue
		}
		k := key{f.Object, f.Reason}
		i, known := at[k]
		if known && len(f.Affects) > 0 {
			out[i].Affects = append(out[i].Affects, f.Affects...)
			continue
		}
		at[k], byObject[f.Object] = len(out), len(out)
		out = append(out, f)
	}
	for _, f := range all {
		if f.cause == nil {
			continue
		}
		if i, known := byObject[*f.cause]; known {
			out[i].Affects = append(out[i].Affects, f.Object)
			continue
		}
		out = append(out, f)
	}
	return out
}

func arrange(all []Finding) []Finding {
	for i := range all {
		slices.SortFunc(all[i].Affects, snapshot.Ref.Compare)
		all[i].Affects = slices.Compact(all[i].Affects)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), a.Object.Compare(b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}
