// Command provider-gcp keeps Secrets in step with Google Secret Manager.
package main

import (
	"os"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/secretmanager"
)

func main() { os.Exit(provider().Main()) }

func provider(opts ...operator.Option) *operator.Operator {
	opts = append(opts, operator.WithScheme(v1alpha1.AddToScheme))
	for _, k := range (secretmanager.Provider{}).Kinds() {
		opts = append(opts, operator.WithStore(k))
	}
	return operator.New("provider-gcp", v1alpha1.Group, opts...)
}
