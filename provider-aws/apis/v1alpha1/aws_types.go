package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSSpec is embedded by every store and generator Kind of AWS: where the service is, and as whom it is called.
//
// +kubebuilder:validation:XValidation:rule="(has(self.role) && size(self.role) > 0) || !((has(self.additionalRoles) && size(self.additionalRoles) > 0) || (has(self.externalID) && size(self.externalID) > 0) || (has(self.sessionTags) && size(self.sessionTags) > 0) || (has(self.transitiveTagKeys) && size(self.transitiveTagKeys) > 0))",message="additionalRoles, externalID, sessionTags and transitiveTagKeys need a role"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || !has(self.auth.serviceAccountRef) || (has(self.role) && size(self.role) > 0)",message="auth.serviceAccountRef needs a role that its token can assume"
type AWSSpec struct {
	common.RetrySpec `json:",inline"`

	// AWS region, for example eu-central-1. Required with auth; without it the default is the
	// region of the operator's own configuration.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]*$`
	Region string `json:"region,omitempty"`

	// ARN of the IAM role to work as. With auth.serviceAccountRef it is assumed with the token of
	// the ServiceAccount, unless additionalRoles come first.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Role string `json:"role,omitempty"`

	// ARNs of IAM roles that are assumed one after another, in this order, before role.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=atomic
	AdditionalRoles []string `json:"additionalRoles,omitempty"`

	// External id that the trust policy of role asks for.
	// +optional
	// +kubebuilder:validation:MaxLength=1224
	ExternalID string `json:"externalID,omitempty"`

	// Session tags that are passed when role is assumed.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=key
	SessionTags []SessionTag `json:"sessionTags,omitempty"`

	// Keys of sessionTags that sessions opened from this one inherit.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	TransitiveTagKeys []string `json:"transitiveTagKeys,omitempty"`

	// URL of the service, instead of the one of the region; for example that of a VPC endpoint.
	// It must begin with https, except on the operator's own host (127.0.0.1, localhost).
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint,omitempty"`

	// Who calls AWS. Unset: the operator's own identity, if it may be used.
	// +optional
	Auth *AWSAuth `json:"auth,omitempty"`
}

// KeySpec is embedded by every store Kind of AWS: how keys become the names that AWS knows.
type KeySpec struct {
	// Put before every key that is no ARN. Keys that a find yields are without it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix,omitempty"`
}

// SessionTag is a tag of an STS session.
type SessionTag struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Key string `json:"key"`
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}

// AWSAuth says who calls AWS.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.serviceAccountRef)",message="set either secretRef or serviceAccountRef"
type AWSAuth struct {
	// A static access key.
	// +optional
	SecretRef *AWSSecretRef `json:"secretRef,omitempty"`

	// A ServiceAccount whose token role trusts (IAM roles for service accounts). Default audience:
	// sts.amazonaws.com.
	// +optional
	ServiceAccountRef *common.ServiceAccountSelector `json:"serviceAccountRef,omitempty"`
}

// AWSSecretRef names the parts of a static access key.
type AWSSecretRef struct {
	// Key of a Secret that holds the access key id.
	AccessKeyIDSecretRef common.SecretKeySelector `json:"accessKeyIDSecretRef"`

	// Key of a Secret that holds the secret access key.
	SecretAccessKeySecretRef common.SecretKeySelector `json:"secretAccessKeySecretRef"`

	// Key of a Secret that holds the session token, if the access key is a temporary one.
	// +optional
	SessionTokenSecretRef *common.SecretKeySelector `json:"sessionTokenSecretRef,omitempty"`
}
