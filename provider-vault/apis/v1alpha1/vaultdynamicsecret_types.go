package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

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

// VaultDynamicSecret is a generator of credentials from a secrets engine of HashiCorp Vault or OpenBao, or of Vault
// tokens. Each object gets its own. Their leases are renewed, and revoked when they are replaced or no longer used.
//
// +direct-secrets:generator:shortName=vds,login
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`

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
