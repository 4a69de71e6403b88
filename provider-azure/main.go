// Command provider-azure keeps Secrets in sync with Azure Key Vault, and generates logins for Azure Container Registry.
package main

import (
	"os"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/provider-azure/acrtoken"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
	"github.com/direct-secrets/direct-secrets/provider-azure/keyvault"
)

func main() { os.Exit(newOperator().Main()) }

func newOperator(opts ...operator.Option) *operator.Operator {
	return operatorOf(azureconfig.Network{}, opts...)
}

// operatorOf returns an operator that reaches Azure by a network.
func operatorOf(n azureconfig.Network, opts ...operator.Option) *operator.Operator {
	opts = append(opts, operator.WithScheme(v1alpha1.AddToScheme))
	for _, k := range slices.Concat(keyvault.Provider{Network: n}.Kinds(), acrtoken.Provider{Network: n}.Kinds()) {
		opts = append(opts, operator.WithStore(k))
	}
	return operator.New("provider-azure", v1alpha1.Group, opts...)
}
