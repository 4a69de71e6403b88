// Package diagnosis decides what is wrong in a cluster, why, and what fixes it. It is pure: it sees a snapshot and nothing
// else. It never sees a value of a Secret.
package diagnosis

import (
	"cmp"
	"slices"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
)

// Severity of a Finding.
type Severity string

// The severities. An Error means that something is not as its spec asks, a Warning that it may not stay so, or that it
// could not be checked.
const (
	Error   Severity = "Error"
	Warning Severity = "Warning"
)

// A Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	// Object is the cause: for a store that fails, the store and not the objects that use it. It may not exist.
	Object snapshot.Ref `json:"object"`
	// Reason is that of a condition (see docs/runbook.md), or one of this package.
	Reason string `json:"reason"`
	// Message is why.
	Message string `json:"message"`
	// Fix is what to do.
	Fix string `json:"fix"`
	// Affects are the objects that wait for the fix.
	Affects []snapshot.Ref `json:"affects,omitempty"`

	// cause is the object whose own finding explains this one.
	cause *snapshot.Ref
}

// Reasons beside those of conditions.
const (
	ReasonNotInstalled     = "NotInstalled"
	ReasonNotAllowed       = "NotAllowed"
	ReasonOperatorAbsent   = "OperatorAbsent"
	ReasonDeletionStuck    = "DeletionStuck"
	ReasonNotReconciled    = "NotReconciled"
	ReasonRefreshOverdue   = "RefreshOverdue"
	ReasonOperatorsUnknown = "OperatorsUnknown"
)

// Diagnose returns what is wrong, errors first. One cause is one finding, however many objects it affects.
func Diagnose(s *snapshot.Snapshot) []Finding {
	var all []Finding
	for _, rule := range clusterRules {
		all = append(all, rule(s)...)
	}
	used := sources(s)
	for i := range s.Objects {
		if o := &s.Objects[i]; s.Namespace != "" && o.Meta.Namespace == "" && o.IsSource() && !used[o] {
			continue // It concerns other namespaces.
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

// objectRules are asked in this order, and the first that finds something has explained the object.
var objectRules = []func(*snapshot.Snapshot, *snapshot.Object) []Finding{
	deletionStuck, // Nothing else matters for what is to go.
	unserved,      // Without an operator the conditions are old, or there are none.
	suspended,     // The conditions are those of before.
	failingPush,   // The stores of a PushSecret fail one by one.
	failingFanOut, // So do the namespaces of a fan-out.
	failing,       // What the operator reports.
	unexpectedlyGone,
	notReconciled,  // What it does not report.
	refreshOverdue, // What it should have done.
}

// fold makes findings with one cause one. What is explained by the finding of another object becomes its effect.
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
