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

// shape gives a child the spec, labels and annotations that are wanted, and takes away those that once were. Other
// labels and annotations stay.
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

// replace returns a map without some keys, and with others.
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

// given names the labels and annotations that a child was given, and the digest of the spec.
type given struct {
	// Spec is the digest of all fields: who does not know one of them still sees when it changes in the parent.
	Spec        string   `json:"spec,omitempty"`
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// noteOf returns what the annotation of a child says.
func noteOf(want desired) (string, error) {
	spec, err := content{Spec: want.raw}.digest()
	if err != nil {
		return "", err
	}
	m := want.metadata
	raw, err := json.Marshal(given{
		Spec: spec, Labels: slices.Sorted(maps.Keys(m.Labels)), Annotations: slices.Sorted(maps.Keys(m.Annotations)),
	})
	return string(raw), errors.Wrap(err, "cannot encode the names of labels and annotations")
}

// noted returns what the annotation of a child says. One that was damaged says nothing.
func noted(child client.Object) given {
	var g given
	if json.Unmarshal([]byte(child.GetAnnotations()[v1alpha1.FanOutAnnotation]), &g) != nil {
		return given{}
	}
	return g
}

// digestKey is the annotation by which an object that is reduced in the cache tells its digest. It cannot be set on
// an object in the API server, which does not take such keys.
const digestKey = "digest of what a cluster object gave"

// content is what a parent gives a child.
type content struct {
	Spec        any               `json:"spec"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Note        string            `json:"note,omitempty"`
}

func (c content) digest() (string, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return "", errors.Wrap(err, "cannot encode the spec")
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

// digestOf returns the digest of a child as a parent wants it.
func digestOf(want desired) (string, error) {
	note, err := noteOf(want)
	if err != nil {
		return "", err
	}
	return content{Spec: want.spec, Labels: want.metadata.Labels, Annotations: want.metadata.Annotations, Note: note}.digest()
}

// digest returns that of a child as it is. What others have put on it does not count.
func digest(child client.Object, spec any) string {
	annotations := child.GetAnnotations()
	if d, ok := annotations[digestKey]; ok {
		return d
	}
	g := noted(child)
	d, err := content{
		Spec: spec, Labels: only(child.GetLabels(), g.Labels), Annotations: only(annotations, g.Annotations),
		Note: annotations[v1alpha1.FanOutAnnotation],
	}.digest()
	if err != nil {
		return "" // It is as nobody wants it.
	}
	return d
}

// only returns some keys of a map.
func only(in map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		if v, ok := in[k]; ok {
			out[k] = v
		}
	}
	return out
}

// Reduce gives a reduced copy of an ExternalSecret that a ClusterExternalSecret made what the fan-out needs to see
// whether it is as wanted. That is little, and reducing twice changes nothing.
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
