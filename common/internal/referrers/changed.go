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

// Changed reports whether an object asks for something else than before: its status tells nothing.
func Changed(was, is *v1alpha1.ExternalSecret) bool {
	return was.Generation != is.Generation || was.UID != is.UID || Metadata(was) != Metadata(is) ||
		was.Annotations[v1alpha1.RefreshRequestAnnotation] != is.Annotations[v1alpha1.RefreshRequestAnnotation]
}

// Priority of an object that a watch shows for the first time: one that is not in step goes before those that a restart
// lists.
func Priority(es *v1alpha1.ExternalSecret) int {
	if es.Status.RefreshTime != nil && es.Status.ObservedGeneration == es.Generation {
		return queue.Low
	}
	return queue.High
}

// Metadata returns a hash of labels and annotations, but for those that tell nothing about the object: the
// refresh request, which is followed by itself, and kubectl's copy of the manifest. It also covers what
// else lies outside of the spec and has the object refreshed.
func Metadata(es *v1alpha1.ExternalSecret, others ...string) string {
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

// Content returns a hash of all of a spec that bears on the values or on where they go.
func Content(es *v1alpha1.ExternalSecret) string {
	spec := es.Spec
	spec.Target.CleanupPolicy = ""
	raw, err := json.Marshal(spec)
	if err != nil {
		return "" // What came from the API server encodes.
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
