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

// nobody are Credentials that give nothing.
type nobody struct{ plain bool }

func (nobody) SecretValue(context.Context, common.SecretKeySelector) ([]byte, error) {
	return nil, errBoom
}

func (nobody) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errBoom
}

func (nobody) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	return "", errBoom
}

func (nobody) Ambient() error           { return errBoom }
func (n nobody) PlainHTTPAllowed() bool { return n.plain }

var _ provider.PlainHTTPAllower = nobody{}

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

// keyFile is a good key, but for what is changed.
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
