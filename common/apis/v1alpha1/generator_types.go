package v1alpha1

// GeneratorSpec is embedded by every generator Kind.
type GeneratorSpec struct {
	SourceSpec `json:",inline"`

	// Time after which values are replaced, counted separately for each object that uses the generator; at least 1s.
	// Unset or 0: only before they expire.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)$') || duration(self) == duration('0s') || duration(self) >= duration('1s')",message="rotationInterval must be 0 or at least 1s"
	RotationInterval Duration `json:"rotationInterval,omitempty"`

	// Keep the previous values in the Secret, each under <key>-previous. A previous credential is not revoked until the
	// next rotation.
	// +optional
	KeepPrevious bool `json:"keepPrevious,omitempty"`
}

// RevocationSpec is embedded by the generator Kinds whose values can be revoked.
type RevocationSpec struct {
	// How long replaced credentials stay valid after the Secret has the new ones, so that workloads have time to read
	// them. Default 5m.
	// +optional
	RevocationDelay Duration `json:"revocationDelay,omitempty"`
}

// ClusterGeneratorSpec is embedded by the cluster Kind of every generator. It limits the namespaces that can use the
// generator.
type ClusterGeneratorSpec struct {
	// Namespaces that can use the generator: those that match an entry. Unset: all namespaces.
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
