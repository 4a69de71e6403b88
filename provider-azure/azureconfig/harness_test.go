package azureconfig

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"software.sslmate.com/src/go-pkcs12"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

const (
	secret = "hunter2"
	tenant = emulator.DefaultTenant
	public = "https://login.microsoftonline.com"
	reader = "reader"
)

// creds are provider.Credentials from a map.
type creds struct {
	values      map[string][]byte // by key
	token       string
	ambient     bool
	annotations map[string]string // of the ServiceAccount
}

func (c creds) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	if v := c.values[sel.Key]; len(v) > 0 {
		return v, nil
	}
	return nil, provider.NewError(provider.Invalid, "auth: Secret shop/azure has no value under key %q", sel.Key)
}

func (creds) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errors.New("no ConfigMap")
}

func (c creds) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	if c.token == "" {
		return "", provider.NewError(provider.Denied, "auth: no token")
	}
	return c.token, nil
}

func (c creds) ServiceAccountAnnotations(context.Context, common.ServiceAccountSelector) (map[string]string, error) {
	if c.annotations == nil {
		return nil, provider.NewError(provider.Invalid, "auth: ServiceAccount shop/shop does not exist")
	}
	return c.annotations, nil
}

func (c creds) Ambient() error {
	if c.ambient {
		return nil
	}
	return provider.NewError(provider.Invalid, "auth: the operator's own identity is not for stores")
}

// diverted returns a Network whose requests all reach an emulator, and the hosts that they named.
func diverted(srv *emulator.Server) (n Network, hosts func() []string) {
	var mu sync.Mutex
	var all []string
	n.Wrap = srv.Divert(func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r.URL.Scheme+"://"+r.URL.Host)
	})
	return n, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func start(t *testing.T, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(append([]emulator.Option{emulator.WithAuthority(public)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // The test does not depend on a clean stop.
	srv.SetApp(reader, emulator.App{Secrets: []string{secret}})
	if _, err := srv.Put("db", []byte("x")); err != nil {
		t.Fatal(err)
	}
	return srv
}

func client(id string) v1alpha1.Client { return v1alpha1.Client{ClientID: id} }

// specOf returns the spec of a vault of the public cloud.
func specOf(auth v1alpha1.AzureAuth) *v1alpha1.AzureSpec {
	none := int32(0)
	return &v1alpha1.AzureSpec{
		RetrySpec: common.RetrySpec{RetrySettings: &common.RetrySettings{MaxRetries: &none, RetryInterval: "1ms"}},
		VaultURL:  "https://shop.vault.azure.net", AzureLogin: v1alpha1.AzureLogin{TenantID: tenant, Auth: auth},
	}
}

func bySecret() v1alpha1.AzureAuth {
	return v1alpha1.AzureAuth{ClientSecret: &v1alpha1.ClientSecret{Client: client(reader), ClientSecretRef: common.SecretKeySelector{Name: "azure", Key: "secret"}}}
}

func byCertificate() v1alpha1.AzureAuth {
	return v1alpha1.AzureAuth{ClientCertificate: &v1alpha1.ClientCertificate{Client: client(reader), ClientCertificateRef: common.SecretKeySelector{Name: "azure", Key: "cert"}}}
}

func byToken() v1alpha1.AzureAuth {
	return v1alpha1.AzureAuth{ServiceAccountRef: &v1alpha1.FederatedServiceAccount{ServiceAccountSelector: common.ServiceAccountSelector{Name: "shop"}, ClientID: reader}}
}

func byMachine(id string) v1alpha1.AzureAuth {
	return v1alpha1.AzureAuth{ManagedIdentity: &v1alpha1.ManagedIdentity{ClientID: id}}
}

// read loads a config, and reads a secret with it.
func read(t *testing.T, n Network, spec *v1alpha1.AzureSpec, from creds) error {
	t.Helper()
	c, err := n.Load(t.Context(), spec, from)
	if err != nil {
		return err
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	return get(t, c)
}

// get reads a secret.
func get(t *testing.T, c *Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	api, err := azsecrets.NewClient(c.URL, c, &azsecrets.ClientOptions{ClientOptions: c.Options, DisableChallengeResourceVerification: c.Emulated})
	if err != nil {
		t.Fatal(err)
	}
	if err = c.Ready(ctx); err == nil {
		_, err = api.GetSecret(ctx, "db", "", nil)
	}
	if err != nil {
		return Explain(ctx, err, "db", ReadSecret)
	}
	return nil
}

// fails checks the class of an error, and a part of its message; an empty class means no error. No message contains a secret.
func fails(t *testing.T, reason string, err error, class provider.Class, part string) {
	t.Helper()
	if class == "" {
		if err != nil {
			t.Errorf("%s\nerror %v", reason, err)
		}
		return
	}
	if err == nil || provider.ClassOf(err) != class || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), secret) {
		t.Errorf("%s\nerror %q (%s), want one of class %s with %q", reason, err, provider.ClassOf(err), class, part)
	}
}

// certificate returns a certificate, and its PEM form with the private key.
func certificate(t *testing.T) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "reader"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
}

// archive returns a certificate and its private key as PKCS#12.
func archive(t *testing.T, with *pkcs12.Encoder, form []byte, password string) []byte {
	t.Helper()
	chain, key, err := azidentity.ParseCertificates(form, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := with.Encode(key, chain[0], nil, password)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// laborious returns an archive whose MAC takes years to compute.
func laborious(t *testing.T, archive []byte) []byte {
	t.Helper()
	var file struct {
		Version int
		Content asn1.RawValue
		MAC     struct {
			MAC        asn1.RawValue
			Salt       []byte
			Iterations int
		}
	}
	if _, err := asn1.Unmarshal(archive, &file); err != nil {
		t.Fatal(err)
	}
	file.MAC.Iterations = math.MaxInt
	raw, err := asn1.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
