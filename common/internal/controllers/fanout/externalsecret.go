package fanout

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

const clusterExternalSecret = "ClusterExternalSecret"

// ExternalSecrets are made by ClusterExternalSecrets.
func ExternalSecrets() Kind {
	return Kind{
		Name:       "clusterexternalsecret",
		Parent:     func() client.Object { return &v1alpha1.ClusterExternalSecret{} },
		Parents:    func() client.ObjectList { return &v1alpha1.ClusterExternalSecretList{} },
		Child:      func() client.Object { return &v1alpha1.ExternalSecret{} },
		Children:   func() client.ObjectList { return &v1alpha1.ExternalSecretList{} },
		ParentKind: clusterExternalSecret,
		ChildKind:  "ExternalSecret",
		SpecField:  "externalSecretSpec",
		Spec:       func(child client.Object) any { return &child.(*v1alpha1.ExternalSecret).Spec },
		Want: func(o client.Object) Want {
			p := o.(*v1alpha1.ClusterExternalSecret)
			return Want{
				Name: p.Spec.ExternalSecretName, Metadata: p.Spec.ExternalSecretMetadata, MetadataField: "externalSecretMetadata",
				Where: p.Spec.NamespaceChoice, Spec: &p.Spec.ExternalSecretSpec,
				Status: &p.Status,
			}
		},
	}
}

// Reduce gives a reduced copy of an ExternalSecret that a ClusterExternalSecret made what the fan-out needs to see
// whether it is as wanted. That is little, and reducing twice changes nothing.
func Reduce(from, to *v1alpha1.ExternalSecret) {
	reduce(from, to, clusterExternalSecret, &from.Spec)
}
