package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPSpec says where the secrets of a project are, and as whom they are read.
type GCPSpec struct {
	common.RetrySpec `json:",inline"`

	// Id (or number) of the Google Cloud project that holds the secrets.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$`
	ProjectID string `json:"projectID"`

	// Location of regional secrets, for example europe-west3. Unset: global secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$`
	Location string `json:"location,omitempty"`

	// URL of the service, instead of Google's; for example that of a Private Service Connect endpoint.
	// It must begin with https, except on the operator's own host (127.0.0.1, localhost), where an
	// emulator may be; logins then go to that host, too.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint,omitempty"`

	// Who calls Google. Unset: the operator's own identity, if it may be used.
	// +optional
	Auth *GCPAuth `json:"auth,omitempty"`
}

// GCPAuth says who calls Google.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.workloadIdentity)",message="set either secretRef or workloadIdentity"
type GCPAuth struct {
	// The key of a service account.
	// +optional
	SecretRef *GCPSecretRef `json:"secretRef,omitempty"`

	// A ServiceAccount whose token Google exchanges for one of its own.
	// +optional
	WorkloadIdentity *WorkloadIdentity `json:"workloadIdentity,omitempty"`
}

// GCPSecretRef names the key of a service account.
type GCPSecretRef struct {
	// Key of a Secret that holds the service account's key, as the JSON that Google hands out.
	SecretAccessKeySecretRef common.SecretKeySelector `json:"secretAccessKeySecretRef"`
}

// WorkloadIdentity is a ServiceAccount that a workload identity pool of Google trusts.
type WorkloadIdentity struct {
	// The ServiceAccount. Default audience of its token: the audience below; that of a GKE cluster is
	// the name of its pool.
	ServiceAccountRef common.ServiceAccountSelector `json:"serviceAccountRef"`

	// The provider of the pool:
	// //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER,
	// or for a GKE cluster
	// identitynamespace:PROJECT.svc.id.goog:https://container.googleapis.com/v1/projects/PROJECT/locations/LOCATION/clusters/CLUSTER.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(//iam\.googleapis\.com/|identitynamespace:)[A-Za-z0-9._:/-]+$`
	Audience string `json:"audience"`

	// Email of a Google service account to work as, which the ServiceAccount must be allowed to
	// impersonate. Unset: the ServiceAccount itself is granted what it needs.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9._-]+@[A-Za-z0-9.-]+)?$`
	ServiceAccountEmail string `json:"serviceAccountEmail,omitempty"`
}
