package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Password is a generator of random passwords.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pw,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Length",type=integer,priority=1,JSONPath=`.spec.length`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Password struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec PasswordSpec `json:"spec,omitzero"`

	common.StatusSubresource `json:",inline"`
}

// PasswordList is a list of Passwords.
//
// +kubebuilder:object:root=true
type PasswordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Password `json:"items"`
}

// ClusterPassword is a Password that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cpw,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Length",type=integer,priority=1,JSONPath=`.spec.length`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPassword struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterPasswordSpec `json:"spec,omitzero"`

	common.StatusSubresource `json:",inline"`
}

// ClusterPasswordList is a list of ClusterPasswords.
//
// +kubebuilder:object:root=true
type ClusterPasswordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPassword `json:"items"`
}

// PasswordSpec says what the passwords are like, and when they are replaced.
type PasswordSpec struct {
	common.GeneratorSpec `json:",inline"`
	PasswordSettings     `json:",inline"`
}

// ClusterPasswordSpec is a PasswordSpec that says whom it serves.
type ClusterPasswordSpec struct {
	PasswordSpec                `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
}

// PasswordSettings say what the passwords are like. The rules are those that can be seen without
// counting passwords; the operator checks the others.
//
// +kubebuilder:validation:XValidation:rule="(has(self.digits) ? self.digits : 0) + (has(self.symbols) ? self.symbols : 0) <= (has(self.length) ? self.length : 24)",message="digits and symbols do not fit into length"
// +kubebuilder:validation:XValidation:rule="!has(self.digits) || self.digits <= 10 || (has(self.allowRepeat) && self.allowRepeat)",message="digits: without repeats there are only 10; set allowRepeat: true"
// +kubebuilder:validation:XValidation:rule="!has(self.symbols) || self.symbols <= (has(self.symbolCharacters) ? size(self.symbolCharacters) : 30) || (has(self.allowRepeat) && self.allowRepeat)",message="symbols: there are not so many different symbolCharacters (30 unless set); set allowRepeat: true or add some"
// +kubebuilder:validation:XValidation:rule="!has(self.symbolCharacters) || size(self.symbolCharacters) > 0 || (has(self.symbols) && self.symbols == 0)",message="symbolCharacters is empty: leave it out for the usual ones, or set symbols: 0 for none"
// +kubebuilder:validation:XValidation:rule="(has(self.length) ? self.length : 24) <= (has(self.noUpper) && self.noUpper ? 26 : 52) + (has(self.digits) ? self.digits : 10) + (has(self.symbols) ? self.symbols : has(self.symbolCharacters) ? size(self.symbolCharacters) : 30) || (has(self.allowRepeat) && self.allowRepeat)",message="length: there are not so many different characters; set allowRepeat: true or a smaller length"
type PasswordSettings struct {
	// Number of characters. Default 24.
	// +optional
	// +kubebuilder:validation:Maximum=4096
	// +kubebuilder:validation:XValidation:rule="self >= 11",message="a password of fewer than 11 characters has fewer than 64 bits of entropy, whatever the other settings"
	Length int32 `json:"length,omitempty"`

	// How many of the characters are digits. Unset: a quarter, or as near to that as the other settings
	// allow.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	Digits *int32 `json:"digits,omitempty"`

	// How many of the characters are symbols. Unset: a quarter, or as near to that as the other settings
	// allow.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	Symbols *int32 `json:"symbols,omitempty"`

	// The symbols to choose from, each once: printable ASCII without letters, digits and space. Unset:
	// all but the apostrophe and the semicolon.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:punct:]]*$')",message="only printable ASCII characters that are no letters, digits or spaces can be symbols"
	// +kubebuilder:validation:XValidation:rule="self.split('').all(c, self.indexOf(c) == self.lastIndexOf(c))",message="list each symbol once: one that is there twice would be chosen more often"
	SymbolCharacters *string `json:"symbolCharacters,omitempty"`

	// Leave out upper-case letters.
	// +optional
	NoUpper bool `json:"noUpper,omitempty"`

	// Allow a character to come more than once.
	// +optional
	AllowRepeat bool `json:"allowRepeat,omitempty"`

	// Keys to fill, each with a password of its own. Default: password.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[-._a-zA-Z0-9]+$`
	// +listType=set
	SecretKeys []string `json:"secretKeys,omitempty"`

	// How the password is written into the Secret: raw (the default), or encoded once more.
	// +optional
	// +kubebuilder:validation:Enum="";raw;base64;base64url;base32;hex
	Encoding Encoding `json:"encoding,omitempty"`
}

// Encoding says how a password is written.
type Encoding string

// The encodings, padded as RFC 4648 has them; unset means EncodingRaw.
const (
	EncodingRaw       Encoding = "raw"
	EncodingBase64    Encoding = "base64"
	EncodingBase64URL Encoding = "base64url"
	EncodingBase32    Encoding = "base32"
	EncodingHex       Encoding = "hex"
)

// GeneratorSpec returns the embedded spec.
func (p *Password) GeneratorSpec() *common.GeneratorSpec { return &p.Spec.GeneratorSpec }

// GeneratorSpec returns the embedded spec.
func (p *ClusterPassword) GeneratorSpec() *common.GeneratorSpec { return &p.Spec.GeneratorSpec }

// ClusterStoreSpec returns the embedded spec as that of a store.
func (p *ClusterPassword) ClusterStoreSpec() *common.ClusterStoreSpec {
	return p.Spec.AsStore(common.ScopeSpec{})
}
