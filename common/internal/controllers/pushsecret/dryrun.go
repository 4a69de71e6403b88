package pushsecret

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// A dry run goes the way of a push up to the decision about each remote secret. The difference in the status replaces
// the write. The status keeps its records of earlier pushes, so that the next push sees the same history.

// maxDifference is the maximum number of entries of a difference.
const maxDifference = 100

// differenceOf returns the difference for changes by key.
func differenceOf(changes map[string][]push.Change) *v1alpha1.PushDifference {
	d := &v1alpha1.PushDifference{}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		for _, c := range changes[key] {
			if len(d.Entries) == maxDifference {
				d.Truncated = true
				return d
			}
			d.Entries = append(d.Entries, v1alpha1.PushDifferenceEntry{RemoteKey: key, Property: c.Property, Action: c.Action})
		}
	}
	return d
}

// dryCause is why an object is only compared with its stores.
type dryCause string

const (
	// notDry is the cause of a push.
	notDry dryCause = ""
	// bySpec is spec.dryRun.
	bySpec dryCause = v1alpha1.ReasonDryRun
	// byFlag is --no-remote-changes.
	byFlag dryCause = v1alpha1.ReasonNoRemoteChanges
)

// dry returns why an object is only compared with its stores.
func (r *reconciler) dry(ps *v1alpha1.PushSecret) dryCause {
	switch {
	case ps.Spec.DryRun:
		return bySpec
	case r.opts.NoRemoteChanges:
		return byFlag
	}
	return notDry
}

// verdict returns the verdict of a dry run. It does not say that anything is in sync: nothing is written, and the values
// can change at any time.
func (c dryCause) verdict(message string) status.Verdict {
	if c == byFlag {
		message = "the operator runs with --no-remote-changes, so nothing is written: " + message + "; to push, set global.remoteChanges: true in the chart"
	} else {
		message = "spec.dryRun is true, so nothing is written: " + message
	}
	return status.Verdict{Status: metav1.ConditionUnknown, Reason: string(c), Message: message}
}

// planned returns the verdict for a store that a dry run has compared.
func (c dryCause) planned(d *v1alpha1.PushDifference) status.Verdict {
	n := map[v1alpha1.PushAction]int{}
	for _, e := range d.Entries {
		n[e.Action]++
	}
	most := ""
	if d.Truncated {
		most = fmt.Sprintf(", counting the first %d only", maxDifference)
	}
	return c.verdict(fmt.Sprintf("a push would create %d, update %d and delete %d remote secrets and properties%s",
		n[v1alpha1.PushCreate], n[v1alpha1.PushUpdate]+n[v1alpha1.PushUpdateMetadata]+n[v1alpha1.PushOwn], n[v1alpha1.PushDelete], most))
}

// takeDifference writes the result of a dry run into the status. If it has waited for a sync window, the time that is there is the
// opening.
func (d *destination) takeDifference(res *result, cause dryCause, next metav1.Time, waited bool) {
	if res.err != nil {
		d.conclude(failure(d.name(), res.err), res.Generation)
	} else {
		d.conclude(cause.planned(res.difference), res.Generation)
		d.status.ObservedRefreshRequest = res.Request
	}
	d.status.Difference = res.difference
	switch was := d.status.NextRefreshTime; {
	case next.IsZero():
		d.status.NextRefreshTime = nil
	case was == nil, waited, policy.Beats(was.Time, next.Time):
		d.status.NextRefreshTime = &next
	}
}

// compared reports whether the status shows the result of the last dry run. done is the input of that dry run.
func (d *destination) compared(cause dryCause, a, done kit.Attempt) bool {
	c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionSynced)
	return a == done && c != nil && c.Reason == string(cause) && c.ObservedGeneration == a.Generation
}

// withUnnamed adds to the stores of a dry run those that the spec does not name any more, if something is recorded for
// them in known. A push would drop their entries from the status.
func (r storeReader) withUnnamed(ctx context.Context, cause dryCause, ps *v1alpha1.PushSecret, dests []destination, known []v1alpha1.PushStoreStatus) ([]destination, error) {
	unnamed, _, err := r.remaining(ctx, ps.Namespace, slices.DeleteFunc(known, func(s v1alpha1.PushStoreStatus) bool {
		return len(s.Entries) == 0 || slices.Contains(idsOf(dests), idOf(s))
	}))
	for i := range unnamed {
		v := cause.verdict("a push would leave this store unchanged, because spec.storeRefs does not name it any more")
		unnamed[i].refusal, unnamed[i].status.ObservedRefreshRequest = &v, requestOf(ps)
	}
	return append(dests, unnamed...), err
}
