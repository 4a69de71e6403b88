package fanout

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// PushSecrets are made by ClusterPushSecrets.
func PushSecrets() Kind {
	return Kind{
		Name:       "clusterpushsecret",
		Parent:     func() client.Object { return &v1alpha1.ClusterPushSecret{} },
		Parents:    func() client.ObjectList { return &v1alpha1.ClusterPushSecretList{} },
		Child:      func() client.Object { return &v1alpha1.PushSecret{} },
		Children:   func() client.ObjectList { return &v1alpha1.PushSecretList{} },
		ParentKind: "ClusterPushSecret",
		ChildKind:  "PushSecret",
		SpecField:  "pushSecretSpec",
		Spec:       func(child client.Object) any { return &child.(*v1alpha1.PushSecret).Spec },
		Want: func(o client.Object) Want {
			p := o.(*v1alpha1.ClusterPushSecret)
			return Want{
				Name: p.Spec.PushSecretName, Metadata: p.Spec.PushSecretMetadata, MetadataField: "pushSecretMetadata",
				Where: p.Spec.NamespaceChoice, Spec: &p.Spec.PushSecretSpec,
				Status: &p.Status,
			}
		},
	}
}
