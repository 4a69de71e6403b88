package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// VaultAuth says how to log in.
//
// +kubebuilder:validation:XValidation:rule="[has(self.tokenSecretRef), has(self.appRole), has(self.kubernetes), has(self.jwt), has(self.userPass), has(self.ldap), has(self.cert), has(self.iam)].exists_one(x, x)",message="set exactly one of tokenSecretRef, appRole, kubernetes, jwt, userPass, ldap, cert and iam"
type VaultAuth struct {
	// Namespace in which the auth method is, if it is another one than that of the secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Namespace string `json:"namespace,omitempty"`

	// Key of a Secret that holds a token. It is renewed while it can be.
	// +optional
	TokenSecretRef *common.SecretKeySelector `json:"tokenSecretRef,omitempty"`

	// A role id and a secret id.
	// +optional
	AppRole *AppRoleAuth `json:"appRole,omitempty"`

	// The token of a ServiceAccount, which the server has the Kubernetes API review.
	// +optional
	Kubernetes *KubernetesAuth `json:"kubernetes,omitempty"`

	// A JSON web token.
	// +optional
	JWT *JWTAuth `json:"jwt,omitempty"`

	// A name and password that the server knows.
	// +optional
	UserPass *PasswordAuth `json:"userPass,omitempty"`

	// A name and password that a directory knows.
	// +optional
	LDAP *PasswordAuth `json:"ldap,omitempty"`

	// A client certificate.
	// +optional
	Cert *CertAuth `json:"cert,omitempty"`

	// An identity of AWS.
	// +optional
	IAM *IAMAuth `json:"iam,omitempty"`
}

// AppRoleAuth logs in with a role id and a secret id.
//
// +kubebuilder:validation:XValidation:rule="(has(self.roleId) && size(self.roleId) > 0) != has(self.roleRef)",message="set either roleId or roleRef"
type AppRoleAuth struct {
	// Where the auth method is mounted. Default: approle.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// The role id.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	RoleID string `json:"roleId,omitempty"`

	// Key of a Secret that holds the role id.
	// +optional
	RoleRef *common.SecretKeySelector `json:"roleRef,omitempty"`

	// Key of a Secret that holds the secret id.
	SecretRef common.SecretKeySelector `json:"secretRef"`
}

// KubernetesAuth logs in with the token of a ServiceAccount.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceAccountRef) != has(self.secretRef)",message="set either serviceAccountRef or secretRef"
type KubernetesAuth struct {
	// Where the auth method is mounted. Default: kubernetes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"mountPath,omitempty"`

	// Role of the auth method.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"role"`

	// A ServiceAccount whose token is sent. Default audience: that of the Kubernetes API, which then
	// accepts the token from the server, too; better give the role an audience and name it here.
	// +optional
	ServiceAccountRef *common.ServiceAccountSelector `json:"serviceAccountRef,omitempty"`

	// Key of a Secret that holds the token of a ServiceAccount.
	// +optional
	SecretRef *common.SecretKeySelector `json:"secretRef,omitempty"`
}

// JWTAuth logs in with a JSON web token.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.kubernetesServiceAccountToken)",message="set either secretRef or kubernetesServiceAccountToken"
type JWTAuth struct {
	// Where the auth method is mounted. Default: jwt.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// Role of the auth method. Default: the one that the auth method has as its default.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"role,omitempty"`

	// Key of a Secret that holds the JWT.
	// +optional
	SecretRef *common.SecretKeySelector `json:"secretRef,omitempty"`

	// The token of a ServiceAccount as the JWT.
	// +optional
	KubernetesServiceAccountToken *ServiceAccountToken `json:"kubernetesServiceAccountToken,omitempty"`
}

// ServiceAccountToken is a token that is made for one login.
type ServiceAccountToken struct {
	// The ServiceAccount. Default audience: vault.
	ServiceAccountRef common.ServiceAccountSelector `json:"serviceAccountRef"`
}

// PasswordAuth logs in with a name and a password.
type PasswordAuth struct {
	// Where the auth method is mounted. Default: userpass, or ldap.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// The name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username"`

	// Key of a Secret that holds the password.
	SecretRef common.SecretKeySelector `json:"secretRef"`
}

// CertAuth logs in with a client certificate.
type CertAuth struct {
	// Where the auth method is mounted. Default: cert.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// Role of the auth method. Default: whichever matches the certificate.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"vaultRole,omitempty"`

	// Key of a Secret that holds the certificate in PEM form.
	ClientCert common.SecretKeySelector `json:"clientCert"`

	// Key of a Secret that holds its private key in PEM form.
	SecretRef common.SecretKeySelector `json:"secretRef"`
}

// IAMAuth logs in with an identity of AWS: a signed request that the server puts to STS.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.jwt)",message="set either secretRef or jwt"
// +kubebuilder:validation:XValidation:rule="!has(self.jwt) || (has(self.role) && size(self.role) > 0)",message="jwt needs a role that its token can assume"
// +kubebuilder:validation:XValidation:rule="!has(self.externalID) || size(self.externalID) == 0 || (has(self.role) && size(self.role) > 0 && !has(self.jwt))",message="externalID needs a role that is assumed with an access key"
type IAMAuth struct {
	// Where the auth method is mounted. Default: aws.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// AWS region of STS. Default: us-east-1.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]*$`
	Region string `json:"region,omitempty"`

	// ARN of the IAM role to log in as.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	AWSIAMRole string `json:"role,omitempty"`

	// Role of the auth method.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"vaultRole"`

	// External id that the trust policy of role asks for.
	// +optional
	// +kubebuilder:validation:MaxLength=1224
	ExternalID string `json:"externalID,omitempty"`

	// Value of the header X-Vault-AWS-IAM-Server-ID, if the auth method asks for it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ServerID string `json:"vaultAwsIamServerID,omitempty"`

	// A static access key.
	// +optional
	SecretRef *IAMSecretRef `json:"secretRef,omitempty"`

	// A ServiceAccount whose token role trusts (IAM roles for service accounts).
	// +optional
	JWT *IAMJWT `json:"jwt,omitempty"`
}

// IAMSecretRef names the parts of a static access key.
type IAMSecretRef struct {
	// Key of a Secret that holds the access key id.
	AccessKeyIDSecretRef common.SecretKeySelector `json:"accessKeyIDSecretRef"`

	// Key of a Secret that holds the secret access key.
	SecretAccessKeySecretRef common.SecretKeySelector `json:"secretAccessKeySecretRef"`

	// Key of a Secret that holds the session token, if the access key is a temporary one.
	// +optional
	SessionTokenSecretRef *common.SecretKeySelector `json:"sessionTokenSecretRef,omitempty"`
}

// IAMJWT names a ServiceAccount.
type IAMJWT struct {
	// The ServiceAccount. Default audience: sts.amazonaws.com.
	ServiceAccountRef common.ServiceAccountSelector `json:"serviceAccountRef"`
}
