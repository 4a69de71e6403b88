// Command generator-password generates passwords and stores them in Secrets.
package main

import (
	"os"

	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-password/password"
)

func main() { os.Exit(newOperator().Main()) }

func newOperator(opts ...operator.Option) *operator.Operator {
	opts = append(opts, operator.WithScheme(v1alpha1.AddToScheme))
	for _, kind := range password.Kinds() {
		opts = append(opts, operator.WithStore(kind))
	}
	return operator.New("generator-password", v1alpha1.Group, opts...)
}
