// Command provider-gcp keeps Secrets in sync with Google Secret Manager, and generates access tokens of Google
// Cloud.
package main

import (
	"os"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/accesstoken"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/events"
	"github.com/direct-secrets/direct-secrets/provider-gcp/secretmanager"
)

func main() { os.Exit(newOperator().Main()) }

func newOperator(opts ...operator.Option) *operator.Operator {
	opts = append(opts, operator.WithScheme(v1alpha1.AddToScheme))
	for _, k := range slices.Concat(secretmanager.Provider{}.Kinds(), accesstoken.Provider{}.Kinds(), events.Provider{}.Kinds()) {
		opts = append(opts, operator.WithStore(k))
	}
	return operator.New("provider-gcp", v1alpha1.Group, opts...)
}
