package session

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// A server holds the address and the settings for the requests of one store.
type server struct {
	config *api.Config
	// once is config without retries of requests that may have had their effect.
	once      *api.Config
	transport *http.Transport
	// plain says that the traffic is not encrypted.
	plain     bool
	header    http.Header
	namespace string
	// authNamespace is the namespace of the auth method.
	authNamespace string
}

func newServer(ctx context.Context, spec *v1alpha1.VaultServer, creds provider.Credentials) (*server, error) {
	plain, err := checkAddress(creds, spec)
	if err != nil {
		return nil, err
	}
	header, err := headersOf(spec)
	if err != nil {
		return nil, err
	}
	retries, err := provider.RetriesOf(spec.RetrySettings)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := tlsOf(ctx, spec, creds)
	if err != nil {
		return nil, err
	}
	s := &server{header: header, plain: plain, transport: provider.NewTransport(tlsConfig), namespace: spec.Namespace, authNamespace: spec.Namespace}
	if spec.Auth != nil && spec.Auth.Namespace != "" {
		s.authNamespace = spec.Auth.Namespace
	}
	config := func(t *http.Transport, timeout time.Duration, worth func(context.Context, *http.Response, error) (bool, error)) *api.Config {
		c := &api.Config{
			Address:          spec.Server,
			HttpClient:       newHTTPClient(trusting{t, authoritiesField(spec)}, timeout),
			DisableRedirects: true,
			ReadYourWrites:   spec.ReadYourWrites,
		}
		retry(c, retries, worth)
		return c
	}
	s.config = config(s.transport, attemptTimeout, worthRetrying)
	s.once = config(unrepeated(s.transport), onceTimeout, surelyNothing)
	_, err = s.client(s.config, "", "")
	return s, err
}

// client returns a client of the SDK with a namespace and a token. It is not cloned from another client,
// because a clone would follow redirects again.
func (s *server) client(config *api.Config, namespace, token string) (*api.Client, error) {
	forgetEnvironment()
	c, err := api.NewClient(config)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.server: is not a URL; write it as https://host:port")
	}
	c.SetHeaders(s.header.Clone())
	c.SetToken(token)
	c.ClearNamespace()
	if namespace != "" {
		c.SetNamespace(namespace)
	}
	c.SetWrappingLookupFunc(func(string, string) string { return "" })
	return c, nil
}

// place identifies a path on the server. The headers are part of it, because a proxy can route by them.
func (s *server) place(path string) string {
	u, err := url.Parse(s.config.Address)
	if err != nil {
		return s.config.Address + " " + path // checkAddress has rejected invalid addresses.
	}
	header := s.header.Clone()
	header.Del(api.HeaderInconsistent)
	var sent strings.Builder
	_ = header.Write(&sent) // Write sorts the headers, and returns no error for a Builder.
	if namespace := strings.Trim(s.namespace, "/"); namespace != "" {
		path = namespace + "/" + path
	}
	return provider.Address(u) + " " + path + " " + sent.String()
}

func (s *server) close() { s.transport.CloseIdleConnections() }

// environment names all variables that the SDK reads. It reads them whenever a client is created, which cannot
// be turned off. Some of them even make it fail if they are wrong.
var environment = []string{
	api.EnvVaultAddress, api.EnvVaultAgentAddr, api.EnvVaultCACert, api.EnvVaultCACertBytes, api.EnvVaultCAPath,
	api.EnvVaultClientCert, api.EnvVaultClientKey, api.EnvVaultClientTimeout, api.EnvVaultHeaders, api.EnvVaultSRVLookup,
	api.EnvVaultSkipVerify, api.EnvVaultNamespace, api.EnvVaultTLSServerName, api.EnvVaultWrapTTL, api.EnvVaultMaxRetries,
	api.EnvVaultToken, api.EnvVaultMFA, api.EnvRateLimit, api.EnvHTTPProxy, api.EnvVaultProxyAddr, api.EnvVaultDisableRedirects,
}

// forgetEnvironment removes these variables from the process, which does not need them otherwise. A setting
// that is missing in the store must not come from the operator's environment.
func forgetEnvironment() {
	for _, name := range environment {
		if _, set := os.LookupEnv(name); set {
			_ = os.Unsetenv(name) // It returns an error only for malformed names.
		}
	}
}

// checkAddress rejects addresses that cannot be used, or must not. It reports whether the address is http:// on another host.
func checkAddress(creds provider.Credentials, spec *v1alpha1.VaultServer) (plain bool, err error) {
	if spec.Server == "" {
		return false, provider.NewError(provider.Invalid, "spec.server: not set; write it as https://host:port")
	}
	u, plain, err := provider.ParseServer(creds, "spec.server", spec.Server, spec.AllowPlainHTTP)
	if err == nil && strings.Contains(u.Path, "..") {
		err = provider.NewError(provider.Invalid, "spec.server: the path must not contain \"..\"; write it as https://host:port")
	}
	return plain, err
}

// headersOf returns the headers of every request.
func headersOf(spec *v1alpha1.VaultServer) (http.Header, error) {
	h := http.Header{api.RequestHeaderName: {"true"}}
	if spec.ForwardInconsistent {
		h.Set(api.HeaderInconsistent, "forward-active-node")
	}
	for name, value := range spec.Headers {
		switch canonical := http.CanonicalHeaderKey(name); {
		case !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, provider.NewError(provider.Invalid, "spec.headers: %q or its value cannot be sent; correct it", name)
		case strings.HasPrefix(canonical, "X-Vault-"), hopHeaders[canonical]:
			return nil, provider.NewError(provider.Invalid, "spec.headers: %q is reserved for Vault or the connection; remove it (use spec.namespace and spec.auth)", name)
		default:
			h.Set(canonical, value)
		}
	}
	return h, nil
}

// hopHeaders are headers that would change the meaning of a request.
var hopHeaders = map[string]bool{
	"Host": true, "Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Upgrade": true, "Te": true, "Trailer": true,
}

// isToken reports whether name is a valid header name, by RFC 9110.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}
