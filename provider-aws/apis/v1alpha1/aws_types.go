package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSSpec is embedded by every store and generator Kind of AWS: the region and endpoint of the service, and how to log
// in.
//
// +kubebuilder:validation:XValidation:rule="(has(self.role) && size(self.role) > 0) || !((has(self.additionalRoles) && size(self.additionalRoles) > 0) || (has(self.externalID) && size(self.externalID) > 0) || (has(self.sessionTags) && size(self.sessionTags) > 0) || (has(self.transitiveTagKeys) && size(self.transitiveTagKeys) > 0) || (has(self.sessionTagsPolicy) && self.sessionTagsPolicy == 'Simple'))",message="additionalRoles, externalID, sessionTags, sessionTagsPolicy and transitiveTagKeys need a role"
// +kubebuilder:validation:XValidation:rule="(has(self.role) && size(self.role) > 0) || !has(self.auth) || !has(self.auth.operatorServiceAccount)",message="auth.operatorServiceAccount needs a role"
type AWSSpec struct {
	common.RetrySpec `json:",inline"`

	// AWS region, for example eu-central-1. Required with auth. Default without auth: the region of the operator's own
	// configuration.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]*$`
	Region string `json:"region,omitempty"`

	// ARN of the IAM role to assume. With auth.serviceAccountRef or auth.operatorServiceAccount it is assumed with the
	// token of the ServiceAccount, unless additionalRoles are set. Required with auth.operatorServiceAccount. Unset with
	// auth.serviceAccountRef: the role in the annotation eks.amazonaws.com/role-arn of the ServiceAccount.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^arn:[a-z0-9-]+:iam::[0-9]{12}:role/.+$')",message="role must be the ARN of an IAM role, such as arn:aws:iam::111122223333:role/name"
	Role string `json:"role,omitempty"`

	// ARNs of IAM roles to assume before role, in this order.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^arn:[a-z0-9-]+:iam::[0-9]{12}:role/.+$')",message="each of additionalRoles must be the ARN of an IAM role, such as arn:aws:iam::111122223333:role/name"
	// +listType=atomic
	AdditionalRoles []string `json:"additionalRoles,omitempty"`

	// External ID that the trust policy of the role requires.
	// +optional
	// +kubebuilder:validation:MaxLength=1224
	ExternalID string `json:"externalID,omitempty"`

	// Session tags to pass when the role is assumed. Keys that begin with direct-secrets.io/ are reserved for
	// sessionTagsPolicy.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=key
	SessionTags []SessionTag `json:"sessionTags,omitempty"`

	// Session tags that the operator adds when the role is assumed, so that IAM policies can check them. Simple:
	// direct-secrets.io/namespace, the namespace of the objects that read and push; direct-secrets.io/store-kind and
	// direct-secrets.io/store-name; and direct-secrets.io/service-account with auth.serviceAccountRef. Cluster Kinds need
	// authenticationScope ManifestNamespace for it. None (the default): no tags.
	// +optional
	// +kubebuilder:validation:Enum="";None;Simple
	SessionTagsPolicy SessionTagsPolicy `json:"sessionTagsPolicy,omitempty"`

	// Keys of session tags that are inherited by later sessions in a chain of roles.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	TransitiveTagKeys []string `json:"transitiveTagKeys,omitempty"`

	// URL of the service, if it is not the public endpoint of the region, for example that of a VPC endpoint. It must
	// use https, except on the operator's own host (127.0.0.1, localhost).
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^https?://[^/]')",message="endpoint must be a URL, such as https://vpce-1.secretsmanager.eu-central-1.vpce.amazonaws.com"
	Endpoint string `json:"endpoint,omitempty"`

	// Credentials for AWS. Unset: the operator's own identity, if the chart value ambientCredentials allows it.
	// +optional
	Auth *AWSAuth `json:"auth,omitempty"`
}

// KeySpec is embedded by every store Kind of AWS: how keys become the names that AWS knows.
type KeySpec struct {
	// Prefix of every key that is not an ARN. It is removed from the keys that find returns.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix,omitempty"`
}

// SessionTagsPolicy defines which session tags the operator adds.
type SessionTagsPolicy string

// The policies for session tags; unset means SessionTagsNone.
const (
	SessionTagsNone   SessionTagsPolicy = "None"
	SessionTagsSimple SessionTagsPolicy = "Simple"
)

// SessionTag is a tag of an STS session.
type SessionTag struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().startsWith('direct-secrets.io/')",message="keys of sessionTags must not begin with direct-secrets.io/; use sessionTagsPolicy"
	Key string `json:"key"`
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}

// AWSAuth sets the credentials for AWS.
//
// +kubebuilder:validation:XValidation:rule="[has(self.secretRef), has(self.serviceAccountRef), has(self.operatorServiceAccount)].exists_one(x, x)",message="set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"
type AWSAuth struct {
	// A static access key.
	// +optional
	SecretRef *AWSSecretRef `json:"secretRef,omitempty"`

	// A ServiceAccount that the role trusts (IAM roles for service accounts). Default audience of its token:
	// sts.amazonaws.com.
	// +optional
	ServiceAccountRef *common.ServiceAccountSelector `json:"serviceAccountRef,omitempty"`

	// The operator's own ServiceAccount, which the role trusts with the audience here, such as sts.amazonaws.com. Only
	// for cluster Kinds, if the chart value ambientCredentials allows it.
	// +optional
	OperatorServiceAccount *common.OperatorServiceAccount `json:"operatorServiceAccount,omitempty"`
}

// ByToken reports whether the token of a ServiceAccount assumes the first role.
func (a *AWSAuth) ByToken() bool {
	return a != nil && (a.ServiceAccountRef != nil || a.OperatorServiceAccount != nil)
}

// AWSSecretRef names the parts of a static access key.
type AWSSecretRef struct {
	// Key of a Secret that holds the access key id.
	AccessKeyIDSecretRef common.SecretKeySelector `json:"accessKeyIDSecretRef"`

	// Key of a Secret that holds the secret access key.
	SecretAccessKeySecretRef common.SecretKeySelector `json:"secretAccessKeySecretRef"`

	// Key of a Secret that holds the session token. Required for a temporary access key.
	// +optional
	SessionTokenSecretRef *common.SecretKeySelector `json:"sessionTokenSecretRef,omitempty"`
}
