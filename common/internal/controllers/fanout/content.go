package fanout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// shape sets the wanted spec, labels and annotations of a child, and removes labels and annotations that were set
// before. Those of other clients stay.
func shape(child *unstructured.Unstructured, want desired) error {
	note, err := noteOf(want)
	if err != nil {
		return err
	}
	had := noted(child)
	if child.Object == nil {
		child.Object = map[string]any{}
	}
	child.Object["spec"] = runtime.DeepCopyJSON(want.raw)
	child.SetLabels(replace(child.GetLabels(), had.Labels, want.metadata.Labels))
	annotations := replace(child.GetAnnotations(), had.Annotations, want.metadata.Annotations)
	child.SetAnnotations(replace(annotations, nil, map[string]string{v1alpha1.FanOutAnnotation: note}))
	return nil
}

// replace returns a copy of a map without some keys, and with others.
func replace(in map[string]string, without []string, with map[string]string) map[string]string {
	out := maps.Clone(in)
	for _, k := range without {
		delete(out, k)
	}
	if out == nil && len(with) > 0 {
		out = map[string]string{}
	}
	maps.Copy(out, with)
	return out
}

// given records the labels and annotations that a child was given, and the digest of the spec.
type given struct {
	// Spec is the digest of all fields. It shows changes of the parent also in fields that this version does not
	// know.
	Spec        string   `json:"spec,omitempty"`
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// noteOf returns the value of the fan-out annotation of a child.
func noteOf(want desired) (string, error) {
	spec, err := contentDigest(want.raw, nil, nil, "")
	if err != nil {
		return "", err
	}
	m := want.metadata
	raw, err := json.Marshal(given{
		Spec: spec, Labels: slices.Sorted(maps.Keys(m.Labels)), Annotations: slices.Sorted(maps.Keys(m.Annotations)),
	})
	return string(raw), errors.Wrap(err, "cannot encode the names of labels and annotations")
}

// noted returns the content of the fan-out annotation of a child; empty if it cannot be decoded.
func noted(child client.Object) given {
	var g given
	if json.Unmarshal([]byte(child.GetAnnotations()[v1alpha1.FanOutAnnotation]), &g) != nil {
		return given{}
	}
	return g
}

// digestKey is the annotation with the digest of a child that is reduced in the cache. The key is invalid, so no
// object in the API server can have it.
const digestKey = "digest of what a cluster object gave"

// contentDigest returns a digest of what a parent sets in a child.
func contentDigest(spec any, labels, annotations map[string]string, note string) (string, error) {
	raw, err := json.Marshal(struct {
		Spec        any               `json:"spec"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
		Note        string            `json:"note,omitempty"`
	}{spec, labels, annotations, note})
	if err != nil {
		return "", errors.Wrap(err, "cannot encode the spec")
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

// digestOf returns the digest of the wanted child.
func digestOf(want desired) (string, error) {
	note, err := noteOf(want)
	if err != nil {
		return "", err
	}
	return contentDigest(want.spec, want.metadata.Labels, want.metadata.Annotations, note)
}

// digest returns the digest of a child as it is. Labels and annotations of other clients are not included.
func digest(child client.Object, spec any) string {
	annotations := child.GetAnnotations()
	if d, ok := annotations[digestKey]; ok {
		return d
	}
	g := noted(child)
	d, err := contentDigest(spec, only(child.GetLabels(), g.Labels), only(annotations, g.Annotations), annotations[v1alpha1.FanOutAnnotation])
	if err != nil {
		return "" // The digest matches no wanted one.
	}
	return d
}

// only returns a copy of a map with some of its keys.
func only(in map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := in[k]; ok {
			out[k] = v
		}
	}
	return out
}

// Reduce copies from an ExternalSecret to its reduced copy what the fan-out needs to compare a child with the wanted
// one. It copies nothing if the object is not a child. Reducing twice changes nothing.
func Reduce(from, to *v1alpha1.ExternalSecret) {
	reduce(from, to, clusterExternalSecret, &from.Spec)
}

// reduce is Reduce for any Kind.
func reduce(from, to client.Object, kind string, spec any) {
	ref := parentOf(from, kind)
	if ref == nil {
		return
	}
	to.SetOwnerReferences([]metav1.OwnerReference{*ref})
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	to.SetAnnotations(map[string]string{digestKey: digest(from, spec)})
}
