package v1alpha1

// GeneratorSpec is embedded by every generator Kind.
type GeneratorSpec struct {
	SourceSpec `json:",inline"`

	// Time after which values are replaced, for each object that uses the generator from when its own
	// were made. Unset: never, unless they expire.
	// +optional
	RotationInterval Duration `json:"rotationInterval,omitempty"`

	// Keep the values that were replaced last, each under <key>-previous. A credential that is kept is not
	// revoked until the next rotation.
	// +optional
	KeepPrevious bool `json:"keepPrevious,omitempty"`
}

// RevocationSpec is embedded by the generator Kinds whose values can be revoked.
type RevocationSpec struct {
	// How long credentials that were replaced stay valid after the Secret holds the new ones, so that who
	// reads the Secret late is not locked out. Default 5m.
	// +optional
	RevocationDelay Duration `json:"revocationDelay,omitempty"`
}
