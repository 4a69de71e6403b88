package gcpconfig

import (
	"context"
	"crypto/x509"
	"net/http"
	"regexp"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

const (
	scopesField = "spec.scopes"
	maxScopes   = 20
)

// scopeText matches a scope that is valid in a list, whether the list is separated by spaces or commas.
var scopeText = regexp.MustCompile(`^[A-Za-z0-9._~:/+-]{1,256}$`)

// A Source gets access tokens for other programs to use. It is safe for concurrent use.
type Source struct {
	tokens *provider.Tokens
	http   *http.Client
}

// LoadSource returns the Source of a generator. The rules of Load apply.
func LoadSource(ctx context.Context, spec *v1alpha1.GCPAccessTokenSpec, creds provider.Credentials, roots *x509.CertPool) (*Source, error) {
	scopes, err := scopesOf(spec.Scopes)
	if err != nil {
		return nil, err
	}
	at, err := parseEmulator(spec.Endpoint, creds)
	if err != nil {
		return nil, err
	}
	r, err := provider.RetriesOf(spec.RetrySettings)
	if err != nil {
		return nil, err
	}
	s := &Source{http: newHTTPClient(roots)}
	l, err := newLogin(ctx, poster{client: s.http, retries: retries{r}}, spec.Auth, at, scopes, creds)
	if err != nil {
		return nil, err
	}
	s.tokens = provider.NewTokens(ctx, l.login)
	return s, nil
}

func scopesOf(scopes []string) ([]string, error) {
	if len(scopes) == 0 {
		return []string{scope}, nil
	}
	if len(scopes) > maxScopes {
		return nil, provider.NewError(provider.Invalid, scopesField+": at most %d are allowed, and there are %d", maxScopes, len(scopes))
	}
	for i, s := range scopes {
		if !scopeText.MatchString(s) {
			return nil, provider.NewError(provider.Invalid, scopesField+"[%d]: is not a scope; write it as %s", i, scope)
		}
	}
	return scopes, nil
}

// Token logs in, and returns a new access token and its expiry. Only the metadata server returns a token that
// others have, too, while it is valid for some more minutes. Errors are of package provider.
func (s *Source) Token(ctx context.Context) (value string, expires time.Time, err error) {
	t, err := s.tokens.New(ctx)
	if err == nil {
		t, err = newToken(t.Value, t.Since, t.Expiry)
	}
	if err != nil {
		return "", time.Time{}, Explain(err, "spec.auth")
	}
	return t.Value, t.Expiry, nil
}

// Close cancels a login in progress.
func (s *Source) Close() error {
	s.tokens.Close()
	s.http.CloseIdleConnections()
	return nil
}
