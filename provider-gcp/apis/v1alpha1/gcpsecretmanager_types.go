package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPSecretManager is a store: Google Secret Manager in one project, used as one identity.
//
// +direct-secrets:store:shortName=gcpsm,get=GCP:GCPSpec
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectID`
// +kubebuilder:printcolumn:name="Location",type=string,priority=1,JSONPath=`.spec.location`

// GCPSecretManagerSpec describes where the secrets are, and how to log in.
type GCPSecretManagerSpec struct {
	common.StoreSpec `json:",inline"`
	GCPSpec          `json:",inline"`
}
