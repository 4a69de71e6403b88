package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TLSCertificate is a generator of certificates for TLS.
//
// +direct-secrets:generator:shortName=tlscert,login,get=Settings:TLSCertificateSettings
// +kubebuilder:printcolumn:name="CA",type=string,priority=1,JSONPath=`.spec.caSecretRef.name`

// TLSCertificateSpec describes the certificates, and when they are replaced.
type TLSCertificateSpec struct {
	common.GeneratorSpec   `json:",inline"`
	TLSCertificateSettings `json:",inline"`
}

// TLSCertificateSettings describe the certificates.
//
// +kubebuilder:validation:XValidation:rule="(has(self.commonName) && size(self.commonName) > 0) || (has(self.dnsNames) && size(self.dnsNames) > 0) || (has(self.ipAddresses) && size(self.ipAddresses) > 0) || (has(self.uris) && size(self.uris) > 0)",message="the certificate has no name; set dnsNames, ipAddresses, uris or commonName"
type TLSCertificateSettings struct {
	KeySettings `json:",inline"`

	// Common name of the subject. Clients check dnsNames and ipAddresses instead.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^[:cntrl:]]*)$')",message="commonName must have no control characters"
	CommonName string `json:"commonName,omitempty"`

	// DNS names of the certificate. The first label can be *. IP addresses are in ipAddresses.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^([*][.])?[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?([.][A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*$`
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('^[0-9]+([.][0-9]+){3}$')",message="clients ignore DNS names for an IP address: move it to ipAddresses"
	// +listType=set
	DNSNames []string `json:"dnsNames,omitempty"`

	// IP addresses of the certificate.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=set
	IPAddresses []string `json:"ipAddresses,omitempty"`

	// URIs of the certificate, such as spiffe://example.org/shop.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=set
	URIs []string `json:"uris,omitempty"`

	// Time until the certificate expires, from 1m to 87600h. Default 2160h. It expires with the authority at the
	// latest.
	// +optional
	Duration common.Duration `json:"duration,omitempty"`

	// Time before its expiry at which the certificate is replaced, at least 1s. Default: a third of its time.
	// +optional
	RenewBefore common.Duration `json:"renewBefore,omitempty"`

	// Purposes of the certificate. Default: server auth.
	// +optional
	// +kubebuilder:validation:MaxItems=4
	// +listType=set
	Usages []Usage `json:"usages,omitempty"`

	// Secret with the authority that signs the certificates. Unset: certificates are self-signed.
	// +optional
	CASecretRef *CASecretReference `json:"caSecretRef,omitempty"`
}

// CASecretReference names a Secret with the certificate of an authority under tls.crt, and its private key under
// tls.key. tls.crt can have the certificates of higher authorities after it.
type CASecretReference struct {
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name"`
	// Required on the cluster Kind unless authenticationScope is ManifestNamespace. Rejected on the namespaced Kind,
	// which reads only in its own namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// Usage is a purpose of a certificate.
//
// +kubebuilder:validation:Enum=server auth;client auth;code signing;email protection
type Usage string

// The purposes of certificates.
const (
	UsageServerAuth      Usage = "server auth"
	UsageClientAuth      Usage = "client auth"
	UsageCodeSigning     Usage = "code signing"
	UsageEmailProtection Usage = "email protection"
)
