// Package v1alpha1 holds the store and generator Kinds of Vault.
//
// No field has an API-server default: what is unset stays unset in the stored object, and the code
// gives it its meaning.
//
// +kubebuilder:object:generate=true
// +groupName=vault.direct-secrets.io
package v1alpha1
