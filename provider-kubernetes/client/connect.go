// Package client reads and writes the Secrets of one namespace, and reads its ConfigMaps, for the store Kinds
// KubernetesSecrets and ClusterKubernetesSecrets.
package client

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-kubernetes/apis/v1alpha1"
)

// RBAC for tokens of the ServiceAccounts that stores log in as.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create,roleName=tokens

// Connect returns the client of a store. It does not call the API server.
func Connect(ctx context.Context, s *v1alpha1.KubernetesSecrets, creds provider.Credentials) (provider.Client, error) {
	return connect(ctx, &s.Spec, creds)
}

// ConnectCluster returns the client of a cluster store. It does not call the API server.
func ConnectCluster(ctx context.Context, s *v1alpha1.ClusterKubernetesSecrets, creds provider.Credentials) (provider.Client, error) {
	return connect(ctx, &s.Spec.KubernetesSecretsSpec, creds)
}

// tokenLifetime is how long a token of a ServiceAccount is valid.
const tokenLifetime = 10 * time.Minute

func connect(ctx context.Context, spec *v1alpha1.KubernetesSecretsSpec, creds provider.Credentials) (provider.Client, error) {
	config, err := configOf(ctx, spec, creds)
	if err != nil {
		return nil, err
	}
	server, auth := "spec.server", "spec.auth"
	if spec.AuthRef != nil {
		server, auth = "spec.authRef", "spec.authRef"
	}
	u, err := provider.ParseURL(creds, server, config.Host)
	if err != nil {
		return nil, err
	}
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s: the certificates or the key are not in PEM form, or do not belong together", auth)
	}
	login := func(context.Context) (provider.Token, error) {
		return provider.Token{Value: config.BearerToken, Since: time.Now()}, nil
	}
	if a := spec.Auth; a != nil && a.ServiceAccount != nil {
		if spec.Server != nil && len(a.ServiceAccount.Audiences) == 0 {
			return nil, provider.NewError(provider.Invalid, "spec.auth.serviceAccount.audiences: required with server, because another cluster must not get a token that this one accepts; name the audience of that cluster")
		}
		login = func(ctx context.Context) (provider.Token, error) {
			now := time.Now()
			token, err := creds.ServiceAccountToken(ctx, *a.ServiceAccount)
			return provider.Token{Value: token, Since: now, Expiry: now.Add(tokenLifetime)}, provider.Field("spec.auth.serviceAccount", err)
		}
	}
	transport := provider.NewTransport(secured)
	calls, err := rest.RESTClientForConfigAndClient(&rest.Config{
		Host: config.Host, APIPath: "/api", QPS: -1, WarningHandler: rest.NoWarnings{}, UserAgent: "direct-secrets",
		ContentConfig: rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	}, provider.NewHTTPClient(transport, operation, func(r *http.Request) bool { return operation(r) == "list" }))
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s: is not the URL of an API server", server)
	}
	return &Client{
		calls: calls, tokens: provider.NewTokens(ctx, login), transport: transport,
		namespace: spec.RemoteNamespace, place: provider.Address(u) + " " + spec.RemoteNamespace, server: server, login: auth,
	}, nil
}

// configOf returns the address of the server, the authorities that it trusts, and credentials that do not change.
func configOf(ctx context.Context, spec *v1alpha1.KubernetesSecretsSpec, creds provider.Credentials) (*rest.Config, error) {
	if (spec.Auth == nil) == (spec.AuthRef == nil) {
		return nil, provider.NewError(provider.Invalid, "spec.auth: set either auth or authRef")
	}
	if spec.AuthRef != nil {
		raw, err := creds.SecretValue(ctx, *spec.AuthRef)
		if err != nil {
			return nil, provider.Field("spec.authRef", err)
		}
		return kubeconfig(raw)
	}
	config := &rest.Config{}
	if s := spec.Server; s != nil {
		pem, err := provider.Authorities(ctx, creds, "spec.server", s.Authorities)
		if err != nil {
			return nil, err
		}
		config.Host, config.CAData = s.URL, pem
	} else {
		own, err := ctrl.GetConfig()
		if err != nil {
			return nil, provider.NewError(provider.Invalid, "spec.server: the operator does not run in a cluster; set server")
		}
		config = rest.AnonymousClientConfig(own) // The operator's own credentials are not for stores.
	}
	a := spec.Auth
	if set := []bool{a.ServiceAccount != nil, a.Token != nil, a.Cert != nil}; len(slices.DeleteFunc(set, func(is bool) bool { return !is })) != 1 {
		return nil, provider.NewError(provider.Invalid, "spec.auth: set exactly one of serviceAccount, token and cert")
	}
	var err error
	read := func(field string, ref common.SecretKeySelector) (value []byte) {
		if err == nil {
			value, err = creds.SecretValue(ctx, ref)
			err = provider.Field("spec.auth."+field, err)
		}
		return value
	}
	if a.Token != nil {
		config.BearerToken = strings.TrimSpace(string(read("token.bearerToken", a.Token.BearerToken)))
	}
	if a.Cert != nil {
		config.CertData, config.KeyData = read("cert.clientCert", a.Cert.ClientCert), read("cert.clientKey", a.Cert.ClientKey)
	}
	return config, err
}

// kubeconfig returns the server and the credentials of a kubeconfig. It accepts none that make the operator read a file, run a
// command or use a proxy.
func kubeconfig(raw []byte) (*rest.Config, error) {
	refused := func(what string) (*rest.Config, error) {
		return nil, provider.NewError(provider.Invalid, "spec.authRef: the kubeconfig %s", what)
	}
	file, err := clientcmd.Load(raw)
	if err != nil {
		return refused("is not valid")
	}
	current := file.Contexts[file.CurrentContext]
	if current == nil || file.Clusters[current.Cluster] == nil || file.AuthInfos[current.AuthInfo] == nil {
		return refused("has no current-context with a cluster and a user")
	}
	cluster, user := file.Clusters[current.Cluster], file.AuthInfos[current.AuthInfo]
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"exec", user.Exec != nil},
		{"auth-provider", user.AuthProvider != nil},
		{"tokenFile", user.TokenFile != ""},
		{"client-certificate", user.ClientCertificate != ""},
		{"client-key", user.ClientKey != ""},
		{"username", user.Username != "" || user.Password != ""},
		{"as", user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups)+len(user.ImpersonateUserExtra) > 0},
		{"certificate-authority", cluster.CertificateAuthority != ""},
		{"insecure-skip-tls-verify", cluster.InsecureSkipTLSVerify},
		{"proxy-url", cluster.ProxyURL != ""},
	} {
		if f.set {
			return refused("sets " + f.name + ", which is not supported; use token, client-certificate-data, client-key-data and certificate-authority-data")
		}
	}
	if user.Token == "" && len(user.ClientCertificateData) == 0 {
		return refused("has neither a token nor client-certificate-data")
	}
	return &rest.Config{Host: cluster.Server, BearerToken: user.Token, TLSClientConfig: rest.TLSClientConfig{
		ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData, CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
	}}, nil
}

// operation returns the operation of a request for metrics.
func operation(r *http.Request) string {
	if r.URL.Query().Has("limit") {
		return "list"
	}
	return map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
}
