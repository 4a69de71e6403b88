package gcpconfig

import (
	"context"
	"net/url"
	"regexp"
	"strings"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

const (
	workloadField = "spec.auth.workloadIdentity"
	// maxAudience is the length of an audience behind its prefix, in bytes.
	maxAudience = 1000

	audienceField    = workloadField + ".audience"
	accountField     = workloadField + ".serviceAccountRef"
	emailField       = workloadField + ".serviceAccountEmail"
	grantExchange    = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeJWT          = "urn:ietf:params:oauth:token-type:jwt"
	typeAccessToken  = "urn:ietf:params:oauth:token-type:access_token"
	impersonatedLife = "3600s"
)

var (
	audience = regexp.MustCompile(`^(//iam\.googleapis\.com/|identitynamespace:)([A-Za-z0-9._:/-]+)$`)
	email    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}@[A-Za-z0-9.-]{1,200}$`)
)

// workloadLogin exchanges a fresh token of a ServiceAccount, and then works as a service account of
// Google where one is named. Tokens of ServiceAccounts are short-lived, so none is kept.
type workloadLogin struct {
	poster
	at            logins
	audience      string
	tokenAudience []string
	email         string
	scopes        []string
	account       common.ServiceAccountSelector
	creds         provider.Credentials
}

func newWorkloadLogin(p poster, w *v1alpha1.WorkloadIdentity, at logins, scopes []string, creds provider.Credentials) (login, error) {
	switch {
	case !isAudience(w.Audience):
		return nil, provider.NewError(provider.Invalid, audienceField+": must name a provider, as //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER or identitynamespace:POOL:PROVIDER")
	case w.ServiceAccountEmail != "" && !email.MatchString(w.ServiceAccountEmail):
		return nil, provider.NewError(provider.Invalid, emailField+": %q is not the email of a service account", w.ServiceAccountEmail)
	}
	l := workloadLogin{
		poster: p, at: at, audience: w.Audience, email: w.ServiceAccountEmail, scopes: scopes,
		account: w.ServiceAccountRef, tokenAudience: w.ServiceAccountRef.Audiences, creds: creds,
	}
	if len(l.tokenAudience) == 0 {
		l.tokenAudience = []string{tokenAudience(w.Audience)}
	}
	return l, nil
}

// tokenAudience is what a provider expects in a token unless it was told otherwise: its own name, or
// for that of a GKE cluster the name of the pool.
func tokenAudience(provider string) string {
	if rest, ok := strings.CutPrefix(provider, "identitynamespace:"); ok {
		pool, _, _ := strings.Cut(rest, ":")
		return pool
	}
	return provider
}

var exchangeRefusals = refusals{
	"invalid_target":      {provider.Denied, audienceField, "Google knows no such pool or provider, or it is disabled"},
	"invalid_grant":       {provider.Denied, workloadField, "Google does not accept the token of the ServiceAccount: check that the provider knows the cluster as issuer, and audience (or serviceAccountRef.audiences) as audience"},
	"unauthorized_client": {provider.Denied, accountField, "the attribute condition of the provider rejects the ServiceAccount"},
	"access_denied":       {provider.Denied, accountField, "the provider rejects the ServiceAccount"},
	"invalid_scope":       badScope,
	"invalid_request":     {provider.Invalid, audienceField, "Google rejects the exchange as not valid; check the name of the provider"},
	"INVALID_ARGUMENT":    {provider.Invalid, audienceField, "Google rejects the exchange as not valid; check the name of the provider"},
	"PERMISSION_DENIED":   {provider.Denied, audienceField, "the Security Token Service may not be used; check that its API is enabled in the project of the pool"},
}

var impersonationRefusals = refusals{
	"PERMISSION_DENIED": {provider.Denied, emailField, "the ServiceAccount may not impersonate it; grant it roles/iam.workloadIdentityUser on the service account"},
	"UNAUTHENTICATED":   {provider.Denied, emailField, "Google does not accept the token that it gave in exchange"},
	"NOT_FOUND":         {provider.Denied, emailField, "Google knows no such service account"},
	"INVALID_ARGUMENT":  {provider.Invalid, emailField, "Google rejects it, or the scopes that are asked for, as not valid"},
}

// Only spec.auth.workloadIdentity asks for it.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create,roleName=tokens

func (l workloadLogin) login(ctx context.Context) (token, error) {
	scopes := l.scopes
	if l.email != "" {
		scopes = []string{scope} // by which one may impersonate
	}
	subject, err := l.creds.ServiceAccountToken(ctx, l.account, l.tokenAudience...)
	if err != nil {
		return token{}, provider.Field(accountField, err)
	}
	t, err := l.form(ctx, l.at.exchange, url.Values{
		"grant_type":           {grantExchange},
		"audience":             {l.audience},
		"scope":                {strings.Join(scopes, " ")},
		"requested_token_type": {typeAccessToken},
		"subject_token_type":   {typeJWT},
		"subject_token":        {subject},
	})
	if err != nil {
		return token{}, exchangeRefusals.explain(workloadField, err)
	}
	if l.email == "" {
		return t, nil
	}
	t, err = l.impersonate(ctx, l.at.impersonate+url.PathEscape(l.email)+":generateAccessToken", t.value, l.scopes)
	if err != nil {
		return token{}, impersonationRefusals.explain(emailField, err)
	}
	return t, nil
}

// isAudience reports whether a text can name a workload identity provider or an identity namespace.
func isAudience(text string) bool {
	m := audience.FindStringSubmatch(text)
	return m != nil && len(m[2]) <= maxAudience
}
