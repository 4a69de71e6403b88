// Package rawuses attempts to use what counts for no tenant. The linter must refuse each line that says so; see hack/rawuses.sh.
package rawuses

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Call requests an address of a tenant.
func Call(address string) (*http.Response, error) {
	return http.Get(address) // refused: call
}

// Doer makes a client without the transport of a store.
func Doer() any {
	return &http.Client{} // refused: call
}

// Pages makes a client whose pages would not count.
func Pages() *sts.Client {
	return sts.NewFromConfig(aws.Config{}) // refused: page
}

// List lists at the API server.
func List(ctx context.Context, live client.Reader, into client.ObjectList) error {
	return live.List(ctx, into) // refused: list
}

// Own makes a client of its own.
func Own(config *rest.Config) (client.Client, error) {
	return client.New(config, client.Options{}) // refused: list
}

// Key takes a processor for seconds.
func Key() (*rsa.PrivateKey, error) {
	return rsa.GenerateKey(rand.Reader, 4096) // refused: heavy
}

// Pattern compiles an expression of any size.
func Pattern(of string) (*regexp.Regexp, error) {
	return regexp.Compile(of) // refused: heavy
}
