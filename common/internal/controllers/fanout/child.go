package fanout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// outcome is what came of bringing one child in step; the zero outcome is that it is.
type outcome struct {
	// refused says why it is not, and wait when to look again, if not as usual.
	refused string
	wait    time.Duration
	// gone: the namespace is on its way out.
	gone bool
	// written: it was made, or put right.
	written bool
}

// A child is written whole, since fields that this version does not know must not be dropped.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=get
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=create;update,roleName=cluster

// provision brings one child in step. Another's object of that name is left alone.
func (r *reconciler) provision(ctx context.Context, parent client.Object, want Want, namespace string, fight policy.Fight) (outcome, error) {
	key := types.NamespacedName{Namespace: namespace, Name: want.Name}
	wanted, err := digestOf(want)
	if err != nil {
		return outcome{}, err
	}
	child := r.kind.Child()
	err = r.cache.Get(ctx, key, child, client.UnsafeDisableDeepCopy)
	absent := kerrors.IsNotFound(err)
	if err == nil && r.inStep(parent, child, wanted) {
		return outcome{}, nil
	}
	if wait := fight.Wait(r.now()); wait > 0 {
		return outcome{refused: "somebody keeps changing or deleting the object; it is put right with back-off", wait: wait}, nil
	}
	if absent {
		child, err := r.create(ctx, parent, want, key)
		switch {
		case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), kerrors.IsNotFound(err):
			return outcome{gone: true}, nil
		case !kerrors.IsAlreadyExists(err):
			return r.written(parent, child, wanted, err)
		}
	}
	full := unstructuredOf(r.kind.ChildKind)
	if err := r.client.Get(ctx, key, full); err != nil {
		if kerrors.IsNotFound(err) { // It went just now.
			err = kerrors.NewConflict(v1alpha1.GroupVersion.WithResource(r.kind.ChildKind).GroupResource(), want.Name, err)
		}
		return outcome{}, err
	}
	if child, err = r.typed(full); err != nil {
		return outcome{}, err
	}
	switch {
	case r.inStep(parent, child, wanted):
		return outcome{}, nil
	case !r.owns(parent, child):
		return outcome{refused: fmt.Sprintf("%s %q exists, and this object did not make it; delete it or choose another name", r.kind.ChildKind, want.Name)}, nil
	case child.GetDeletionTimestamp() != nil:
		return outcome{refused: fmt.Sprintf("%s %q is being deleted", r.kind.ChildKind, want.Name)}, nil
	}
	if want.Raw, err = r.live(ctx, parent); err != nil {
		return outcome{}, err
	}
	if wanted, err = digestOf(want); err != nil { // Another CRD may show more of the same parent.
		return outcome{}, err
	}
	if err := shape(full, want); err != nil {
		return outcome{}, err
	}
	return r.written(parent, full, wanted, r.client.Update(ctx, full))
}

// written is what came of a write, after which full is as the API server has it.
func (r *reconciler) written(parent client.Object, full *unstructured.Unstructured, wanted string, err error) (outcome, error) {
	if err != nil {
		return outcome{}, err
	}
	o := outcome{written: true}
	child, err := r.typed(full)
	if err == nil && !r.inStep(parent, child, wanted) {
		o.refused = "the object is changed as it is written, by a webhook or an admission policy; exempt it"
	}
	return o, err
}

func (r *reconciler) create(ctx context.Context, parent client.Object, want Want, key types.NamespacedName) (*unstructured.Unstructured, error) {
	child := unstructuredOf(r.kind.ChildKind)
	child.SetNamespace(key.Namespace)
	child.SetName(key.Name)
	ref := r.owner
	ref.Name, ref.UID = parent.GetName(), parent.GetUID()
	child.SetOwnerReferences([]metav1.OwnerReference{ref})
	if err := shape(child, want); err != nil {
		return nil, err
	}
	return child, r.client.Create(ctx, child)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=delete,roleName=cluster

// withdraw removes the children in a namespace that are not wanted any more; those by another name than now only
// after the new one is there. What this object did not make is left. With a child its Secret may go for good, so none
// goes for what only the cache says: it may not have the labels of the namespace yet that the parent is about.
func (r *reconciler) withdraw(ctx context.Context, parent client.Object, want Want, chosen choice, namespace string, admitted bool) error {
	children, err := r.children(ctx, parent, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	for _, c := range children {
		if c.GetDeletionTimestamp() != nil || admitted && c.GetName() == want.Name {
			continue
		}
		child := r.kind.Child()
		err := r.client.Get(ctx, client.ObjectKeyFromObject(c), child)
		if err == nil && r.owns(parent, child) {
			if err := r.unwanted(ctx, parent, chosen, namespace, admitted); err != nil {
				return err
			}
			uid, version := child.GetUID(), child.GetResourceVersion()
			err = r.client.Delete(ctx, child, client.Preconditions{UID: &uid, ResourceVersion: &version})
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get,roleName=cluster

// unwanted returns an error if the API server knows better than the cache what a parent wants, or which labels a
// namespace has.
func (r *reconciler) unwanted(ctx context.Context, parent client.Object, chosen choice, namespace string, admitted bool) error {
	if _, err := r.live(ctx, parent); err != nil || admitted {
		return err
	}
	ns := resolve.NamespaceMetadata()
	err := r.client.Get(ctx, types.NamespacedName{Name: namespace}, ns)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrap(err, "cannot read the namespace")
	}
	if err != nil || chosen.admits(ns) {
		return behind(corev1.Resource("namespaces"), namespace)
	}
	return nil
}

func (r *reconciler) owns(parent, child client.Object) bool {
	o := r.parentOf(child)
	return o != nil && o.UID == parent.GetUID()
}

func (r *reconciler) inStep(parent, child client.Object, wanted string) bool {
	return r.owns(parent, child) && child.GetDeletionTimestamp() == nil && digest(child, r.kind.Spec(child)) == wanted
}

// shape gives a child the spec, labels and annotations that are wanted, and takes away those that once were. Other
// labels and annotations stay.
func shape(child *unstructured.Unstructured, want Want) error {
	note, err := noteOf(want)
	if err != nil {
		return err
	}
	had := noted(child)
	if child.Object == nil {
		child.Object = map[string]any{}
	}
	child.Object["spec"] = runtime.DeepCopyJSON(want.Raw)
	child.SetLabels(replace(child.GetLabels(), had.Labels, want.Metadata.Labels))
	annotations := replace(child.GetAnnotations(), had.Annotations, want.Metadata.Annotations)
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
func noteOf(want Want) (string, error) {
	spec, err := content{Spec: want.Raw}.digest()
	if err != nil {
		return "", err
	}
	m := want.Metadata
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
func digestOf(want Want) (string, error) {
	note, err := noteOf(want)
	if err != nil {
		return "", err
	}
	return content{Spec: want.Spec, Labels: want.Metadata.Labels, Annotations: want.Metadata.Annotations, Note: note}.digest()
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
