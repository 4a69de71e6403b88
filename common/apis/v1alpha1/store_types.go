package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoreRef names a store or generator by Kind and name.
type StoreRef struct {
	// Only the group counts; a version may be written but is ignored. Unset: any Kind whose group
	// ends in direct-secrets.io.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	APIVersion string `json:"apiVersion,omitempty"`

	// For example AWSSecretsManager.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// A namespaced Kind is looked up in the namespace of the object that refers to it.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// SourceSpec is what StoreSpec and GeneratorSpec have in common.
type SourceSpec struct {
	// Class of the operator that serves this object. Unset: the operator that runs without
	// --controller-class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Controller string `json:"controller,omitempty"`

	// Time between two validations of this object. Default 5m, at least 1s.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || duration(self) <= duration('0s') || duration(self) >= duration('1s')",message="refreshInterval must be 0 or at least 1s"
	RefreshInterval Duration `json:"refreshInterval,omitempty"`

	// Enabled (the default): hold the objects that refer to this one while it is not Ready.
	// +optional
	// +kubebuilder:validation:Enum="";Enabled;Disabled
	GatingPolicy GatingPolicy `json:"gatingPolicy,omitempty"`
}

// StoreSpec is embedded by every store Kind.
type StoreSpec struct {
	SourceSpec `json:",inline"`

	// ReadOnly refuses every push to this store. Default: ReadWrite.
	// +optional
	// +kubebuilder:validation:Enum="";ReadOnly;ReadWrite
	Access Access `json:"access,omitempty"`
}

// GatingPolicy says whether a store or generator that is not Ready holds the objects that refer to it.
type GatingPolicy string

// The gating policies; unset means Enabled.
const (
	GatingEnabled  GatingPolicy = "Enabled"
	GatingDisabled GatingPolicy = "Disabled"
)

// Access says whether a store may be written.
type Access string

// The kinds of access; unset means ReadWrite.
const (
	AccessReadOnly  Access = "ReadOnly"
	AccessReadWrite Access = "ReadWrite"
)

// RetrySpec is embedded by the Kinds whose provider repeats calls that have failed.
type RetrySpec struct {
	// Bounds of the retries inside one call to the provider.
	// +optional
	RetrySettings *RetrySettings `json:"retrySettings,omitempty"`
}

// RetrySettings bound the retries inside one call to the provider. After them the object is tried
// again later with back-off, for ever.
type RetrySettings struct {
	// Default 5.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// Longest wait between two tries. Default 10s.
	// +optional
	RetryInterval Duration `json:"retryInterval,omitempty"`
}

// StatusSubresource is what every store Kind and generator Kind embeds beside its spec.
type StatusSubresource struct {
	// +optional
	Status StoreStatus `json:"status,omitzero"`
}

// StoreStatus returns the status.
func (s *StatusSubresource) StoreStatus() *StoreStatus { return &s.Status }

// StoreStatus is the status of a store or generator.
type StoreStatus struct {
	// Generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// What the store can do, derived from the provider's code.
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
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// Only for cluster Kinds; rejected on namespaced ones, which read beside themselves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ConfigMapKeySelector names a key of a ConfigMap, by the rules for a Secret.
type ConfigMapKeySelector SecretKeySelector

// ServiceAccountSelector names a ServiceAccount whose token is sent to the provider.
type ServiceAccountSelector struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Audiences of the token. Default: what the provider asks for.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	Audiences []string `json:"audiences,omitempty"`
	// Only for cluster Kinds; rejected on namespaced ones, which read beside themselves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ScopeSpec is embedded by the cluster twins whose specs refer to credentials.
type ScopeSpec struct {
	// Where references to credentials are looked up. ProviderNamespace (the default): in the
	// namespace that each of them names. ManifestNamespace: beside the object that refers to the
	// store, which then is read as whoever those credentials belong to.
	// +optional
	// +kubebuilder:validation:Enum="";ProviderNamespace;ManifestNamespace
	AuthenticationScope AuthenticationScope `json:"authenticationScope,omitempty"`
}

// ClusterStoreSpec is embedded by the cluster twin of every store Kind, beside StoreSpec. It says whom
// the store serves.
type ClusterStoreSpec struct {
	ScopeSpec `json:",inline"`

	// Which namespaces may use the store, and for what. Each entry that matches a namespace admits
	// it, and what entries allow adds up. None: every namespace may use all of the store.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Conditions []StoreCondition `json:"conditions,omitempty"`
}

// AuthenticationScope says where a cluster Kind looks up references to credentials.
type AuthenticationScope string

// The authentication scopes; unset means ProviderNamespace.
const (
	ScopeProviderNamespace AuthenticationScope = "ProviderNamespace"
	ScopeManifestNamespace AuthenticationScope = "ManifestNamespace"
)

// NamespaceCondition admits namespaces to a cluster Kind. Selector, names and regular expressions are
// alternatives; without any the entry admits every namespace.
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

// StoreCondition admits namespaces to a store, and may limit what they use of it.
type StoreCondition struct {
	NamespaceCondition `json:",inline"`

	// Keys that the namespaces may read, find and push, as the object spells them. * stands for any
	// characters, / included, and ${namespace} for the name of the object's namespace. None: all keys.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	AllowedKeys []string `json:"allowedKeys,omitempty"`

	// ReadOnly refuses every push from the namespaces. Default: what the store allows.
	// +optional
	// +kubebuilder:validation:Enum="";ReadOnly;ReadWrite
	Access Access `json:"access,omitempty"`
}
