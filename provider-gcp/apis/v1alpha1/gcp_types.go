package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPSpec describes the project of the secrets, and how to log in.
type GCPSpec struct {
	common.RetrySpec `json:",inline"`

	// ID or number of the Google Cloud project that holds the secrets.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$`
	ProjectID string `json:"projectID"`

	// Location of regional secrets, for example europe-west3. Unset: global secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$`
	Location string `json:"location,omitempty"`

	// URL of the service, if it is not the public endpoint of Google, for example a Private Service Connect endpoint.
	// It must use https, except on the operator's own host (127.0.0.1, localhost), for an emulator; logins then use
	// that host, too.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^https?://[^/]')",message="endpoint must be a URL, such as https://secretmanager.googleapis.com"
	Endpoint string `json:"endpoint,omitempty"`

	// Credentials for Google. Unset: the operator's own identity, if the chart value ambientCredentials allows it.
	// +optional
	Auth *GCPAuth `json:"auth,omitempty"`
}

// GCPAuth sets the credentials for Google.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.workloadIdentity)",message="set either secretRef or workloadIdentity"
type GCPAuth struct {
	// The key of a service account.
	// +optional
	SecretRef *GCPSecretRef `json:"secretRef,omitempty"`

	// A ServiceAccount whose token is exchanged for a token of Google.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`
}

// GCPSecretRef names the key of a service account.
type GCPSecretRef struct {
	// Key of a Secret that holds the JSON key file of the service account.
	SecretAccessKeySecretRef common.SecretKeySelector `json:"secretAccessKeySecretRef"`
}

// EmailSource defines where the email of a Google service account is read if the store does not name it.
//
// +kubebuilder:validation:Enum="";Annotation
type EmailSource string

// EmailFromAnnotation reads the email from the annotation of the ServiceAccount.
const EmailFromAnnotation EmailSource = "Annotation"

// WorkloadIdentity is a ServiceAccount that a workload identity pool of Google trusts.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceAccountRef) != has(self.operatorServiceAccount)",message="set exactly one of serviceAccountRef and operatorServiceAccount"
// +kubebuilder:validation:XValidation:rule="!has(self.operatorServiceAccount) || !has(self.serviceAccountEmailFrom) || size(self.serviceAccountEmailFrom) == 0",message="serviceAccountEmailFrom needs serviceAccountRef"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountEmail) || size(self.serviceAccountEmail) == 0 || !has(self.serviceAccountEmailFrom) || size(self.serviceAccountEmailFrom) == 0",message="set either serviceAccountEmail or serviceAccountEmailFrom"
type WorkloadIdentity struct {
	// The ServiceAccount. Default audience of its token: the audience below; for a GKE cluster, the name of its pool.
	// +optional
	ServiceAccountRef *common.ServiceAccountSelector `json:"serviceAccountRef,omitempty"`

	// The operator's own ServiceAccount. The audience here is the one of its token, which the provider must accept: the
	// audience below or, for a GKE cluster, the name of its pool. Only for cluster Kinds, if the chart value
	// ambientCredentials allows it.
	// +optional
	OperatorServiceAccount *common.OperatorServiceAccount `json:"operatorServiceAccount,omitempty"`

	// The provider of the pool:
	// //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER,
	// or for a GKE cluster
	// identitynamespace:PROJECT.svc.id.goog:https://container.googleapis.com/v1/projects/PROJECT/locations/LOCATION/clusters/CLUSTER.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(//iam\.googleapis\.com/|identitynamespace:)[A-Za-z0-9._:/-]+$`
	Audience string `json:"audience"`

	// Email of a Google service account to impersonate; the ServiceAccount needs permission for it. Unset, and without
	// serviceAccountEmailFrom: the permissions are granted to the ServiceAccount itself.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9._-]+@[A-Za-z0-9.-]+)?$`
	ServiceAccountEmail string `json:"serviceAccountEmail,omitempty"`

	// Annotation: impersonate the Google service account that the annotation iam.gke.io/gcp-service-account of the
	// ServiceAccount names.
	// +optional
	ServiceAccountEmailFrom EmailSource `json:"serviceAccountEmailFrom,omitempty"`
}
