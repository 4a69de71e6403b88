package fanout

import (
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// kinds describe a cluster Kind and the namespaced Kind that it creates.
type kinds struct {
	// controller is the name of the controller.
	controller string
	// newParent, newParents, newChild and newChildren return empty objects and lists.
	newParent   func() client.Object
	newParents  func() client.ObjectList
	newChild    func() client.Object
	newChildren func() client.ObjectList
	// parent and child are the names of the Kinds.
	parent, child string
	// specField is the field of a parent's spec that holds the spec of each child.
	specField string
	// spec returns a pointer to the spec of a child.
	spec func(child client.Object) any
	// conditions returns the conditions of a child.
	conditions func(child client.Object) []metav1.Condition
	// wants returns the wanted children of a parent, without raw.
	wants func(parent client.Object) desired
}

// desired describes the wanted children of a parent.
type desired struct {
	// name is the name of each child; empty means the name of the parent.
	name string
	// metadata is set on each child.
	metadata v1alpha1.TemplateMetadata
	// metadataField is the field of the parent's spec with the metadata.
	metadataField string
	where         v1alpha1.NamespaceChoice
	// admits reports whether a namespace is selected. It is the result of check.
	admits func(*metav1.PartialObjectMetadata) bool
	// spec points to the spec of each child.
	spec any
	// raw is spec as stored in the API server, with fields that this version does not know. It must not be changed.
	raw map[string]any
	// status is the status of the parent.
	status *v1alpha1.FanOutStatus
}

const clusterExternalSecret = "ClusterExternalSecret"

// externalSecrets returns the kinds of ClusterExternalSecret.
func externalSecrets() kinds {
	return kinds{
		controller:  "clusterexternalsecret",
		newParent:   func() client.Object { return &v1alpha1.ClusterExternalSecret{} },
		newParents:  func() client.ObjectList { return &v1alpha1.ClusterExternalSecretList{} },
		newChild:    func() client.Object { return &v1alpha1.ExternalSecret{} },
		newChildren: func() client.ObjectList { return &v1alpha1.ExternalSecretList{} },
		parent:      clusterExternalSecret,
		child:       "ExternalSecret",
		specField:   "externalSecretSpec",
		spec:        func(child client.Object) any { return &child.(*v1alpha1.ExternalSecret).Spec },
		conditions: func(child client.Object) []metav1.Condition {
			return child.(*v1alpha1.ExternalSecret).Status.Conditions
		},
		wants: func(o client.Object) desired {
			p := o.(*v1alpha1.ClusterExternalSecret)
			return desired{
				name: p.Spec.ExternalSecretName, metadata: p.Spec.ExternalSecretMetadata, metadataField: "externalSecretMetadata",
				where: p.Spec.NamespaceChoice, spec: &p.Spec.ExternalSecretSpec, status: &p.Status,
			}
		},
	}
}

// pushSecrets returns the kinds of ClusterPushSecret.
func pushSecrets() kinds {
	return kinds{
		controller:  "clusterpushsecret",
		newParent:   func() client.Object { return &v1alpha1.ClusterPushSecret{} },
		newParents:  func() client.ObjectList { return &v1alpha1.ClusterPushSecretList{} },
		newChild:    func() client.Object { return &v1alpha1.PushSecret{} },
		newChildren: func() client.ObjectList { return &v1alpha1.PushSecretList{} },
		parent:      "ClusterPushSecret",
		child:       "PushSecret",
		specField:   "pushSecretSpec",
		spec:        func(child client.Object) any { return &child.(*v1alpha1.PushSecret).Spec },
		conditions:  func(child client.Object) []metav1.Condition { return child.(*v1alpha1.PushSecret).Status.Conditions },
		wants: func(o client.Object) desired {
			p := o.(*v1alpha1.ClusterPushSecret)
			return desired{
				name: p.Spec.PushSecretName, metadata: p.Spec.PushSecretMetadata, metadataField: "pushSecretMetadata",
				where: p.Spec.NamespaceChoice, spec: &p.Spec.PushSecretSpec, status: &p.Status,
			}
		},
	}
}

// check returns whether a parent selects a namespace, or what is invalid in its spec. It finds errors that the API
// server would otherwise report in every namespace. A namespace that is
// being deleted is not selected.
func (k *kinds) check(want desired) (admits func(*metav1.PartialObjectMetadata) bool, invalid string) {
	if msgs := utilvalidation.IsDNS1123Subdomain(want.name); len(msgs) > 0 {
		return nil, fmt.Sprintf("%q cannot be the name of objects of kind %s: %s", want.name, k.child, msgs[0])
	}
	path := field.NewPath("spec", want.metadataField)
	errs := metavalidation.ValidateLabels(want.metadata.Labels, path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(want.metadata.Annotations, path.Child("annotations"))...)
	if len(errs) > 0 {
		return nil, errs[0].Error()
	}
	if _, ok := want.metadata.Annotations[v1alpha1.FanOutAnnotation]; ok {
		return nil, fmt.Sprintf("%s: %s is reserved for the operator; remove it", path.Child("annotations"), v1alpha1.FanOutAnnotation)
	}
	var selectors []labels.Selector
	for i := range want.where.NamespaceSelectors {
		s, err := metav1.LabelSelectorAsSelector(&want.where.NamespaceSelectors[i])
		if err != nil {
			return nil, fmt.Sprintf("spec.namespaceSelectors[%d]: invalid label selector; correct its keys, operators and values", i)
		}
		selectors = append(selectors, s)
	}
	return func(ns *metav1.PartialObjectMetadata) bool {
		return ns.DeletionTimestamp == nil && (slices.Contains(want.where.Namespaces, ns.Name) ||
			slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(ns.Labels)) }))
	}, ""
}

// parentOf returns the ownerReference of a child to its parent; nil if it has none to this Kind.
func (k *kinds) parentOf(child client.Object) *metav1.OwnerReference {
	return parentOf(child, k.parent)
}

func parentOf(child client.Object, kind string) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(child)
	if ref == nil || ref.Kind != kind {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != v1alpha1.Group {
		return nil
	}
	return ref
}

func (k *kinds) owns(parent, child client.Object) bool {
	o := k.parentOf(child)
	return o != nil && o.UID == parent.GetUID()
}

// inSync reports whether a child is in sync with its parent. wanted is the digest of the wanted child.
func (k *kinds) inSync(parent, child client.Object, wanted string) bool {
	return k.owns(parent, child) && child.GetDeletionTimestamp() == nil && digest(child, k.spec(child)) == wanted
}

// ready reports whether a child is Ready for its present generation.
func (k *kinds) ready(child client.Object) bool {
	c := meta.FindStatusCondition(k.conditions(child), v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == child.GetGeneration()
}

// typed returns a child without the fields that this version does not know.
func (k *kinds) typed(full *unstructured.Unstructured) (client.Object, error) {
	child := k.newChild()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(full.Object, child)
	return child, errors.Wrapf(err, "cannot read an object of kind %s", k.child)
}

// written returns the outcome of a write. full is the child as the API server returned it.
func (k *kinds) written(parent client.Object, full *unstructured.Unstructured, wanted string, err error) (outcome, error) {
	if err != nil {
		return outcome{}, err
	}
	o := outcome{written: true}
	child, err := k.typed(full)
	if err == nil && !k.inSync(parent, child, wanted) {
		o.refused = "a webhook or an admission policy changes the object on each write; exempt the object from it"
	}
	return o, err
}

func unstructuredOf(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return u
}
