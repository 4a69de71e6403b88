package externalsecret

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// verdict is the outcome of a reconcile, as the Ready condition shows it.
type verdict = status.Verdict

// synced is the verdict that all is well; without a message it has the usual one.
func synced(message string) verdict {
	if message == "" {
		message = "the Secret is in step"
	}
	return status.Good(v1alpha1.ReasonSecretSynced, message)
}

// syncFailed is the verdict on values that could not be read, rendered or written.
func syncFailed(err error) verdict {
	safe := provider.Safe(err)
	v := status.Failed(v1alpha1.ReasonSecretSyncedError, safe.Message)
	v.Class = safe.Class
	return v
}

// conclude writes the conditions of a verdict, and the generation that it is about, into a status.
func conclude(st *v1alpha1.ExternalSecretStatus, generation int64, v verdict) {
	st.ObservedGeneration = generation
	status.Conclude(&st.Conditions, generation, v)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets/status,verbs=patch
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=get

// statuses writes those of ExternalSecrets. Parts are written by their contributors.
var statuses = status.Kind[*v1alpha1.ExternalSecret, v1alpha1.ExternalSecretStatus]{
	New:    func() *v1alpha1.ExternalSecret { return &v1alpha1.ExternalSecret{} },
	Status: func(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecretStatus { return &es.Status },
	Except: []string{"parts"},
}

// patchStatus writes a status if it differs from the one that was seen.
func (r *Reconciler) patchStatus(ctx context.Context, es *v1alpha1.ExternalSecret, obj *object, next *v1alpha1.ExternalSecretStatus) error {
	before := obj.latest(es)
	out, written, err := statuses.Patch(ctx, r.client, es, obj.version(es), before, next)
	if written {
		obj.wroteStatus(out)
		status.Announce(r.events, es, "Sync", before.Conditions, next.Conditions)
	}
	return err
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
