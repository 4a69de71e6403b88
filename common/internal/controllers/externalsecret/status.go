package externalsecret

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
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
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxMessage bounds the message of a condition; the API server takes 32 KiB.
const maxMessage = 1024

// verdict is the outcome of a reconcile, as the Ready condition shows it.
type verdict struct {
	status metav1.ConditionStatus
	reason string
	// class of the error that message describes; empty where there is none.
	class   provider.Class
	message string
	// stalled is true where only a person can help.
	stalled bool
}

// synced is the verdict that all is well; without a message it has the usual one.
func synced(message string) verdict {
	if message == "" {
		message = "the Secret is in step"
	}
	return verdict{status: metav1.ConditionTrue, reason: v1alpha1.ReasonSecretSynced, message: message}
}

func failed(reason, message string) verdict {
	return verdict{status: metav1.ConditionFalse, reason: reason, message: message}
}

func stalled(reason, message string) verdict {
	v := failed(reason, message)
	v.stalled = true
	return v
}

// syncFailed is the verdict on values that could not be read, rendered or written.
func syncFailed(err error) verdict {
	safe := provider.Safe(err)
	v := failed(v1alpha1.ReasonSecretSyncedError, safe.Message)
	v.class = safe.Class
	return v
}

// text is the message of the conditions: it starts with the class of the error.
func (v verdict) text() string {
	if v.class == "" {
		return message.Cut(v.message, maxMessage)
	}
	return message.Cut(string(v.class)+": "+v.message, maxMessage)
}

// conclude writes the conditions of a verdict into a status. They follow kstatus: Reconciling while
// the loop tries again, Stalled where only a person can help, neither while all is well.
func conclude(st *v1alpha1.ExternalSecretStatus, generation int64, v verdict) {
	text := v.text()
	st.ObservedGeneration = generation
	set := func(t string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: t, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
		})
	}
	set(v1alpha1.ConditionReady, v.status, v.reason, text)
	retrying := v.status == metav1.ConditionFalse && !v.stalled && v.reason != v1alpha1.ReasonSuspended
	if !retrying {
		meta.RemoveStatusCondition(&st.Conditions, v1alpha1.ConditionReconciling)
	}
	if !v.stalled {
		meta.RemoveStatusCondition(&st.Conditions, v1alpha1.ConditionStalled)
	}
	switch {
	case v.stalled:
		set(v1alpha1.ConditionStalled, metav1.ConditionTrue, v.reason, text)
	case retrying:
		set(v1alpha1.ConditionReconciling, metav1.ConditionTrue, "Retrying", "it is tried again with back-off")
	}
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets/status,verbs=patch
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=get

// patchStatus writes a status if it differs from the one that was seen. It is a merge patch guarded
// by the resourceVersion; if somebody else wrote meanwhile, the object is read live and the status,
// and only the status, is tried again. What was found for a spec that is no longer the one is not
// written: it could cover what is known of the present one already.
func (r *Reconciler) patchStatus(ctx context.Context, es *v1alpha1.ExternalSecret, obj *object, next *v1alpha1.ExternalSecretStatus) error {
	before := obj.latest(es)
	if equality.Semantic.DeepEqual(before, next) {
		return nil
	}
	base, version := before, obj.version(es)
	for {
		body, err := statusPatch(base, next, version)
		if err != nil {
			return err
		}
		out := &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: es.Namespace, Name: es.Name}}
		err = r.client.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, body))
		if err == nil {
			obj.wroteStatus(out)
			r.announce(es, before, next)
			return nil
		}
		if !kerrors.IsConflict(err) {
			return errors.Wrap(client.IgnoreNotFound(err), "cannot write the status")
		}
		live := &v1alpha1.ExternalSecret{}
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(es), live); err != nil {
			return errors.Wrap(client.IgnoreNotFound(err), "cannot read the ExternalSecret")
		}
		if live.UID != es.UID || live.Generation != es.Generation {
			return nil // The event of that change brings the object back.
		}
		base, version = &live.Status, live.ResourceVersion
	}
}

// statusPatch returns a merge patch from base to next. Fields that this version does not know are
// in neither, so they survive.
func statusPatch(base, next *v1alpha1.ExternalSecretStatus, version string) ([]byte, error) {
	from, err := toMap(base)
	if err != nil {
		return nil, err
	}
	to, err := toMap(next)
	if err != nil {
		return nil, err
	}
	delete(from, "parts") // They are written by whoever makes them.
	delete(to, "parts")
	diff := map[string]any{}
	for k, v := range to {
		if !equality.Semantic.DeepEqual(from[k], v) {
			diff[k] = v
		}
	}
	for k := range from {
		if _, ok := to[k]; !ok {
			diff[k] = nil
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status":   diff,
	})
}

func toMap(st *v1alpha1.ExternalSecretStatus) (map[string]any, error) {
	raw, err := json.Marshal(st)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode the status")
	}
	m := map[string]any{}
	return m, errors.Wrap(json.Unmarshal(raw, &m), "cannot decode the status")
}

// announce emits an event when the object turned bad or good again; none on a first sync.
func (r *Reconciler) announce(es *v1alpha1.ExternalSecret, before, after *v1alpha1.ExternalSecretStatus) {
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	switch {
	case is == nil, is.Status == metav1.ConditionUnknown:
	case is.Status == metav1.ConditionFalse && (was == nil || was.Reason != is.Reason || was.Message != is.Message):
		r.events.Eventf(es, nil, corev1.EventTypeWarning, is.Reason, "Sync", "%s", is.Message)
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		r.events.Eventf(es, nil, corev1.EventTypeNormal, is.Reason, "Sync", "%s", is.Message)
	}
}

// refreshed notes a success. The times are written only with another change or as a heartbeat, so
// that a refresh that finds nothing new writes nothing.
func refreshed(st *v1alpha1.ExternalSecretStatus, before *v1alpha1.ExternalSecretStatus, now, next time.Time) {
	due := before.RefreshTime == nil || now.Sub(before.RefreshTime.Time) >= policy.Heartbeat
	if !due && equality.Semantic.DeepEqual(st, before) {
		return
	}
	st.RefreshTime = &metav1.Time{Time: now.Truncate(time.Second)}
	st.NextRefreshTime = nil
	if !next.IsZero() {
		st.NextRefreshTime = &metav1.Time{Time: next.Truncate(time.Second)}
	}
}

// metadataHash covers labels and annotations, but for those that tell nothing about the object: the
// refresh request, which is followed by itself, and kubectl's copy of the manifest. It also covers what
// else lies outside of the spec and has the object refreshed.
func metadataHash(es *v1alpha1.ExternalSecret, others ...string) string {
	h := sha256.New()
	for _, m := range []map[string]string{es.Labels, es.Annotations} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if k == v1alpha1.RefreshRequestAnnotation || k == corev1.LastAppliedConfigAnnotation {
				continue
			}
			kv, err := json.Marshal([2]string{k, m[k]})
			if err != nil {
				continue // Two strings always encode.
			}
			h.Write(kv)
		}
		h.Write([]byte{0})
	}
	for _, o := range others {
		h.Write([]byte(o + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// content returns a hash of all of a spec that bears on the values or on where they go.
func content(es *v1alpha1.ExternalSecret) string {
	spec := es.Spec
	spec.Target.CleanupPolicy = ""
	raw, err := json.Marshal(spec)
	if err != nil {
		return "" // What came from the API server encodes.
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
