// Package v1alpha1 holds the API of direct-secrets that all providers share: ExternalSecret,
// PushSecret, and the StoreSpec and StoreStatus that every store Kind embeds.
//
// No field has an API-server default: an unset field stays unset in the stored object, and the code
// applies the default. Tools that compare manifests with the cluster therefore see no drift.
//
// +kubebuilder:object:generate=true
// +groupName=direct-secrets.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of this package. The groups of providers end with "."+Group.
const Group = "direct-secrets.io"

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	return Register(s, GroupVersion, &ExternalSecret{}, &ExternalSecretList{}, &PushSecret{}, &PushSecretList{},
		&ClusterExternalSecret{}, &ClusterExternalSecretList{}, &ClusterPushSecret{}, &ClusterPushSecretList{},
		&EventReceiver{}, &EventReceiverList{}, &ClusterEventReceiver{}, &ClusterEventReceiverList{})
}

// Register adds Kinds of a group and version to a scheme. Its error is that of an AddToScheme, and always nil.
func Register(s *runtime.Scheme, version schema.GroupVersion, kinds ...runtime.Object) error {
	s.AddKnownTypes(version, kinds...)
	metav1.AddToGroupVersion(s, version)
	return nil
}
