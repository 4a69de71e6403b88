package azureconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	sdkcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

const (
	tenantField  = "spec.tenantID"
	accountField = "spec.auth.serviceAccountRef"
	machineField = "spec.auth.managedIdentity"
	secretField  = "spec.auth.clientSecret"
	certField    = "spec.auth.clientCertificate"

	// machineHost is the address of the instance metadata service.
	machineHost = "169.254.169.254"
	// noClaims is an empty set of claims. Azure's library keeps the tokens of managed identities for the whole process, and gets a new one
	// only for a request with claims: https://pkg.go.dev/github.com/AzureAD/microsoft-authentication-library-for-go/apps/managedidentity#WithClaims.
	noClaims = "{}"
)

// A source creates a credential of Azure's library.
type source struct {
	field string
	// machine reports whether tokens come from the instance metadata service.
	machine bool
	create  func(context.Context, azcore.ClientOptions) (azcore.TokenCredential, error)
}

// A login gets tokens for one place.
type login struct {
	place   place
	tenant  provider.Setting
	client  *http.Client
	retries policy.RetryOptions
	source  source
}

// RBAC that only spec.auth.serviceAccountRef needs.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create,roleName=tokens

// sourceOf returns the source for the auth of a spec.
func sourceOf(ctx context.Context, spec *v1alpha1.AzureLogin, at place, creds provider.Credentials) (source, error) {
	a := spec.Auth
	_, err := provider.ExactlyOne("spec.auth", provider.Choice{Field: "serviceAccountRef", Set: a.ServiceAccountRef != nil}, provider.Choice{Field: "managedIdentity", Set: a.ManagedIdentity != nil},
		provider.Choice{Field: "clientSecret", Set: a.ClientSecret != nil}, provider.Choice{Field: "clientCertificate", Set: a.ClientCertificate != nil})
	switch {
	case err != nil:
		return source{}, err
	case a.ManagedIdentity != nil:
		return machineOf(a.ManagedIdentity, at, creds)
	case !tenantText.MatchString(spec.TenantID):
		return source{}, provider.NewError(provider.Invalid, "spec.tenantID: is missing or not valid; set the ID of the %s's tenant", at.noun)
	case a.ServiceAccountRef != nil:
		return federatedOf(spec.TenantID, a.ServiceAccountRef, creds)
	case a.ClientSecret != nil:
		return secretOf(ctx, spec.TenantID, a.ClientSecret, creds)
	}
	return certificateOf(ctx, spec.TenantID, a.ClientCertificate, creds)
}

var (
	tenantText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,254}$`)
	clientText = regexp.MustCompile(`^[A-Za-z0-9._-]{1,255}$`)
)

// machineOf returns the source for the operator's own identity. Its tokens are sent only to Azure.
func machineOf(m *v1alpha1.ManagedIdentity, at place, creds provider.Credentials) (source, error) {
	if err := creds.Ambient(); err != nil {
		return source{}, provider.Field(machineField, err)
	}
	if at.emulated || at.custom {
		return source{}, provider.NewError(provider.Invalid, "%s: with auth.managedIdentity it must be a %s of a known cloud, because tokens of the operator's own identity are sent there", at.field, at.noun)
	}
	return source{machineField, true, func(_ context.Context, o azcore.ClientOptions) (azcore.TokenCredential, error) {
		options := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: o}
		if m.ClientID != "" {
			options.ID = azidentity.ClientID(m.ClientID)
		}
		return azidentity.NewManagedIdentityCredential(options)
	}}, nil
}

func federatedOf(tenant string, a *v1alpha1.FederatedServiceAccount, creds provider.Credentials) (source, error) {
	if !clientText.MatchString(a.ClientID) {
		return source{}, provider.NewError(provider.Invalid, accountField+".clientID: is missing or not valid; set the ID of the application or managed identity")
	}
	audiences := a.Audiences
	if len(audiences) == 0 {
		audiences = []string{v1alpha1.FederatedAudience}
	}
	return source{accountField, false, func(ctx context.Context, o azcore.ClientOptions) (azcore.TokenCredential, error) {
		// Azure's library would keep only the text of this error.
		token, err := creds.ServiceAccountToken(ctx, a.ServiceAccountSelector, audiences...)
		if err != nil {
			return nil, provider.Field(accountField, err)
		}
		assertion := func(context.Context) (string, error) { return token, nil }
		return azidentity.NewClientAssertionCredential(tenant, a.ClientID, assertion, &azidentity.ClientAssertionCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: true})
	}}, nil
}

func secretOf(ctx context.Context, tenant string, s *v1alpha1.ClientSecret, creds provider.Credentials) (source, error) {
	id, err := clientOf(ctx, secretField, s.Client, creds)
	if err != nil {
		return source{}, err
	}
	secret, err := text(ctx, secretField+".clientSecretRef", s.ClientSecretRef, creds)
	if err != nil {
		return source{}, err
	}
	return source{secretField, false, func(_ context.Context, o azcore.ClientOptions) (azcore.TokenCredential, error) {
		return azidentity.NewClientSecretCredential(tenant, id, secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: true})
	}}, nil
}

func certificateOf(ctx context.Context, tenant string, s *v1alpha1.ClientCertificate, creds provider.Credentials) (source, error) {
	id, err := clientOf(ctx, certField, s.Client, creds)
	if err != nil {
		return source{}, err
	}
	raw, err := creds.SecretValue(ctx, s.ClientCertificateRef)
	if err != nil {
		return source{}, provider.Field(certField+".clientCertificateRef", err)
	}
	chain, key, err := parseCertificate(raw)
	if err != nil {
		return source{}, provider.NewError(provider.Invalid, certField+".clientCertificateRef: is not a certificate with its private key, in PEM form or as PKCS#12 without a password and with at most 600,000 iterations")
	}
	if chain, err = provider.LeafFirst(chain, key); err != nil {
		return source{}, provider.Field(certField+".clientCertificateRef", err)
	}
	return source{certField, false, func(_ context.Context, o azcore.ClientOptions) (azcore.TokenCredential, error) {
		return azidentity.NewClientCertificateCredential(tenant, id, chain, key, &azidentity.ClientCertificateCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: true, SendCertificateChain: true})
	}}, nil
}

// clientOf returns the ID of an application.
func clientOf(ctx context.Context, field string, c v1alpha1.Client, creds provider.Credentials) (string, error) {
	id := c.ClientID
	switch {
	case (c.ClientID == "") == (c.ClientIDRef == nil):
		return "", provider.NewError(provider.Invalid, "%s: set either clientID or clientIDRef", field)
	case c.ClientIDRef != nil:
		var err error
		if id, err = text(ctx, field+".clientIDRef", *c.ClientIDRef, creds); err != nil {
			return "", err
		}
	}
	if !clientText.MatchString(id) {
		return "", provider.NewError(provider.Invalid, "%s: the ID of the application is not valid; copy it from the application", field)
	}
	return id, nil
}

// text returns a value without white space around it, which neither an ID nor a client secret has.
func text(ctx context.Context, field string, ref common.SecretKeySelector, creds provider.Credentials) (string, error) {
	raw, err := creds.SecretValue(ctx, ref)
	return strings.TrimSpace(string(raw)), provider.Field(field, err)
}

// login gets a new token. Azure's library caches tokens in a credential, so each login has a new one.
func (l login) login(ctx context.Context) (provider.Token, error) {
	var last answer
	g := guard{client: l.client, host: l.place.authority.Host, field: l.source.field, plain: l.place.authority.Scheme == "http", inspect: last.keep}
	if l.source.machine {
		g.host, g.plain = machineHost, true
	}
	credential, err := l.source.create(ctx, azcore.ClientOptions{
		Cloud:     sdkcloud.Configuration{ActiveDirectoryAuthorityHost: "https://" + l.place.authority.Host},
		Transport: g, Retry: l.retries,
	})
	var own *provider.Error
	switch {
	case errors.As(err, &own):
		return provider.Token{}, own
	case err != nil:
		return provider.Token{}, provider.NewError(provider.Invalid, "%s: Azure's library does not accept it; correct it", l.source.field)
	}
	request := policy.TokenRequestOptions{Scopes: []string{l.place.scope()}}
	if l.source.machine {
		request.Claims = noClaims
	}
	since := time.Now()
	t, err := credential.GetToken(ctx, request)
	if err != nil {
		return provider.Token{}, l.explain(ctx, err, last)
	}
	return provider.Token{Value: t.Token, Since: since, Expiry: t.ExpiresOn}, nil
}

// An answer is what explains a failed login: Azure's libraries keep only a text.
type answer struct {
	status     int
	code       string
	numbers    []int
	retryAfter time.Duration
}

// keep keeps the latest answer that is an error. The body remains readable.
func (a *answer) keep(_ *http.Request, resp *http.Response) error {
	*a = answer{}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // It has been read.
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	a.status, a.retryAfter = resp.StatusCode, provider.RetryAfterHeader(resp.Header)
	var body struct {
		Error   string `json:"error"`
		Numbers []int  `json:"error_codes"`
	}
	if json.Unmarshal(raw, &body) == nil {
		a.code, a.numbers = body.Error, body.Numbers
	}
	return nil
}
