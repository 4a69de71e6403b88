package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Environment is a cloud of Azure.
//
// +kubebuilder:validation:Enum=PublicCloud;ChinaCloud;USGovernmentCloud;Custom
type Environment string

// These are the clouds.
const (
	PublicCloud       Environment = "PublicCloud"
	ChinaCloud        Environment = "ChinaCloud"
	USGovernmentCloud Environment = "USGovernmentCloud"
	CustomEnvironment Environment = "Custom"
)

// VaultDomains are the domains of the vaults of each environment but CustomEnvironment, by
// https://learn.microsoft.com/azure/key-vault/general/about-keys-secrets-certificates.
var VaultDomains = map[Environment]string{
	PublicCloud:       "vault.azure.net",
	ChinaCloud:        "vault.azure.cn",
	USGovernmentCloud: "vault.usgovcloudapi.net",
}

// FederatedAudience is the default audience of the token of a ServiceAccount: the one that Microsoft Entra ID expects.
const FederatedAudience = "api://AzureADTokenExchange"

// RegistryDomains are the domains of the container registries of each environment but CustomEnvironment, by
// https://learn.microsoft.com/azure/container-registry/container-registry-firewall-access-rules.
var RegistryDomains = map[Environment]string{
	PublicCloud:       "azurecr.io",
	ChinaCloud:        "azurecr.cn",
	USGovernmentCloud: "azurecr.us",
}

// AzureSpec describes the vault, its cloud, and how to log in.
//
// +kubebuilder:validation:XValidation:rule="(has(self.environment) && self.environment == 'Custom') == has(self.customCloudConfig)",message="set customCloudConfig with environment Custom, and only then"
type AzureSpec struct {
	common.RetrySpec `json:",inline"`
	AzureLogin       `json:",inline"`

	// URL of the vault, such as https://shop.vault.azure.net. Its host must be one of the environment. The URL of an emulator on the
	// operator's own host (127.0.0.1, localhost) is also accepted; logins then use that host, too, unless environment is Custom.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="vaultURL must be a URL, such as https://shop.vault.azure.net"
	VaultURL string `json:"vaultURL"`

	// Cloud of the vault. Unset: PublicCloud.
	// +optional
	Environment Environment `json:"environment,omitempty"`

	// Addresses of a cloud that the operator does not know, such as one of Azure Stack. Only for environment Custom.
	// +optional
	CustomCloudConfig *CustomCloudConfig `json:"customCloudConfig,omitempty"`
}

// AzureLogin sets the tenant and the credentials that log in to Azure.
//
// +kubebuilder:validation:XValidation:rule="has(self.auth.managedIdentity) || has(self.auth.serviceAccountRef) || (has(self.tenantID) && size(self.tenantID) > 0)",message="set tenantID, which only managedIdentity and serviceAccountRef do not need"
type AzureLogin struct {
	// Tenant of Microsoft Entra ID of the service: an ID or a domain. Required for clientSecret and clientCertificate. Unset with
	// serviceAccountRef: the annotation azure.workload.identity/tenant-id of the ServiceAccount.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9][A-Za-z0-9.-]*)?$`
	TenantID string `json:"tenantID,omitempty"`

	// Credentials for Azure.
	Auth AzureAuth `json:"auth"`
}

// CustomCloudConfig has the addresses of a cloud.
type CustomCloudConfig struct {
	// URL of the authority that issues tokens, such as https://login.local.azurestack.external.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="activeDirectoryEndpoint must be a URL, such as https://login.microsoftonline.com"
	ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint"`

	// Domain of the vaults, such as vault.local.azurestack.external. Tokens are requested for https:// and this domain, and are sent
	// only to its hosts.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	KeyVaultDNSSuffix string `json:"keyVaultDNSSuffix"`
}

// AzureAuth sets the credentials for Azure.
//
// +kubebuilder:validation:XValidation:rule="[has(self.serviceAccountRef), has(self.managedIdentity), has(self.clientSecret), has(self.clientCertificate)].filter(is, is).size() == 1",message="set exactly one of serviceAccountRef, managedIdentity, clientSecret and clientCertificate"
type AzureAuth struct {
	// A ServiceAccount that an application or a managed identity trusts by a federated credential (workload identity).
	// +optional
	ServiceAccountRef *FederatedServiceAccount `json:"serviceAccountRef,omitempty"`

	// A managed identity of the machines that the operator runs on. Stores can use it only if the chart value ambientCredentials allows it.
	// +optional
	ManagedIdentity *ManagedIdentity `json:"managedIdentity,omitempty"`

	// A client secret of an application.
	// +optional
	ClientSecret *ClientSecret `json:"clientSecret,omitempty"`

	// A certificate of an application.
	// +optional
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`
}

// FederatedServiceAccount is a ServiceAccount with the client that trusts it.
type FederatedServiceAccount struct {
	// The ServiceAccount. Default audience of its token: api://AzureADTokenExchange.
	common.ServiceAccountSelector `json:",inline"`

	// ID of the application or managed identity that trusts the ServiceAccount. Unset: the annotation
	// azure.workload.identity/client-id of the ServiceAccount.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]*$`
	ClientID string `json:"clientID,omitempty"`
}

// ManagedIdentity is a managed identity of a machine.
type ManagedIdentity struct {
	// Client ID of a user-assigned identity. Unset: the system-assigned identity.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]*$`
	ClientID string `json:"clientID,omitempty"`
}

// Client is an application.
//
// +kubebuilder:validation:XValidation:rule="has(self.clientID) != has(self.clientIDRef)",message="set either clientID or clientIDRef"
type Client struct {
	// ID of the application.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	ClientID string `json:"clientID,omitempty"`

	// Key of a Secret that holds the ID of the application.
	// +optional
	ClientIDRef *common.SecretKeySelector `json:"clientIDRef,omitempty"`
}

// ClientSecret is a client secret of an application.
type ClientSecret struct {
	Client `json:",inline"`

	// Key of a Secret that holds the client secret.
	ClientSecretRef common.SecretKeySelector `json:"clientSecretRef"`
}

// ClientCertificate is a certificate of an application.
type ClientCertificate struct {
	Client `json:",inline"`

	// Key of a Secret that holds the certificate with its private key, in PEM form, or as PKCS#12 without a password.
	ClientCertificateRef common.SecretKeySelector `json:"clientCertificateRef"`
}
