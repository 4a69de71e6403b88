package gcpconfig

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const secret = "hunter2"

var errBoom = errors.New("boom " + secret)

// noCredentials is a provider.Credentials without any credentials.
type noCredentials struct{ plain bool }

func (noCredentials) SecretValue(context.Context, common.SecretKeySelector) ([]byte, error) {
	return nil, errBoom
}

func (noCredentials) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errBoom
}

func (noCredentials) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	return "", errBoom
}

func (noCredentials) Ambient() error           { return errBoom }
func (n noCredentials) PlainHTTPAllowed() bool { return n.plain }

var _ provider.PlainHTTPAllower = noCredentials{}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return newKey(minKeyBits) })

func newKey(bits int) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return k
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// keyFile returns a valid key file with some fields changed.
func keyFile(change map[string]string) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(rsaKey())
	if err != nil {
		panic(err)
	}
	f := map[string]string{
		"type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": pemOf("PRIVATE KEY", der), "token_uri": google.token, "universe_domain": "googleapis.com",
	}
	maps.Copy(f, change)
	b, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return b
}
