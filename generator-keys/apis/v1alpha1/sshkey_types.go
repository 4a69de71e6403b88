package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// SSHKey is a generator of key pairs for SSH.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sshk,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.keyType`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type SSHKey struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec SSHKeySpec `json:"spec,omitzero"`

	common.StatusSubresource `json:",inline"`
}

// SSHKeyList is a list of SSHKeys.
//
// +kubebuilder:object:root=true
type SSHKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SSHKey `json:"items"`
}

// ClusterSSHKey is an SSHKey that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=csshk,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.keyType`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterSSHKey struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterSSHKeySpec `json:"spec,omitzero"`

	common.StatusSubresource `json:",inline"`
}

// ClusterSSHKeyList is a list of ClusterSSHKeys.
//
// +kubebuilder:object:root=true
type ClusterSSHKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterSSHKey `json:"items"`
}

// SSHKeySpec describes the key pairs, and when they are replaced.
type SSHKeySpec struct {
	common.GeneratorSpec `json:",inline"`
	SSHKeySettings       `json:",inline"`
}

// ClusterSSHKeySpec is an SSHKeySpec with conditions for namespaces.
type ClusterSSHKeySpec struct {
	SSHKeySpec                  `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
}

// SSHKeySettings describe the key pairs.
type SSHKeySettings struct {
	KeySettings `json:",inline"`

	// Comment of the public key, such as the name of the user.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^[:cntrl:]]*)$')",message="comment must be one line without control characters"
	Comment string `json:"comment,omitempty"`
}

// GeneratorSpec returns the embedded spec.
func (g *SSHKey) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// Settings returns the embedded settings.
func (g *SSHKey) Settings() *SSHKeySettings { return &g.Spec.SSHKeySettings }

// GeneratorSpec returns the embedded spec.
func (g *ClusterSSHKey) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// ClusterStoreSpec returns the embedded spec as that of a store.
func (g *ClusterSSHKey) ClusterStoreSpec() *common.ClusterStoreSpec {
	return g.Spec.AsStore(common.ScopeSpec{})
}

// Settings returns the embedded settings.
func (g *ClusterSSHKey) Settings() *SSHKeySettings { return &g.Spec.SSHKeySettings }
