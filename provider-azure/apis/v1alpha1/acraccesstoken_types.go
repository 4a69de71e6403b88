package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// ACRAccessToken is a generator of tokens of Azure Container Registry: logins of one identity to one registry.
//
// +direct-secrets:generator:shortName=acrtoken,login
// +kubebuilder:printcolumn:name="Registry",type=string,JSONPath=`.spec.registry`

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
