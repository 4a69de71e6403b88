package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// failure returns the verdict for a store that is out of sync. name is that of the store; empty if all stores share the
// failure.
func failure(name string, err error) status.Verdict {
	var joined interface{ Unwrap() []error }
	more := ""
	if errors.As(err, &joined) {
		if n := len(joined.Unwrap()); n > 1 {
			more = fmt.Sprintf(" (and %d more)", n-1)
		}
		if n := len(joined.Unwrap()); n > 0 {
			err = joined.Unwrap()[0]
		}
	}
	safe := provider.Safe(err)
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, status.WithFix(safe.Class, safe.Message+more))
	if v.Class = safe.Class; errors.Is(err, provider.ErrNoRemoteChanges) {
		v.Reason, v.Class = v1alpha1.ReasonNoRemoteChanges, ""
	}
	if name != "" {
		v.Message = name + ": " + v.Message
	}
	return v
}

// success returns the verdict for a store that is in sync.
func success(res *result) status.Verdict {
	if len(res.exists) > 0 {
		return status.Good(v1alpha1.ReasonSecretAlreadyExists, "not overwritten, because updatePolicy is IfNotExists: "+strings.Join(res.exists, ", "))
	}
	if len(res.released) > 0 {
		return status.Good(v1alpha1.ReasonSecretSynced, "the store is in sync; released: "+strings.Join(res.released, ", "))
	}
	return status.Good(v1alpha1.ReasonSecretSynced, "the store is in sync")
}

// ready returns the verdict over all stores.
func ready(ps *v1alpha1.PushSecret, cause dryCause, stores []v1alpha1.PushStoreStatus) status.Verdict {
	reason, message := v1alpha1.ReasonSecretSynced, "all stores are in sync"
	for _, ref := range ps.Spec.StoreRefs {
		if ref.Name != "" && !slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool { return s.Kind == ref.Kind && s.Name == ref.Name }) {
			return failure(fmt.Sprintf("%s %q", ref.Kind, ref.Name), provider.NewError(provider.Unavailable, "waiting for the module that serves this store; check that it runs"))
		}
	}
	if len(stores) == 0 {
		return failure("", provider.NewError(provider.NotFound, "no store that serves this namespace has the labels of spec.storeRefs; label one or correct the selector"))
	}
	var bad, reasons []string
	for _, s := range stores {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
		switch {
		case c == nil, c.ObservedGeneration != ps.Generation:
			return status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ConditionReconciling, Message: fmt.Sprintf("%s %q: comparing the remote secrets with the Secret", s.Kind, s.Name)}
		case c.Status != metav1.ConditionTrue && !status.HeldBack(c.Reason):
			bad, reasons = append(bad, c.Message), append(reasons, c.Reason)
		case c.Reason == v1alpha1.ReasonSecretAlreadyExists:
			reason, message = c.Reason, c.Message
		}
	}
	if len(bad) > 0 {
		if reason = v1alpha1.ReasonSecretSyncedError; len(slices.Compact(reasons)) == 1 {
			reason = reasons[0]
		}
		return status.Failed(reason, strings.Join(bad, "; "))
	}
	if cause != notDry {
		return cause.verdict("status.stores lists what a push would do")
	}
	return status.Good(reason, message)
}

func idsOf(dests []destination) (ids []storeID) {
	for i := range dests {
		ids = append(ids, idOf(dests[i].status))
	}
	return ids
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets/status,verbs=patch

// conclude writes the status if it has changed: the entries of this module, and the conditions if it writes them. of is the
// verdict on the object; nil for the one over all stores.
func (p *pass) conclude(ctx context.Context, of *status.Verdict) error {
	p.obj.writing.Lock()
	defer p.obj.writing.Unlock()
	for {
		shown := p.obj.written.Later(p.ps)
		all, unsaved := p.obj.present(p.ps)
		stores := p.mine(all)
		fields, after, changed := p.fields(&shown.Status, stores, of)
		p.account(after, stores)
		if !changed && equality.Semantic.DeepEqual(p.mine(shown.Status.Stores), stores) {
			p.obj.rows.wrote(unsaved, shown.Status.Stores)
			return nil
		}
		if err := upToDate(ctx, p.client, p.obj, shown); err != nil {
			return err
		}
		out := &v1alpha1.PushSecret{}
		written, err := status.Apply(ctx, p.client, "PushSecret", shown, p.manager, fields, out, func() bool { return equality.Semantic.DeepEqual(shown.Status.Stores, out.Status.Stores) })
		out.Spec, out.ManagedFields = v1alpha1.PushSecretSpec{}, nil // It is kept until the next write.
		switch {
		case written:
			p.obj.written.Wrote(out)
			p.obj.rows.wrote(unsaved, out.Status.Stores)
			p.obj.shown()
			p.obj.reindex()
			status.RecordEvent(p.events, p.ps, "Push", shown.Status.Conditions, after)
			return nil
		case kerrors.IsConflict(err) && equality.Semantic.DeepEqual(p.mine(shown.Status.Stores), p.mine(out.Status.Stores)):
			p.obj.written.Wrote(out) // Another module has written its entries.
		case kerrors.IsConflict(err): // Another process of this module has written them. The next walk reads them.
			p.obj.rows.merge(out.Status.Stores)
			return err
		default:
			return err
		}
	}
}

// upToDate returns an error if another process of this module has written entries since the changes to write were made. The API server
// reports that as a conflict only if the cache does not show it yet. The next walk has the entries of both.
func upToDate(ctx context.Context, c client.Client, obj *object, shown *v1alpha1.PushSecret) error {
	if !obj.rows.behind(shown.Status.Stores) {
		return nil
	}
	live := &v1alpha1.PushSecret{} // Of a late walk, the cache was older than the changes.
	if err := c.Get(ctx, client.ObjectKeyFromObject(shown), live); err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot read the PushSecret")
	}
	if live.UID != shown.UID || !obj.rows.behind(live.Status.Stores) {
		return nil
	}
	obj.rows.merge(live.Status.Stores)
	return errors.New("another process has written the status")
}

// fields returns the status to apply, its conditions, and whether more than the entries of stores has changed. Entries and conditions are
// one server-side apply. If a field manager stops applying a condition that it shares with another writer, the rest of that condition is
// incomplete and invalid.
func (p *pass) fields(shown *v1alpha1.PushSecretStatus, stores []v1alpha1.PushStoreStatus, of *status.Verdict) (fields map[string]any, after []metav1.Condition, changed bool) {
	fields, after = map[string]any{}, slices.Clone(shown.Conditions)
	if len(stores) > 0 {
		fields["stores"] = stores
	}
	if !p.writesConditions {
		return fields, after, false
	}
	request := shown.AttemptedRefreshRequest
	if byObject := of != nil; p.isLatest() && (byObject || p.ps.DeletionTimestamp == nil) {
		foreign := slices.DeleteFunc(slices.Clone(shown.Stores), p.ours)
		if of == nil {
			v := ready(p.ps, p.dry(p.ps), slices.Concat(stores, foreign))
			of = &v
		}
		status.Conclude(&after, p.ps.Generation, *of)
		metrics.Synced("PushSecret", of.Reason)
		if !p.ps.Spec.Suspend && (byObject || answered(p.ps, slices.Concat(stores, foreign), of)) {
			request = requestOf(p.ps)
		}
	}
	fields["conditions"], fields["observedGeneration"] = after, max(p.ps.Generation, shown.ObservedGeneration)
	if request != "" || shown.AttemptedRefreshRequest != "" { // Another manager may have written it, so it is not removed but set.
		fields["attemptedRefreshRequest"] = request
	}
	return fields, after, request != shown.AttemptedRefreshRequest || !equality.Semantic.DeepEqual(after, shown.Conditions)
}

// isLatest reports whether no later spec of the object is known.
func (p *pass) isLatest() bool {
	ps := p.obj.seen.Load()
	return ps == nil || ps.Generation <= p.ps.Generation
}

// answered reports whether all stores have answered the refresh request. of is the verdict over them.
func answered(ps *v1alpha1.PushSecret, stores []v1alpha1.PushStoreStatus, of *status.Verdict) bool {
	request := requestOf(ps)
	return of.Reason != v1alpha1.ConditionReconciling && !slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool {
		return s.AttemptedRefreshRequest != request && s.ObservedRefreshRequest != request // A module of a former version writes only the latter.
	})
}

func requestOf(ps *v1alpha1.PushSecret) string {
	return ps.Annotations[v1alpha1.RefreshRequestAnnotation]
}

// metricsState returns the state of an object for the metrics, from its conditions and status entries.
func metricsState(ps *v1alpha1.PushSecret, conditions []metav1.Condition, stores []v1alpha1.PushStoreStatus, at *progress, sch schedule) metrics.State {
	s := metrics.Of(conditions, ps.CreationTimestamp.Time)
	if sch.interval == 0 || slices.ContainsFunc(stores, func(of v1alpha1.PushStoreStatus) bool { return of.NextWindowTime != nil }) {
		return s // An object that waits for a sync window is not late.
	}
	s.Interval, s.Good = sch.interval, sch.now
	for _, of := range stores {
		if good := at.good(of); good.Before(s.Good) {
			s.Good = good
		}
	}
	if s.Good.IsZero() {
		s.Good = ps.CreationTimestamp.Time
	}
	return s
}
