package referrers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// Changed reports whether the user has asked for something else than before. Changes of the status do not count.
func Changed(was, is *v1alpha1.ExternalSecret) bool {
	return was.Generation != is.Generation || was.UID != is.UID || Metadata(was) != Metadata(is) ||
		was.Annotations[v1alpha1.RefreshRequestAnnotation] != is.Annotations[v1alpha1.RefreshRequestAnnotation]
}

// Priority returns the queue priority of an object that a watch shows for the first time. An object that is not in
// sync comes before the objects that a restart lists.
func Priority(es *v1alpha1.ExternalSecret) int {
	if es.Status.RefreshTime != nil && es.Status.ObservedGeneration == es.Generation {
		return queue.Low
	}
	return queue.High
}

// Metadata returns a hash of labels and annotations. It leaves out the refresh request, which has its own status
// field, and kubectl's copy of the manifest. others are further values outside of the spec whose change causes a
// refresh.
func Metadata(es *v1alpha1.ExternalSecret, others ...string) string {
	h := sha256.New()
	for _, m := range []map[string]string{es.Labels, es.Annotations} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if k == v1alpha1.RefreshRequestAnnotation || k == corev1.LastAppliedConfigAnnotation {
				continue
			}
			kv, err := json.Marshal([2]string{k, m[k]})
			if err != nil {
				continue // Marshaling two strings never fails.
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

// Content returns a hash of the parts of the spec that affect the values or where they are written.
func Content(es *v1alpha1.ExternalSecret) string {
	spec := es.Spec
	spec.Target.CleanupPolicy = ""
	raw, err := json.Marshal(spec)
	if err != nil {
		return "" // An object from the API server can always be encoded.
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
