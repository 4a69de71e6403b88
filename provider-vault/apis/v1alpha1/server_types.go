package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// VaultServer is embedded by every Kind of this package: the server, and how to log in.
type VaultServer struct {
	common.RetrySpec `json:",inline"`

	// Address of the server, for example https://vault.example.com:8200. It must use https, except on the operator's
	// own host (127.0.0.1, localhost), or with allowPlainHTTP.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="server must be a URL, such as https://vault.example.com:8200"
	Server string `json:"server"`

	// The network protects the traffic, as a service mesh does, so server can use plain http. Without such protection anyone
	// on the network can read logins and secrets. The condition Ready says so.
	// +optional
	AllowPlainHTTP bool `json:"allowPlainHTTP,omitempty"`

	// Namespace of Vault Enterprise, Vault Dedicated or OpenBao, for example team/shop.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Namespace string `json:"namespace,omitempty"`

	common.Authorities `json:",inline"`

	// A client certificate for the connection, for servers that require one with every auth method.
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`

	// Vault Enterprise: do not read from a node that is behind the latest state that this store has seen.
	// +optional
	ReadYourWrites bool `json:"readYourWrites,omitempty"`

	// Vault Enterprise: forward a request to the active node if the node is behind. Only with readYourWrites, and if
	// the configuration of the server allows it.
	// +optional
	ForwardInconsistent bool `json:"forwardInconsistent,omitempty"`

	// HTTP headers of every request, for example for a proxy in front of the server. Do not put secrets here.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	Headers map[string]string `json:"headers,omitempty"`

	// How to log in.
	// +required
	Auth *VaultAuth `json:"auth,omitempty"`
}

// ClientTLS names the parts of a client certificate.
type ClientTLS struct {
	// Key of a Secret that holds the certificate in PEM form.
	CertSecretRef common.SecretKeySelector `json:"certSecretRef"`

	// Key of a Secret that holds the private key in PEM form.
	KeySecretRef common.SecretKeySelector `json:"keySecretRef"`
}
