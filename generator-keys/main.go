// Command generator-keys generates keys, logins and certificates, and stores them in Secrets.
package main

import (
	"os"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-keys/basicauth"
	"github.com/direct-secrets/direct-secrets/generator-keys/sshkey"
	"github.com/direct-secrets/direct-secrets/generator-keys/tlscertificate"
	"github.com/direct-secrets/direct-secrets/generator-keys/uuid"
)

func main() { os.Exit(newOperator().Main()) }

// newOperator returns the operator of this module. Tests add options.
func newOperator(opts ...operator.Option) *operator.Operator {
	opts = append(opts, operator.WithScheme(v1alpha1.AddToScheme))
	for _, kind := range slices.Concat(sshkey.Kinds(), uuid.Kinds(), basicauth.Kinds(), tlscertificate.Kinds()) {
		opts = append(opts, operator.WithStore(kind))
	}
	return operator.New("generator-keys", v1alpha1.Group, opts...)
}
