// Package v1alpha1 holds the Kinds of this module.
//
// No field has an API-server default: what is unset stays unset in the stored object, and the code
// gives it its meaning.
//
// +kubebuilder:object:generate=true
// +groupName=azure.direct-secrets.io
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Group is the API group of this package.
const Group = "azure." + common.Group

// GroupVersion is the group and version of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	return common.Register(s, GroupVersion,
		&AzureKeyVault{}, &AzureKeyVaultList{}, &ClusterAzureKeyVault{}, &ClusterAzureKeyVaultList{},
		&ACRAccessToken{}, &ACRAccessTokenList{}, &ClusterACRAccessToken{}, &ClusterACRAccessTokenList{})
}
