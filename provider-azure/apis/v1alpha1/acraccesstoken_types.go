package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// ACRAccessToken is a generator of tokens of Azure Container Registry: logins of one identity to one registry.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=acrtoken,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Registry",type=string,JSONPath=`.spec.registry`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ACRAccessToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ACRAccessTokenSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ACRAccessTokenList is a list of ACRAccessTokens.
//
// +kubebuilder:object:root=true
type ACRAccessTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ACRAccessToken `json:"items"`
}

// ClusterACRAccessToken is an ACRAccessToken that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cacrtoken,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Registry",type=string,JSONPath=`.spec.registry`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterACRAccessToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterACRAccessTokenSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterACRAccessTokenList is a list of ClusterACRAccessTokens.
//
// +kubebuilder:object:root=true
type ClusterACRAccessTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterACRAccessToken `json:"items"`
}

// ACRAccessTokenSpec describes the registry, its cloud, how to log in, and the scope of the tokens.
//
// +kubebuilder:validation:XValidation:rule="(has(self.environment) && self.environment == 'Custom') == has(self.customCloudConfig)",message="set customCloudConfig with environment Custom, and only then"
type ACRAccessTokenSpec struct {
	common.GeneratorSpec `json:",inline"`
	common.RetrySpec     `json:",inline"`
	AzureLogin           `json:",inline"`

	// Login server of the registry, such as shop.azurecr.io. It must be one of the environment, because tokens of auth are sent there.
	// The host and port of an emulator on the operator's own host (127.0.0.1, localhost) are also accepted. It gets plain http, and
	// logins then use it, too, unless environment is Custom.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$')",message="registry must be a login server without https:// and path, such as shop.azurecr.io"
	Registry string `json:"registry"`

	// Cloud of the registry. Unset: PublicCloud.
	// +optional
	Environment Environment `json:"environment,omitempty"`

	// Addresses of a cloud that the operator does not know, such as one of Azure Stack. Only for environment Custom.
	// +optional
	CustomCloudConfig *RegistryCloudConfig `json:"customCloudConfig,omitempty"`

	// Scope of the token, such as repository:shop/web:pull. Several scopes are separated by spaces. Unset: the token has all
	// permissions that the identity has in the registry.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^([a-z]+:[A-Za-z0-9._/*-]+:[a-z_,*]+( [a-z]+:[A-Za-z0-9._/*-]+:[a-z_,*]+)*)?$`
	Scope string `json:"scope,omitempty"`
}

// RegistryCloudConfig has the addresses of a cloud with container registries.
type RegistryCloudConfig struct {
	// URL of the authority that issues tokens, such as https://login.local.azurestack.external.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="activeDirectoryEndpoint must be a URL, such as https://login.microsoftonline.com"
	ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint"`

	// Resource that tokens are requested for: that of the registries in this cloud, or of its Azure Resource Manager, such as
	// https://management.local.azurestack.external.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[A-Za-z0-9.:/_-]+$')",message="resource must be a URL, such as https://containerregistry.azure.net"
	Resource string `json:"resource"`

	// Domain of the registries, such as azurecr.local.azurestack.external. Tokens are sent only to its hosts.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	RegistryDNSSuffix string `json:"registryDNSSuffix"`
}

// ClusterACRAccessTokenSpec is an ACRAccessTokenSpec with conditions for namespaces.
type ClusterACRAccessTokenSpec struct {
	ACRAccessTokenSpec          `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
	common.ScopeSpec            `json:",inline"`
}

// GeneratorSpec returns the embedded spec.
func (g *ACRAccessToken) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// GeneratorSpec returns the embedded spec.
func (g *ClusterACRAccessToken) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// ClusterStoreSpec returns the embedded spec as that of a store.
func (g *ClusterACRAccessToken) ClusterStoreSpec() *common.ClusterStoreSpec {
	return g.Spec.AsStore(g.Spec.ScopeSpec)
}
