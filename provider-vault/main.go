// Command provider-vault keeps Secrets in sync with HashiCorp Vault and OpenBao, and generates credentials with
// them.
package main

import (
	"os"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/dynamic"
	"github.com/direct-secrets/direct-secrets/provider-vault/kv"
)

func main() { os.Exit(newOperator().Main()) }

func newOperator(opts ...operator.Option) *operator.Operator {
	opts = append(opts, operator.WithScheme(v1alpha1.AddToScheme))
	for _, kind := range slices.Concat(kv.Kinds(), dynamic.Kinds()) {
		opts = append(opts, operator.WithStore(kind))
	}
	return operator.New("provider-vault", v1alpha1.Group, opts...)
}
