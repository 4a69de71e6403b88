package v1alpha1

// GeneratorSpec is embedded by every generator Kind.
type GeneratorSpec struct {
	SourceSpec `json:",inline"`

	// Time after which values are replaced, for each object that uses the generator from when its own
	// were made; at least 1s. Unset or 0: never, unless they expire.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || duration(self) <= duration('0s') || duration(self) >= duration('1s')",message="rotationInterval must be 0 or at least 1s"
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

// ClusterGeneratorSpec is embedded by the cluster twin of every generator Kind. It says whom the generator
// serves.
type ClusterGeneratorSpec struct {
	// Which namespaces may use the generator: those that an entry matches. None: every namespace.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Conditions []NamespaceCondition `json:"conditions,omitempty"`
}

// AsStore returns the spec of a store that serves the same namespaces.
func (s ClusterGeneratorSpec) AsStore(scope ScopeSpec) *ClusterStoreSpec {
	out := &ClusterStoreSpec{ScopeSpec: scope}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, StoreCondition{NamespaceCondition: c})
	}
	return out
}
