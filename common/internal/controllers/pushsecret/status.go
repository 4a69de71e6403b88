package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func statusesOf(dests []destination) []v1alpha1.PushStoreStatus {
	var all []v1alpha1.PushStoreStatus
	for i := range dests {
		all = append(all, dests[i].status)
	}
	slices.SortFunc(all, byID)
	return all
}

func idsOf(dests []destination) (ids []storeID) {
	for i := range dests {
		ids = append(ids, idOf(dests[i].status))
	}
	return ids
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets/status,verbs=patch

// conclude writes the status if it has changed: the entries of this module, and the conditions if it writes them. of is the
// verdict on the object; nil for the one over all stores. Entries and conditions are one server-side apply. If a field
// manager stops applying a condition that it shares with another writer, the rest of that condition is incomplete and
// invalid.
func (p *pass) conclude(ctx context.Context, stores []v1alpha1.PushStoreStatus, of *status.Verdict) error {
	p.statuses = stores
	fields := map[string]any{}
	if len(stores) > 0 {
		fields["stores"] = stores
	}
	changed := p.obj.entries.unwritten() || !equality.Semantic.DeepEqual(p.known(), stores)
	before := p.obj.written.Later(p.ps).Status.Conditions
	after := slices.Clone(before)
	if byObject := of != nil; p.writesConditions {
		if of == nil {
			v := ready(p.ps, p.dry(p.ps), slices.Concat(stores, p.foreign(p.ps)))
			of = &v
		}
		status.Conclude(&after, p.ps.Generation, *of)
		metrics.Synced("PushSecret", of.Reason)
		fields["conditions"], fields["observedGeneration"] = after, p.ps.Generation
		changed = changed || !equality.Semantic.DeepEqual(after, before)
		was := p.obj.written.Later(p.ps).Status.AttemptedRefreshRequest
		request := was
		if !p.ps.Spec.Suspend && (byObject || answered(p, stores, of)) {
			request = requestOf(p.ps)
		}
		if request != was || was != "" { // Another manager may have written it, so it is not removed but set.
			fields["attemptedRefreshRequest"] = request
		}
		changed = changed || request != was
	}
	if !changed {
		return nil
	}
	out := &v1alpha1.PushSecret{}
	ours := func(ps *v1alpha1.PushSecret) []v1alpha1.PushStoreStatus {
		return slices.DeleteFunc(p.entries(ps), func(s v1alpha1.PushStoreStatus) bool { return slices.Contains(p.elsewhere, idOf(s)) })
	}
	base := ours(p.obj.written.Later(p.ps))
	// Entries that another process has written since must not be lost: the next walk reads them.
	written, err := status.Apply(ctx, p.client, "PushSecret", p.ps, p.manager, fields, out, func() bool { return equality.Semantic.DeepEqual(base, ours(out)) })
	if !written {
		return err
	}
	out.Spec, out.ManagedFields = v1alpha1.PushSecretSpec{}, nil // It is kept until the next write.
	p.obj.written.Wrote(out)
	p.obj.entries.wrote(p.obj.stores.open())
	p.obj.reindex()
	p.memory.ahead.shown(p.obj)
	status.RecordEvent(p.events, p.ps, "Push", before, after)
	return nil
}

// answered reports whether all stores have answered the refresh request. of is the verdict over them.
func answered(p *pass, stores []v1alpha1.PushStoreStatus, of *status.Verdict) bool {
	request := requestOf(p.ps)
	return of.Reason != v1alpha1.ConditionReconciling && !slices.ContainsFunc(slices.Concat(stores, p.foreign(p.ps)), func(s v1alpha1.PushStoreStatus) bool {
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
