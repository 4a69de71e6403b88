package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// OwnerOf returns the ownerReference to an ExternalSecret. It has the same form as the reference of cert-manager to a
// Certificate.
func OwnerOf(es *v1alpha1.ExternalSecret) metav1.OwnerReference {
	yes, no := true, false
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ExternalSecret",
		Name: es.Name, UID: es.UID, Controller: &yes, BlockOwnerDeletion: &no,
	}
}
