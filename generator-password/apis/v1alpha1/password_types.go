package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Password is a generator of random passwords.
//
// +direct-secrets:generator:shortName=pw,optional
// +kubebuilder:printcolumn:name="Length",type=integer,priority=1,JSONPath=`.spec.length`

// PasswordSpec describes the passwords, and when they are replaced.
type PasswordSpec struct {
	common.GeneratorSpec `json:",inline"`
	PasswordSettings     `json:",inline"`
}

// PasswordSettings describe the passwords. The validation rules check each setting; the operator checks the number of
// possible passwords.
//
// +kubebuilder:validation:XValidation:rule="(has(self.digits) ? self.digits : 0) + (has(self.symbols) ? self.symbols : 0) <= (has(self.length) ? self.length : 24)",message="digits and symbols together must not be more than length"
// +kubebuilder:validation:XValidation:rule="!has(self.digits) || self.digits <= 10 || (has(self.allowRepeat) && self.allowRepeat)",message="digits: only 10 different digits exist; set allowRepeat: true or a smaller number"
// +kubebuilder:validation:XValidation:rule="!has(self.symbols) || self.symbols <= (has(self.symbolCharacters) ? size(self.symbolCharacters) : 30) || (has(self.allowRepeat) && self.allowRepeat)",message="symbols: there are fewer symbolCharacters (default: 30); set allowRepeat: true, or add symbolCharacters"
// +kubebuilder:validation:XValidation:rule="!has(self.symbolCharacters) || size(self.symbolCharacters) > 0 || (has(self.symbols) && self.symbols == 0)",message="symbolCharacters is empty: remove it to use the default, or set symbols: 0 for none"
// +kubebuilder:validation:XValidation:rule="(has(self.length) ? self.length : 24) <= (has(self.noUpper) && self.noUpper ? 26 : 52) + (has(self.digits) ? self.digits : 10) + (has(self.symbols) ? self.symbols : has(self.symbolCharacters) ? size(self.symbolCharacters) : 30) || (has(self.allowRepeat) && self.allowRepeat)",message="length: there are fewer different characters; set allowRepeat: true or a smaller length"
type PasswordSettings struct {
	// Number of characters. Default 24.
	// +optional
	// +kubebuilder:validation:Maximum=4096
	// +kubebuilder:validation:XValidation:rule="self >= 11",message="length must be at least 11: shorter passwords have less than 64 bits of entropy with any settings"
	Length int32 `json:"length,omitempty"`

	// Number of digits. Unset: a quarter of length, or the nearest number that the other settings allow.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	Digits *int32 `json:"digits,omitempty"`

	// Number of symbols. Unset: a quarter of length, or the nearest number that the other settings allow.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	Symbols *int32 `json:"symbols,omitempty"`

	// Symbols to choose from, each listed once: printable ASCII without letters, digits and space. Unset: all except
	// the apostrophe and the semicolon.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:punct:]]*$')",message="symbolCharacters must be printable ASCII characters without letters, digits and spaces"
	// +kubebuilder:validation:XValidation:rule="self.split('').all(c, self.indexOf(c) == self.lastIndexOf(c))",message="symbolCharacters must list each symbol once: a repeated symbol would be chosen more often"
	SymbolCharacters *string `json:"symbolCharacters,omitempty"`

	// Do not use upper-case letters.
	// +optional
	NoUpper bool `json:"noUpper,omitempty"`

	// Allow characters to repeat.
	// +optional
	AllowRepeat bool `json:"allowRepeat,omitempty"`

	// Keys of the Secret, each with its own password. Default: password.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[-._a-zA-Z0-9]+$`
	// +listType=set
	SecretKeys []string `json:"secretKeys,omitempty"`

	// Encoding of the password in the Secret. Default: raw.
	// +optional
	// +kubebuilder:validation:Enum="";raw;base64;base64url;base32;hex
	Encoding Encoding `json:"encoding,omitempty"`
}

// Encoding is the encoding of a password.
type Encoding string

// The encodings, padded as RFC 4648 has them; unset means EncodingRaw.
const (
	EncodingRaw       Encoding = "raw"
	EncodingBase64    Encoding = "base64"
	EncodingBase64URL Encoding = "base64url"
	EncodingBase32    Encoding = "base32"
	EncodingHex       Encoding = "hex"
)
