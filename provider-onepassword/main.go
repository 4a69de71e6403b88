// Command provider-onepassword keeps Secrets in sync with OnePasswordConnect.
package main

import (
	"os"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/client"
)

func main() { os.Exit(newOperator().Main()) }

// newOperator returns the operator of this module. Tests add options.
func newOperator(opts ...operator.Option) *operator.Operator {
	return operator.New("provider-onepassword", v1alpha1.Group, append(opts,
		operator.WithScheme(v1alpha1.AddToScheme),
		operator.WithStore(provider.KindOf(client.Connect)),
		operator.WithStore(provider.ClusterKindOf(client.ConnectCluster)),
	)...)
}
