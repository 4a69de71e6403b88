package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// VaultDynamicSecret is a generator of credentials from a secrets engine of HashiCorp Vault or OpenBao, or of Vault
// tokens. Each object gets its own. Their leases are renewed, and revoked when they are replaced or no longer used.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vaultdynamicsecrets,shortName=vds,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type VaultDynamicSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VaultDynamicSecretSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// VaultDynamicSecretList is a list of VaultDynamicSecrets.
//
// +kubebuilder:object:root=true
type VaultDynamicSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VaultDynamicSecret `json:"items"`
}

// ClusterVaultDynamicSecret is a VaultDynamicSecret that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clustervaultdynamicsecrets,scope=Cluster,shortName=cvds,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterVaultDynamicSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterVaultDynamicSecretSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterVaultDynamicSecretList is a list of ClusterVaultDynamicSecrets.
//
// +kubebuilder:object:root=true
type ClusterVaultDynamicSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterVaultDynamicSecret `json:"items"`
}

// ClusterVaultDynamicSecretSpec is a VaultDynamicSecretSpec with conditions for namespaces.
type ClusterVaultDynamicSecretSpec struct {
	VaultDynamicSecretSpec      `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
	common.ScopeSpec            `json:",inline"`
}

// Method is the method of a request to Vault.
type Method string

// The methods; unset means GET. Vault makes no difference between POST and PUT.
const (
	MethodGet  Method = "GET"
	MethodPost Method = "POST"
	MethodPut  Method = "PUT"
)

// ResultType is a part of an answer of Vault.
type ResultType string

// The parts; unset means Data.
const (
	ResultData ResultType = "Data"
	ResultAuth ResultType = "Auth"
	ResultRaw  ResultType = "Raw"
)

// VaultDynamicSecretSpec describes the request to Vault, and how to log in.
type VaultDynamicSecretSpec struct {
	VaultServer           `json:",inline"`
	common.GeneratorSpec  `json:",inline"`
	common.RevocationSpec `json:",inline"`

	// Path in the API of Vault without v1/, for example database/creds/shop, pki/issue/shop or auth/token/create/shop.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Path string `json:"path"`

	// Method of the request: GET, POST or PUT. Default: GET.
	// +optional
	// +kubebuilder:validation:Enum="";GET;POST;PUT
	Method Method `json:"method,omitempty"`

	// A JSON object: the query of a GET, otherwise the body. Do not put secrets here.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// Part of the response whose fields become the keys: Data, Auth (for a token), or Raw (the whole response).
	// Default: Data.
	// +optional
	// +kubebuilder:validation:Enum="";Data;Auth;Raw
	ResultType ResultType `json:"resultType,omitempty"`
}

// GeneratorSpec returns the embedded spec.
func (s *VaultDynamicSecret) GeneratorSpec() *common.GeneratorSpec { return &s.Spec.GeneratorSpec }

// GeneratorSpec returns the embedded spec.
func (s *ClusterVaultDynamicSecret) GeneratorSpec() *common.GeneratorSpec {
	return &s.Spec.GeneratorSpec
}

// ClusterStoreSpec returns the embedded spec as that of a store.
func (s *ClusterVaultDynamicSecret) ClusterStoreSpec() *common.ClusterStoreSpec {
	return s.Spec.AsStore(s.Spec.ScopeSpec)
}
