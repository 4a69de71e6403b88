package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AzureKeyVault is a store: one Azure Key Vault, used as one identity.
//
// +direct-secrets:store:shortName=azkv,get=Azure:AzureSpec
// +kubebuilder:printcolumn:name="Vault",type=string,JSONPath=`.spec.vaultURL`

// AzureKeyVaultSpec describes the vault, and how to log in.
type AzureKeyVaultSpec struct {
	common.StoreSpec `json:",inline"`
	AzureSpec        `json:",inline"`
}
