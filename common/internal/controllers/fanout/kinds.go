package fanout

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

func unstructuredOf(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return u
}
