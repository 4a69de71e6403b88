package pushsecret

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// destination is a store to which an object is pushed.
type destination struct {
	route resolve.Route
	// store is nil if there is a refusal.
	store  provider.Object
	grant  *scope.Grant
	status v1alpha1.PushStoreStatus
	// refusal is why nothing is pushed to the store now; nil if pushes are allowed.
	refusal *status.Verdict
	// broken is true if only a user can fix the store, for example by restoring credentials.
	broken bool
	// excluded is true for a cluster store that does not admit the namespace.
	excluded bool
}

// concealed reports whether the status must not list the store: a selector must not reveal the names of cluster stores
// that do not admit the namespace. A store with secrets that were created earlier stays listed.
func (d *destination) concealed() bool { return d.excluded && len(d.status.Entries) == 0 }

// ref names the store.
func (d *destination) ref() v1alpha1.StoreRef {
	return v1alpha1.StoreRef{APIVersion: d.status.APIVersion, Kind: d.status.Kind, Name: d.status.Name}
}

// name returns the store's kind and name for messages.
func (d *destination) name() string { return fmt.Sprintf("%s %q", d.status.Kind, d.status.Name) }

func (d *destination) key(namespace string) types.NamespacedName {
	return d.route.Key(d.status.Name, namespace)
}

// label returns the label of Secrets that were read from the store.
func (d *destination) label(namespace string) string {
	n := d.key(namespace)
	return target.StoreLabel(d.route.GVK.Group, d.route.GVK.Kind, n.Namespace, n.Name)
}

// source returns a version of everything that a push to the store depends on: the sources, given by hash, and the store
// itself.
func (d *destination) source(hash string) string {
	return watch.VersionOf(map[string]string{"source": hash, "store": fmt.Sprintf("%s/%d", d.store.GetUID(), d.store.GetGeneration())})
}

// inSync reports whether the status shows that an attempt succeeded.
func (d *destination) inSync(a kit.Attempt) bool {
	return d.status.ObservedGeneration == a.Generation && d.status.ObservedRefreshRequest == a.Request &&
		d.status.ObservedSource == a.Sources && meta.IsStatusConditionTrue(d.status.Conditions, v1alpha1.ConditionSynced)
}

// due is storeState.due, and records until when the sync windows hold back the comparison. The result of one that begins replaces
// what is recorded.
func (d *destination) due(s *storeState, a kit.Attempt, inSync bool, removes time.Time, sch schedule) (due bool, wait time.Duration) {
	planned := d.status.NextRefreshTime
	if d.status.NextWindowTime != nil { // It is the opening for which a comparison waits that was due.
		planned = nil
	}
	due, wait, hold := s.due(a, inSync, planned, removes, sch)
	if !due {
		d.status.NextWindowTime, d.status.NextRefreshTime = hold.Record(d.status.NextRefreshTime)
	}
	return due, wait
}

// conclude sets the Synced condition of the store. The difference of a former dry run no longer applies.
func (d *destination) conclude(v status.Verdict, generation int64) {
	concludeStore(&d.status, v, generation)
}

// concludeStore is conclude for a status entry. It reports whether anything has changed.
func concludeStore(s *v1alpha1.PushStoreStatus, v status.Verdict, generation int64) bool {
	before := slices.Clone(s.Conditions)
	status.Set(&s.Conditions, v1alpha1.ConditionSynced, generation, v)
	changed := s.Difference != nil || !equality.Semantic.DeepEqual(before, s.Conditions)
	s.Difference = nil
	return changed
}

// waitsForHolder is the verdict on a store where another object holds a value: its source may have changed, too.
var waitsForHolder = status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ConditionReconciling, Message: "waiting until the other PushSecret of this value was compared with the store"}

// take writes the result of a push into the status. cause is why nothing was written, next is the time of the next comparison, and again
// is true if the attempt before has failed, too.
func (d *destination) take(res *result, cause dryCause, next time.Time, again bool) {
	before, first := d.status.DeepCopy(), res.conflict && !again
	d.status.NextWindowTime = nil
	if !res.old() && !first && res.Request != removal {
		d.status.AttemptedRefreshRequest = res.Request
	}
	if res.refused != nil {
		d.conclude(*res.refused, res.Generation)
		return
	}
	if res.place != "" && cause == notDry {
		d.status.Place = res.place
	}
	if res.difference != nil {
		d.takeDifference(res, cause, metav1.Time{Time: next.Truncate(time.Second)}, before.NextWindowTime != nil)
		return
	}
	switch {
	case res.old():
		return
	case first:
		d.conclude(waitsForHolder, res.Generation)
		return
	}
	if res.err != nil {
		v := failure(d.name(), res.err)
		if res.conflict {
			v.Reason = v1alpha1.ReasonConflict
		}
		d.conclude(v, res.Generation)
		return
	}
	d.status.ObservedGeneration, d.status.ObservedRefreshRequest, d.status.ObservedSource = res.Generation, res.Request, res.Sources
	if len(res.exists) == 0 { // A value left unchanged is not of this generated part.
		d.status.ObservedPart = res.generated
	}
	d.conclude(success(res), res.Generation)
	refreshed(&d.status, before, res.started, next)
}

// refreshed writes the times of a success. It writes them only with another change or as a heartbeat. A comparison that has waited for a
// sync window changes the status in any case.
func refreshed(st, before *v1alpha1.PushStoreStatus, at, next time.Time) {
	if !heartbeat(st, before, at) {
		return
	}
	st.RefreshTime, st.NextRefreshTime = &metav1.Time{Time: at.Truncate(time.Second)}, nil
	if !next.IsZero() {
		st.NextRefreshTime = &metav1.Time{Time: next.Truncate(time.Second)}
	}
}

// heartbeat reports whether the times of a success are due to be written.
func heartbeat(st, before *v1alpha1.PushStoreStatus, now time.Time) bool {
	if before.RefreshTime == nil || policy.Beats(before.RefreshTime.Time, now) {
		return true
	}
	return !equality.Semantic.DeepEqual(st, before)
}
