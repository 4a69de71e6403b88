package pushsecret

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/message"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxMessage bounds the message of a condition, of which the API server takes 32 KiB, and maxNote that of an
// event.
const maxMessage, maxNote = 1024, 1000

// verdict is the outcome for a store, or for an object. An empty status keeps the one that is there.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// failure is the verdict on a store that is not in step. The message begins with the class.
func failure(name string, err error) verdict {
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
	message := safe.Message + more
	if name != "" {
		message = name + ": " + message
	}
	return verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretSyncedError, string(safe.Class) + ": " + message}
}

// success is the verdict on a store that is in step.
func success(res *result) verdict {
	if len(res.exists) > 0 {
		return verdict{metav1.ConditionTrue, v1alpha1.ReasonSecretAlreadyExists, "left alone by updatePolicy IfNotExists: " + strings.Join(res.exists, ", ")}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonSecretSynced, "the store is in step"}
}

// conclude writes a verdict into the status of a store.
func (d *destination) conclude(v verdict, generation int64) {
	set(&d.status.Conditions, v1alpha1.ConditionSynced, v, generation)
}

func set(conditions *[]metav1.Condition, kind string, v verdict, generation int64) {
	v.message = message.Cut(v.message, maxMessage)
	if v.status == "" {
		v.status = metav1.ConditionUnknown
		if c := meta.FindStatusCondition(*conditions, kind); c != nil {
			v.status = c.Status
		}
	}
	meta.SetStatusCondition(conditions, metav1.Condition{LastTransitionTime: metav1.Now().Rfc3339Copy(), Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation})
}

// heartbeat reports whether the times of a success are to be written.
func heartbeat(st, before *v1alpha1.PushStoreStatus, now time.Time) bool {
	if before.RefreshTime == nil || now.Sub(before.RefreshTime.Time) >= policy.Heartbeat {
		return true
	}
	return !equality.Semantic.DeepEqual(st, before)
}

// ready is the verdict over all stores.
func ready(ps *v1alpha1.PushSecret, stores []v1alpha1.PushStoreStatus) verdict {
	reason, message := v1alpha1.ReasonSecretSynced, "all stores are in step"
	for _, ref := range ps.Spec.StoreRefs {
		if ref.Name != "" && !slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool { return s.Kind == ref.Kind && s.Name == ref.Name }) {
			return verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretSyncedError, fmt.Sprintf("Unavailable: %s %q: the module that serves it has not looked at it yet", ref.Kind, ref.Name)}
		}
	}
	if len(stores) == 0 {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretSyncedError, "NotFound: no store carries the labels of spec.storeRefs; label one or correct the selector"}
	}
	var bad []string
	for _, s := range stores {
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
		switch {
		case c == nil, c.ObservedGeneration != ps.Generation:
			return verdict{metav1.ConditionUnknown, v1alpha1.ConditionReconciling, fmt.Sprintf("%s %q is being compared", s.Kind, s.Name)}
		case c.Status != metav1.ConditionTrue:
			bad = append(bad, c.Message)
		case c.Reason == v1alpha1.ReasonSecretAlreadyExists:
			reason, message = c.Reason, c.Message
		}
	}
	if len(bad) > 0 {
		return verdict{metav1.ConditionFalse, v1alpha1.ReasonSecretSyncedError, strings.Join(bad, "; ")}
	}
	return verdict{metav1.ConditionTrue, reason, message}
}

// conclude writes the status, if it has changed: the entries of this module, and Ready if it leads. of is
// the verdict on the object; nil for the one over all stores.
func (p *pass) conclude(ctx context.Context, of *verdict) error {
	if of != nil && p.stores == nil {
		p.stores = p.known()
	}
	slices.SortFunc(p.stores, byID)
	known := p.known()
	slices.SortFunc(known, byID)
	status := map[string]any{}
	if len(p.stores) > 0 {
		status["stores"] = p.stores
	}
	p.obj.mu.Lock()
	changed := p.obj.unwritten || !equality.Semantic.DeepEqual(known, p.stores)
	p.obj.mu.Unlock()
	conditions := slices.Clone(p.lastReady())
	leads := p.leads(p.ps) && !p.follows
	if leads {
		if of == nil {
			v := ready(p.ps, slices.Concat(p.stores, p.foreign(p.ps)))
			of = &v
		}
		set(&conditions, v1alpha1.ConditionReady, *of, p.ps.Generation)
		metrics.Synced("PushSecret", of.reason)
		status["conditions"], status["observedGeneration"] = conditions, p.ps.Generation
		changed = changed || !equality.Semantic.DeepEqual(conditions, p.lastReady())
	}
	if !changed {
		return nil
	}
	if err := p.apply(ctx, status); err != nil {
		return err
	}
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	p.obj.unwritten, p.obj.entries = false, map[storeID]v1alpha1.PushStoreStatus{}
	for _, s := range p.stores {
		p.obj.entries[idOf(s)] = *s.DeepCopy()
	}
	if leads {
		p.announce(conditions)
		p.obj.ready = conditions
	}
	return nil
}

// lastReady returns the conditions of the object as they were written last.
func (p *pass) lastReady() []metav1.Condition {
	p.obj.mu.Lock()
	defer p.obj.mu.Unlock()
	if p.obj.ready != nil {
		return p.obj.ready
	}
	return p.ps.Status.Conditions
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets/status,verbs=patch

// apply writes the fields of the status that are this module's. Each module has a field manager of its own,
// so that none takes away what another has written.
func (p *pass) apply(ctx context.Context, status map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "PushSecret",
		"metadata": map[string]any{"name": p.ps.Name, "namespace": p.ps.Namespace, "uid": p.ps.UID},
		"status":   status,
	})
	if err != nil {
		return errors.Wrap(err, "cannot encode the status")
	}
	out := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: p.ps.Namespace, Name: p.ps.Name}}
	err = p.client.Status().Patch(ctx, out, client.RawPatch(types.ApplyPatchType, body),
		client.FieldOwner("direct-secrets-push:"+p.opts.Module+p.class()), client.ForceOwnership)
	if kerrors.IsConflict(err) || kerrors.IsNotFound(err) {
		return nil // It is another object by now, or none.
	}
	return errors.Wrap(err, "cannot write the status")
}

// announce emits an event when the object turned bad or good again; none on a first success.
func (p *pass) announce(conditions []metav1.Condition) {
	before := p.obj.ready
	if before == nil {
		before = p.ps.Status.Conditions
	}
	was, is := meta.FindStatusCondition(before, v1alpha1.ConditionReady), meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case is == nil, is.Status == metav1.ConditionUnknown:
	case is.Status == metav1.ConditionFalse && (was == nil || was.Message != is.Message):
		p.events.Eventf(p.ps, nil, corev1.EventTypeWarning, is.Reason, "Push", "%s", is.Message)
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		p.events.Eventf(p.ps, nil, corev1.EventTypeNormal, is.Reason, "Push", "%s", is.Message)
	}
}
