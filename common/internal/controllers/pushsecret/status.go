package pushsecret

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxNote bounds the message of an event, of which the API server takes 1,024 characters.
const maxNote = 1000

// failure is the verdict on a store that is not in step. name is that of the store; empty where all stores share the failure.
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
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, safe.Message+more)
	if v.Class = safe.Class; name != "" {
		v.Message = name + ": " + v.Message
	}
	return v
}

// success is the verdict on a store that is in step.
func success(res *result) status.Verdict {
	if len(res.exists) > 0 {
		return status.Good(v1alpha1.ReasonSecretAlreadyExists, "left alone by updatePolicy IfNotExists: "+strings.Join(res.exists, ", "))
	}
	return status.Good(v1alpha1.ReasonSecretSynced, "the store is in step")
}

// conclude writes a verdict into the status of a store.
func (d *destination) conclude(v status.Verdict, generation int64) {
	status.Set(&d.status.Conditions, v1alpha1.ConditionSynced, generation, v)
}

// heartbeat reports whether the times of a success are to be written.
func heartbeat(st, before *v1alpha1.PushStoreStatus, now time.Time) bool {
	if before.RefreshTime == nil || now.Sub(before.RefreshTime.Time) >= policy.Heartbeat {
		return true
	}
	return !equality.Semantic.DeepEqual(st, before)
}

// ready is the verdict over all stores.
func ready(ps *v1alpha1.PushSecret, stores []v1alpha1.PushStoreStatus) status.Verdict {
	reason, message := v1alpha1.ReasonSecretSynced, "all stores are in step"
	for _, ref := range ps.Spec.StoreRefs {
		if ref.Name != "" && !slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool { return s.Kind == ref.Kind && s.Name == ref.Name }) {
			return failure(fmt.Sprintf("%s %q", ref.Kind, ref.Name), provider.NewError(provider.Unavailable, "the module that serves it has not looked at it yet"))
		}
	}
	if len(stores) == 0 {
		return failure("", provider.NewError(provider.NotFound, "no store carries the labels of spec.storeRefs; label one or correct the selector"))
	}
	var bad []string
	for _, s := range stores {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
		switch {
		case c == nil, c.ObservedGeneration != ps.Generation:
			return status.Verdict{Status: metav1.ConditionUnknown, Reason: v1alpha1.ConditionReconciling, Message: fmt.Sprintf("%s %q is being compared", s.Kind, s.Name)}
		case c.Status != metav1.ConditionTrue:
			bad = append(bad, c.Message)
		case c.Reason == v1alpha1.ReasonSecretAlreadyExists:
			reason, message = c.Reason, c.Message
		}
	}
	if len(bad) > 0 {
		return status.Failed(v1alpha1.ReasonSecretSyncedError, strings.Join(bad, "; "))
	}
	return status.Good(reason, message)
}

// conclude writes the status, if it has changed: the entries of this module, and the conditions if it leads. of is
// the verdict on the object; nil for the one over all stores. Both are one server-side apply: a field manager that
// stops to apply a condition of which another writer owns a part would leave it incomplete, which is invalid.
func (p *pass) conclude(ctx context.Context, of *status.Verdict) error {
	if of != nil && p.stores == nil {
		p.stores = p.known()
	}
	slices.SortFunc(p.stores, byID)
	known := p.known()
	slices.SortFunc(known, byID)
	fields := map[string]any{}
	if len(p.stores) > 0 {
		fields["stores"] = p.stores
	}
	before := p.shown().Status
	p.obj.mu.Lock()
	changed := p.obj.unwritten || !equality.Semantic.DeepEqual(known, p.stores)
	p.obj.mu.Unlock()
	conditions := slices.Clone(before.Conditions)
	if p.leads(p.ps) && !p.follows {
		if of == nil {
			v := ready(p.ps, slices.Concat(p.stores, p.foreign(p.ps)))
			of = &v
		}
		status.Conclude(&conditions, p.ps.Generation, *of)
		metrics.Synced("PushSecret", of.Reason)
		fields["conditions"], fields["observedGeneration"] = conditions, p.ps.Generation
		changed = changed || !equality.Semantic.DeepEqual(conditions, before.Conditions)
	}
	if !changed {
		return nil
	}
	return p.apply(ctx, fields, before.Conditions, conditions)
}

// shown returns the object as the cache has it, or as this process wrote it last if the cache is behind.
func (p *pass) shown() *v1alpha1.PushSecret {
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	if w := p.obj.written; w != nil {
		if c, err := resourceversion.CompareResourceVersion(p.ps.ResourceVersion, w.ResourceVersion); err == nil && c < 0 {
			return w
		}
		p.obj.written = nil
	}
	return p.ps
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets/status,verbs=patch

// apply writes the fields of the status that are this module's. Each module has a field manager of its own,
// so that none takes away what another has written.
func (p *pass) apply(ctx context.Context, fields map[string]any, before, after []metav1.Condition) error {
	out := &v1alpha1.PushSecret{}
	written, err := status.Apply(ctx, p.client, "PushSecret", p.ps, "direct-secrets-push:"+p.opts.Module+p.class(), fields, out)
	if !written {
		return err
	}
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	p.obj.unwritten, p.obj.entries, p.obj.written = false, map[storeID]v1alpha1.PushStoreStatus{}, out
	for _, s := range p.stores {
		p.obj.entries[idOf(s)] = *s.DeepCopy()
	}
	status.Announce(p.events, p.ps, "Push", before, after)
	return nil
}
