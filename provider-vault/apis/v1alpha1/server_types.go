package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// VaultServer is embedded by every Kind of this package: which server to talk to, and how to log in.
type VaultServer struct {
	common.RetrySpec `json:",inline"`

	// Address of the server, for example https://vault.example.com:8200. It must begin with https,
	// except on the operator's own host (127.0.0.1, localhost).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Server string `json:"server"`

	// Namespace of Vault Enterprise, Vault Dedicated or OpenBao, for example team/shop.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Namespace string `json:"namespace,omitempty"`

	// Certificates in PEM form, encoded as base64, of the authorities that may sign the server's
	// certificate. Unset, as caProvider: those that the operator's system trusts.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle []byte `json:"caBundle,omitempty"`

	// A Secret or ConfigMap that holds those certificates instead. A change is picked up at once.
	// +optional
	CAProvider *CAProvider `json:"caProvider,omitempty"`

	// A client certificate that is shown to the server; for servers that ask for one whatever the
	// auth.
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`

	// Vault Enterprise: do not read from a node that lags behind what this store has seen.
	// +optional
	ReadYourWrites bool `json:"readYourWrites,omitempty"`

	// Vault Enterprise: let the active node answer where a node lags behind. Only with
	// readYourWrites, and if the server allows it.
	// +optional
	ForwardInconsistent bool `json:"forwardInconsistent,omitempty"`

	// HTTP headers that are sent with every request, for example to a proxy in front of the server.
	// They are no place for secrets.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	Headers map[string]string `json:"headers,omitempty"`

	// How to log in.
	// +optional
	Auth *VaultAuth `json:"auth,omitempty"`
}

// CAProviderType says what kind of object holds certificates.
type CAProviderType string

// The kinds of objects that hold certificates.
const (
	CAProviderSecret    CAProviderType = "Secret"
	CAProviderConfigMap CAProviderType = "ConfigMap"
)

// CAProvider names the key of an object that holds certificates.
type CAProvider struct {
	// Kind of the object: Secret or ConfigMap.
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Type CAProviderType `json:"type"`

	common.SecretKeySelector `json:",inline"`
}

// ClientTLS names the parts of a client certificate.
type ClientTLS struct {
	// Key of a Secret that holds the certificate in PEM form.
	CertSecretRef common.SecretKeySelector `json:"certSecretRef"`

	// Key of a Secret that holds its private key in PEM form.
	KeySecretRef common.SecretKeySelector `json:"keySecretRef"`
}
