package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// VaultAuth selects a method to log in.
//
// +kubebuilder:validation:XValidation:rule="[has(self.tokenSecretRef), has(self.appRole), has(self.kubernetes), has(self.jwt), has(self.userPass), has(self.ldap), has(self.cert), has(self.iam), has(self.gcp)].exists_one(x, x)",message="set exactly one of tokenSecretRef, appRole, kubernetes, jwt, userPass, ldap, cert, iam and gcp"
type VaultAuth struct {
	// Namespace of the auth method, if it is not the namespace of the secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Namespace string `json:"namespace,omitempty"`

	// Key of a Secret that holds a token. The operator renews it while that is possible.
	// +optional
	TokenSecretRef *common.SecretKeySelector `json:"tokenSecretRef,omitempty"`

	// Log in with a role ID and a secret ID.
	// +optional
	AppRole *AppRoleAuth `json:"appRole,omitempty"`

	// Log in with the token of a ServiceAccount, which Vault verifies at the Kubernetes API.
	// +optional
	Kubernetes *KubernetesAuth `json:"kubernetes,omitempty"`

	// Log in with a JSON web token.
	// +optional
	JWT *JWTAuth `json:"jwt,omitempty"`

	// Log in with a user name and password of Vault.
	// +optional
	UserPass *PasswordAuth `json:"userPass,omitempty"`

	// Log in with a user name and password of a directory.
	// +optional
	LDAP *PasswordAuth `json:"ldap,omitempty"`

	// Log in with a client certificate.
	// +optional
	Cert *CertAuth `json:"cert,omitempty"`

	// Log in with an AWS identity.
	// +optional
	IAM *IAMAuth `json:"iam,omitempty"`

	// Log in with a service account of Google Cloud.
	// +optional
	GCP *GCPAuth `json:"gcp,omitempty"`
}

// AppRoleAuth logs in with a role id and a secret id.
//
// +kubebuilder:validation:XValidation:rule="(has(self.roleId) && size(self.roleId) > 0) != has(self.roleRef)",message="set either roleId or roleRef"
type AppRoleAuth struct {
	// Mount path of the auth method. Default: approle.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// The role ID.
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
// +kubebuilder:validation:XValidation:rule="[has(self.serviceAccountRef), has(self.secretRef), has(self.operatorServiceAccount)].exists_one(x, x)",message="set exactly one of serviceAccountRef, secretRef and operatorServiceAccount"
type KubernetesAuth struct {
	// Mount path of the auth method. Default: kubernetes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"mountPath,omitempty"`

	// Role of the auth method.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"role"`

	// A ServiceAccount whose token is sent. Default audience: that of the Kubernetes API, which then also accepts the
	// token from Vault. Better set an audience on the role, and name it here.
	// +optional
	ServiceAccountRef *common.ServiceAccountSelector `json:"serviceAccountRef,omitempty"`

	// Key of a Secret that holds the token of a ServiceAccount.
	// +optional
	SecretRef *common.SecretKeySelector `json:"secretRef,omitempty"`

	// The operator's own ServiceAccount. Only for cluster Kinds, if the chart value ambientCredentials allows it.
	// +optional
	OperatorServiceAccount *common.OperatorServiceAccount `json:"operatorServiceAccount,omitempty"`
}

// JWTAuth logs in with a JSON web token.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kubernetesServiceAccountToken)",message="kubernetesServiceAccountToken.serviceAccountRef is not supported: use serviceAccountRef"
// +kubebuilder:validation:XValidation:rule="[has(self.secretRef), has(self.serviceAccountRef), has(self.operatorServiceAccount)].exists_one(x, x) || has(self.kubernetesServiceAccountToken)",message="set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"
type JWTAuth struct {
	// Mount path of the auth method. Default: jwt.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// Role of the auth method. Default: the default role of the auth method.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"role,omitempty"`

	// Key of a Secret that holds the JWT.
	// +optional
	SecretRef *common.SecretKeySelector `json:"secretRef,omitempty"`

	// A ServiceAccount whose token is the JWT. Default audience: vault.
	// +optional
	ServiceAccountRef *common.ServiceAccountSelector `json:"serviceAccountRef,omitempty"`

	// The operator's own ServiceAccount. Only for cluster Kinds, if the chart value ambientCredentials allows it.
	// +optional
	OperatorServiceAccount *common.OperatorServiceAccount `json:"operatorServiceAccount,omitempty"`

	// Not supported: use serviceAccountRef.
	// +optional
	KubernetesServiceAccountToken *common.Renamed `json:"kubernetesServiceAccountToken,omitempty"`
}

// PasswordAuth logs in with a name and a password.
type PasswordAuth struct {
	// Mount path of the auth method. Default: userpass, or ldap.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// The user name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username"`

	// Key of a Secret that holds the password.
	SecretRef common.SecretKeySelector `json:"secretRef"`
}

// CertAuth logs in with a client certificate.
type CertAuth struct {
	// Mount path of the auth method. Default: cert.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// Role of the auth method. Default: any role that matches the certificate.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"vaultRole,omitempty"`

	// Key of a Secret that holds the certificate in PEM form.
	ClientCert common.SecretKeySelector `json:"clientCert"`

	// Key of a Secret that holds the private key in PEM form.
	SecretRef common.SecretKeySelector `json:"secretRef"`
}

// IAMAuth logs in with an AWS identity: Vault sends a signed request to STS.
//
// +kubebuilder:validation:XValidation:rule="!has(self.jwt)",message="jwt.serviceAccountRef is not supported: use serviceAccountRef"
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.serviceAccountRef) || has(self.jwt)",message="set either secretRef or serviceAccountRef"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountRef) || (has(self.role) && size(self.role) > 0)",message="serviceAccountRef needs a role that its token can assume"
// +kubebuilder:validation:XValidation:rule="!has(self.externalID) || size(self.externalID) == 0 || (has(self.role) && size(self.role) > 0 && !has(self.serviceAccountRef))",message="externalID needs secretRef and a role that is assumed with it"
type IAMAuth struct {
	// Mount path of the auth method. Default: aws.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// AWS region of STS. Default: us-east-1.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]*$`
	Region string `json:"region,omitempty"`

	// ARN of the IAM role to assume.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^arn:[a-z0-9-]+:iam::[0-9]{12}:role/.+$')",message="role must be the ARN of an IAM role, such as arn:aws:iam::111122223333:role/name"
	AWSIAMRole string `json:"role,omitempty"`

	// Role of the auth method.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"vaultRole"`

	// External ID that the trust policy of the role requires.
	// +optional
	// +kubebuilder:validation:MaxLength=1224
	ExternalID string `json:"externalID,omitempty"`

	// Value of the header X-Vault-AWS-IAM-Server-ID, if the auth method requires it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ServerID string `json:"vaultAwsIamServerID,omitempty"`

	// A static access key.
	// +optional
	SecretRef *IAMSecretRef `json:"secretRef,omitempty"`

	// A ServiceAccount that the role trusts (IAM roles for service accounts). Default audience of its token:
	// sts.amazonaws.com.
	// +optional
	ServiceAccountRef *common.ServiceAccountSelector `json:"serviceAccountRef,omitempty"`

	// Not supported: use serviceAccountRef.
	// +optional
	JWT *common.Renamed `json:"jwt,omitempty"`
}

// IAMSecretRef names the parts of a static access key.
type IAMSecretRef struct {
	// Key of a Secret that holds the access key id.
	AccessKeyIDSecretRef common.SecretKeySelector `json:"accessKeyIDSecretRef"`

	// Key of a Secret that holds the secret access key.
	SecretAccessKeySecretRef common.SecretKeySelector `json:"secretAccessKeySecretRef"`

	// Key of a Secret that holds the session token. Required for a temporary access key.
	// +optional
	SessionTokenSecretRef *common.SecretKeySelector `json:"sessionTokenSecretRef,omitempty"`
}

// GCPAuth logs in with a service account of Google Cloud: the operator signs a token with the key of the account, and Vault
// verifies it with the public keys that Google has for the account.
type GCPAuth struct {
	// Mount path of the auth method. Default: gcp.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// Role of the auth method. Its type must be iam.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"role"`

	// The key of the service account.
	SecretRef GCPSecretRef `json:"secretRef"`
}

// GCPSecretRef names the key of a service account.
type GCPSecretRef struct {
	// Key of a Secret that holds the key file of the service account, in the JSON format of Google.
	SecretAccessKeySecretRef common.SecretKeySelector `json:"secretAccessKeySecretRef"`
}
