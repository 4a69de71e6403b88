// Command provider-kubernetes keeps Secrets in sync with KubernetesSecrets.
package main

import (
	"os"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/client"
)

func main() { os.Exit(newOperator().Main()) }

// newOperator returns the operator of this module. Tests add options.
func newOperator(opts ...operator.Option) *operator.Operator {
	return operator.New("provider-kubernetes", v1alpha1.Group, append(opts,
		operator.WithScheme(v1alpha1.AddToScheme),
		operator.WithStore(provider.KindOf(client.Connect)),
		operator.WithStore(provider.ClusterKindOf(client.ConnectCluster)),
	)...)
}
