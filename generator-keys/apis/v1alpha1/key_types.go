package v1alpha1

// KeySettings describe the private keys of a generator.
//
// +kubebuilder:validation:XValidation:rule="!has(self.keySize) || (has(self.keyType) && self.keyType in ['rsa', 'ecdsa'])",message="keySize needs keyType rsa or ecdsa; set keyType, or remove keySize"
// +kubebuilder:validation:XValidation:rule="!has(self.keySize) || !has(self.keyType) || self.keyType != 'rsa' || (self.keySize >= 2048 && self.keySize <= 4096 && self.keySize % 8 == 0)",message="keySize of an RSA key must be from 2048 to 4096, in steps of 8"
// +kubebuilder:validation:XValidation:rule="!has(self.keySize) || !has(self.keyType) || self.keyType != 'ecdsa' || self.keySize in [256, 384, 521]",message="keySize of an ECDSA key must be 256, 384 or 521"
type KeySettings struct {
	// Type of the key: rsa, ecdsa or ed25519. Default: ed25519 for an SSHKey, ecdsa for a TLSCertificate.
	// +optional
	// +kubebuilder:validation:Enum="";rsa;ecdsa;ed25519
	KeyType KeyType `json:"keyType,omitempty"`

	// Size of the key in bits. For rsa 2048 to 4096, default 3072. For ecdsa 256, 384 or 521, default 256.
	// +optional
	// +kubebuilder:validation:Maximum=4096
	KeySize int32 `json:"keySize,omitempty"`
}

// KeyType is the type of a private key.
type KeyType string

// The types of private keys.
const (
	KeyTypeRSA     KeyType = "rsa"
	KeyTypeECDSA   KeyType = "ecdsa"
	KeyTypeEd25519 KeyType = "ed25519"
)
