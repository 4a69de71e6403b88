package gcpconfig

import (
	"context"
	"net/url"
	"regexp"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

const (
	workloadField = "spec.auth.workloadIdentity"
	// emailAnnotation of a ServiceAccount names its Google service account, by
	// https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity.
	emailAnnotation = "iam.gke.io/gcp-service-account"
	// maxAudience is the maximum length of an audience after its prefix, in bytes.
	maxAudience = 1000

	audienceField        = workloadField + ".audience"
	accountField         = workloadField + ".serviceAccountRef"
	ownField             = workloadField + ".operatorServiceAccount"
	emailField           = workloadField + ".serviceAccountEmail"
	grantExchange        = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeJWT              = "urn:ietf:params:oauth:token-type:jwt"
	typeAccessToken      = "urn:ietf:params:oauth:token-type:access_token"
	impersonatedLifetime = "3600s"
)

var (
	audience = regexp.MustCompile(`^(//iam\.googleapis\.com/|identitynamespace:)([A-Za-z0-9._:/-]+)$`)
	email    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}@[A-Za-z0-9.-]{1,200}$`)
)

// workloadLogin exchanges a new token of a ServiceAccount, and then impersonates a service account if one is
// set. It requests a new token each time, because ServiceAccount tokens are short-lived.
type workloadLogin struct {
	poster
	at       logins
	identity *v1alpha1.WorkloadIdentity
	// account is the field that names the ServiceAccount.
	account string
	email   provider.Setting
	scopes  []string
	creds   provider.Credentials
}

func newWorkloadLogin(ctx context.Context, p poster, w *v1alpha1.WorkloadIdentity, at logins, scopes []string, creds provider.Credentials) (login, error) {
	one, err := provider.ExactlyOne(workloadField, provider.Choice{Field: "serviceAccountRef", Set: w.ServiceAccountRef != nil},
		provider.Choice{Field: "operatorServiceAccount", Set: w.OperatorServiceAccount != nil})
	switch {
	case err != nil:
		return nil, err
	case !isAudience(w.Audience):
		return nil, provider.NewError(provider.Invalid, audienceField+": must name a provider, such as //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER or identitynamespace:POOL:PROVIDER")
	case w.ServiceAccountEmail != "" && !email.MatchString(w.ServiceAccountEmail):
		return nil, provider.NewError(provider.Invalid, emailField+": %q is not the email of a service account", w.ServiceAccountEmail)
	}
	impersonated, err := emailOf(ctx, w, creds)
	if err != nil {
		return nil, err
	}
	return workloadLogin{poster: p, at: at, identity: w, account: workloadField + "." + one, email: impersonated, scopes: scopes, creds: creds}, nil
}

// Only serviceAccountEmailFrom reads a ServiceAccount.
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch,roleName=tokens

// emailOf returns the service account to impersonate, as the spec or the annotation of the ServiceAccount names it; without a text if
// there is none.
func emailOf(ctx context.Context, w *v1alpha1.WorkloadIdentity, creds provider.Credentials) (provider.Setting, error) {
	set := provider.Setting{Text: w.ServiceAccountEmail, Field: emailField}
	switch {
	case w.ServiceAccountEmailFrom == "":
		return set, nil
	case w.ServiceAccountEmailFrom != v1alpha1.EmailFromAnnotation || set.Text != "":
		return set, provider.NewError(provider.Invalid, workloadField+": set either serviceAccountEmail or serviceAccountEmailFrom: Annotation")
	case w.ServiceAccountRef == nil:
		return set, provider.NewError(provider.Invalid, workloadField+".serviceAccountEmailFrom: needs serviceAccountRef, because the annotations of the operator's own ServiceAccount are not read; set serviceAccountEmail instead")
	}
	annotations, err := provider.AnnotationsOf(ctx, creds, *w.ServiceAccountRef)
	if err != nil {
		return set, provider.Field(accountField, err)
	}
	return set.Or(annotations, provider.Annotation{
		Name: emailAnnotation, Account: *w.ServiceAccountRef, Field: accountField, Form: email, Value: "the email of the Google service account to impersonate",
	})
}

// tokenAudience returns the audience that a provider expects in a token by default: its own name or, for the
// provider of a GKE cluster, the name of the pool.
func tokenAudience(provider string) string {
	if rest, ok := strings.CutPrefix(provider, "identitynamespace:"); ok {
		pool, _, _ := strings.Cut(rest, ":")
		return pool
	}
	return provider
}

// exchangeRefusals are the refusals of a token exchange for the ServiceAccount that a field names.
func exchangeRefusals(account string) refusals {
	return refusals{
		"invalid_target":      {provider.Denied, audienceField, "the pool or provider does not exist at Google, or is disabled"},
		"invalid_grant":       {provider.Denied, workloadField, "Google does not accept the token of the ServiceAccount: check that the provider has the cluster as issuer, and audience (or serviceAccountRef.audiences, or operatorServiceAccount.audience) as audience"},
		"unauthorized_client": {provider.Denied, account, "the attribute condition of the provider rejects the ServiceAccount"},
		"access_denied":       {provider.Denied, account, "the provider rejects the ServiceAccount"},
		"invalid_scope":       badScope,
		"invalid_request":     {provider.Invalid, audienceField, "Google rejects the token exchange as invalid; check the name of the provider"},
		"INVALID_ARGUMENT":    {provider.Invalid, audienceField, "Google rejects the token exchange as invalid; check the name of the provider"},
		"PERMISSION_DENIED":   {provider.Denied, audienceField, "the Security Token Service refuses the call; check that its API is enabled in the project of the pool"},
	}
}

var impersonationRefusals = refusals{
	"PERMISSION_DENIED": {provider.Denied, "", "the ServiceAccount has no permission to impersonate it; grant it roles/iam.workloadIdentityUser on the service account"},
	"UNAUTHENTICATED":   {provider.Denied, "", "Google does not accept the token that it returned by token exchange"},
	"NOT_FOUND":         {provider.Denied, "", "the service account does not exist at Google"},
	"INVALID_ARGUMENT":  {provider.Invalid, "", "Google rejects it or the requested scopes as invalid"},
}

// RBAC that only spec.auth.workloadIdentity needs.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create,roleName=tokens

func (l workloadLogin) login(ctx context.Context) (provider.Token, error) {
	scopes := l.scopes
	if l.email.Text != "" {
		scopes = []string{scope} // the scope for impersonation
	}
	subject, err := l.token(ctx)
	if err != nil {
		return provider.Token{}, provider.Field(l.account, err)
	}
	t, err := l.form(ctx, l.at.exchange, url.Values{
		"grant_type":           {grantExchange},
		"audience":             {l.identity.Audience},
		"scope":                {strings.Join(scopes, " ")},
		"requested_token_type": {typeAccessToken},
		"subject_token_type":   {typeJWT},
		"subject_token":        {subject},
	})
	if err != nil {
		return provider.Token{}, exchangeRefusals(l.account).explain(workloadField, err)
	}
	if l.email.Text == "" {
		return t, nil
	}
	t, err = l.impersonate(ctx, l.at.impersonate+url.PathEscape(l.email.Text)+":generateAccessToken", t.Value, l.scopes)
	if err != nil {
		return provider.Token{}, impersonationRefusals.explain(l.email.Field, err)
	}
	return t, nil
}

// token returns a new token of the ServiceAccount.
func (l workloadLogin) token(ctx context.Context) (string, error) {
	if own := l.identity.OperatorServiceAccount; own != nil {
		return provider.OwnToken(ctx, l.creds, own.Audience)
	}
	account := *l.identity.ServiceAccountRef
	audiences := account.Audiences
	if len(audiences) == 0 {
		audiences = []string{tokenAudience(l.identity.Audience)}
	}
	return l.creds.ServiceAccountToken(ctx, account, audiences...)
}

// isAudience reports whether a text has the form of a workload identity provider's name or an identity
// namespace.
func isAudience(text string) bool {
	m := audience.FindStringSubmatch(text)
	return m != nil && len(m[2]) <= maxAudience
}
