package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreRef names a store or generator by Kind and name.
type StoreRef struct {
	// Only its group counts. Unset: any Kind whose group ends in direct-secrets.io.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	// +kubebuilder:validation:Pattern=`^[-./a-z0-9]*$`
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind, for example AWSSecretsManager.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`

	// Name of the store or generator. A namespaced one is in the namespace of this object.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// SourceSpec holds the fields that StoreSpec and GeneratorSpec share.
type SourceSpec struct {
	// Class of the operator that serves this object. Unset: the operator without --controller-class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Controller string `json:"controller,omitempty"`

	// Interval at which this object is validated. Default 5m, at least 1s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)$') || duration(self) >= duration('1s')",message="validationInterval must be at least 1s"
	ValidationInterval Duration `json:"validationInterval,omitempty"`

	// Enabled (the default): while this object is not Ready, the objects that refer to it wait and do not call the
	// provider. Disabled: they do not wait.
	// +optional
	// +kubebuilder:validation:Enum="";Enabled;Disabled
	GatingPolicy GatingPolicy `json:"gatingPolicy,omitempty"`
}

// StoreSpec is embedded by every store Kind.
type StoreSpec struct {
	SourceSpec `json:",inline"`

	// ReadOnly rejects every push to this store. Default: ReadWrite.
	// +optional
	// +kubebuilder:validation:Enum="";ReadOnly;ReadWrite
	Access Access `json:"access,omitempty"`
}

// GatingPolicy defines whether a store or generator that is not Ready blocks the objects that refer to it.
type GatingPolicy string

// The gating policies; unset means Enabled.
const (
	GatingEnabled  GatingPolicy = "Enabled"
	GatingDisabled GatingPolicy = "Disabled"
)

// Access defines whether a store can be written.
type Access string

// The kinds of access; unset means ReadWrite.
const (
	AccessReadOnly  Access = "ReadOnly"
	AccessReadWrite Access = "ReadWrite"
)

// RetrySpec is embedded by the Kinds whose provider repeats calls that have failed.
type RetrySpec struct {
	// Limits of the retries inside one call to the provider.
	// +optional
	RetrySettings *RetrySettings `json:"retrySettings,omitempty"`
}

// RetrySettings limit the retries inside one call to the provider. If all fail, the operator retries later with
// back-off, without limit.
type RetrySettings struct {
	// Maximum number of retries. Default 5.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// Maximum wait between two tries. Default 10s.
	// +optional
	RetryInterval Duration `json:"retryInterval,omitempty"`
}

// StatusSubresource is embedded by every store Kind and generator Kind.
type StatusSubresource struct {
	// Status that the operator reports. observedGeneration is -1 until the operator has reconciled the object.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status StoreStatus `json:"status,omitzero"`
}

// StoreStatus returns the status.
func (s *StatusSubresource) StoreStatus() *StoreStatus { return &s.Status }

// StoreStatus is the status of a store or generator.
type StoreStatus struct {
	// Generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Operations that the store or generator supports, for example Read, Find or Write.
	// +optional
	// +listType=set
	Capabilities []string `json:"capabilities,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Reasons of the Ready condition of a store.
const (
	ReasonStoreValid       = "Valid"
	ReasonStoreAuthFailed  = "AuthFailed"
	ReasonStoreInvalidSpec = "InvalidSpec"
	ReasonStoreUnreachable = "Unreachable"
)

// SecretKeySelector names a key of a Secret that holds a credential.
type SecretKeySelector struct {
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// Required on cluster Kinds unless authenticationScope is ManifestNamespace. Rejected on namespaced Kinds, which
	// read only in their own namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// ConfigMapKeySelector names a key of a ConfigMap, by the rules for a Secret.
type ConfigMapKeySelector SecretKeySelector

// ServiceAccountSelector names a ServiceAccount whose token is sent to the provider.
type ServiceAccountSelector struct {
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name"`
	// Audiences of the token. Default: those that the provider expects.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	Audiences []string `json:"audiences,omitempty"`
	// Required on cluster Kinds unless authenticationScope is ManifestNamespace. Rejected on namespaced Kinds, which
	// read only in their own namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// OperatorServiceAccount is the operator's own ServiceAccount.
type OperatorServiceAccount struct {
	// Audience of its token, which the server of the store checks. The operator refuses an audience that the Kubernetes API accepts, because
	// that server could act as the operator with such a token.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Audience string `json:"audience"`
}

// Renamed is the type of a field that has a new name. A validation rule rejects the field and names the new one.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Renamed struct{}

// ScopeSpec is embedded by the cluster twins whose specs refer to credentials.
type ScopeSpec struct {
	// Namespace of the Secrets and ServiceAccounts with credentials. ProviderNamespace (the default): the namespace in
	// each reference. ManifestNamespace: the namespace of the object that refers to the store, so each namespace reads
	// with its own credentials.
	// +optional
	// +kubebuilder:validation:Enum="";ProviderNamespace;ManifestNamespace
	AuthenticationScope AuthenticationScope `json:"authenticationScope,omitempty"`
}

// ClusterStoreSpec is embedded by the cluster Kind of every store, together with StoreSpec. It limits the namespaces
// that can use the store.
type ClusterStoreSpec struct {
	ScopeSpec `json:",inline"`

	// Namespaces that can use the store, and how. Each entry that matches a namespace adds what it allows. Unset: all
	// namespaces can use the whole store.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Conditions []StoreCondition `json:"conditions,omitempty"`
}

// AuthenticationScope defines where a cluster Kind looks up references to credentials.
type AuthenticationScope string

// The authentication scopes; unset means ProviderNamespace.
const (
	ScopeProviderNamespace AuthenticationScope = "ProviderNamespace"
	ScopeManifestNamespace AuthenticationScope = "ManifestNamespace"
)

// NamespaceCondition selects namespaces for a cluster Kind. A namespace matches if the selector, a name or a regular
// expression matches. An entry without them matches all namespaces.
type NamespaceCondition struct {
	// Labels of the namespaces; {} matches all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// Names of the namespaces.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`

	// Regular expressions (RE2) that match the whole name.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	NamespaceRegexes []string `json:"namespaceRegexes,omitempty"`
}

// StoreCondition selects namespaces that can use a store, and optionally limits their access.
type StoreCondition struct {
	NamespaceCondition `json:",inline"`

	// Keys that the namespaces can read, find and push, as written in the object. * matches any characters, including
	// /; ${namespace} is the namespace of the object. Unset: all keys.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	AllowedKeys []string `json:"allowedKeys,omitempty"`

	// ReadOnly rejects every push from the namespaces. Default: the access of the store.
	// +optional
	// +kubebuilder:validation:Enum="";ReadOnly;ReadWrite
	Access Access `json:"access,omitempty"`
}

// Authorities is embedded by Kinds whose server can have a certificate of a private authority.
type Authorities struct {
	// Base64 of the PEM certificates of the authorities that can sign the server's certificate. Default, if caProvider
	// is also unset: the authorities that the operator's system trusts.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle []byte `json:"caBundle,omitempty"`

	// A Secret or ConfigMap with these certificates, instead of caBundle. A change takes effect at once.
	// +optional
	CAProvider *CAProvider `json:"caProvider,omitempty"`
}

// CAProviderType is the Kind of the object with certificates: Secret or ConfigMap.
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

	SecretKeySelector `json:",inline"`
}
