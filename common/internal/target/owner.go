package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// OwnerOf is the reference from what an ExternalSecret owns to it, shaped as cert-manager's to a Certificate.
func OwnerOf(es *v1alpha1.ExternalSecret) metav1.OwnerReference {
	yes, no := true, false
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ExternalSecret",
		Name: es.Name, UID: es.UID, Controller: &yes, BlockOwnerDeletion: &no,
	}
}
