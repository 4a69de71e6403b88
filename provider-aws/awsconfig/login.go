package awsconfig

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// audience is the one that AWS expects in a ServiceAccount token, by the documentation of IAM roles for service
// accounts.
const audience = "sts.amazonaws.com"

// A login is a credentials provider whose errors name the field that it was configured with.
type login struct {
	field, doing string
	next         aws.CredentialsProvider
	// denied is what to fix if AWS denies the login, and deniedTags if it denies the session tags; empty if that is not known.
	denied, deniedTags string
}

// These are the fixes of a denied login. Only spec.role has an external ID and tags, and a web identity is no caller with a policy.
const (
	deniedRole  = "the caller is not allowed to assume the role; allow it in the caller's policy, and in the role's trust policy (principal, spec.externalID, spec.sessionTags)"
	deniedTags  = "the caller is not allowed to pass session tags; allow " + tagSession + " in the caller's policy, and in the role's trust policy"
	deniedChain = "the caller is not allowed to assume the role; allow it in the caller's policy, and in the role's trust policy (principal)"
	deniedToken = "the ServiceAccount is not allowed to assume the role; allow it in the role's trust policy (identity provider, audience, namespace and name of the ServiceAccount)"
)

// Retrieve gets credentials. The SDK calls it with a context without a deadline.
func (l *login) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	ctx, lastError := provider.KeepLastError(ctx)
	c, err := l.next.Retrieve(ctx)
	if err == nil {
		return c, nil
	}
	var inner *loginError
	if errors.As(err, &inner) {
		return c, inner
	}
	return c, &loginError{login: l, err: lastError.Or(err)}
}

// A loginError is the error of the first step of a chain that failed.
type loginError struct {
	*login
	err error
}

func (e *loginError) Error() string { return e.field + ": " + e.doing }
func (e *loginError) Unwrap() error { return e.err }

// RetryableError keeps the SDK from retrying the call: the login has its own retries.
func (e *loginError) RetryableError() bool { return false }

// webIdentity exchanges a new ServiceAccount token for a session of a role.
type webIdentity struct {
	client        stscreds.AssumeRoleWithWebIdentityAPIClient
	role, session string
	duration      time.Duration
	account       common.ServiceAccountSelector
	creds         provider.Credentials
}

// Only spec.auth.serviceAccountRef asks for it.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create,roleName=tokens

// Retrieve exchanges a token. It requests a new token each time, because tokens are short-lived.
func (w *webIdentity) Retrieve(ctx context.Context) (aws.Credentials, error) {
	audiences := w.account.Audiences
	if len(audiences) == 0 {
		audiences = []string{audience}
	}
	token, err := w.creds.ServiceAccountToken(ctx, w.account, audiences...)
	if err != nil {
		return aws.Credentials{}, provider.Field(accountField, err)
	}
	return stscreds.NewWebIdentityRoleProvider(w.client, w.role, identityToken(token), func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName, o.Duration = w.session, w.duration
	}).Retrieve(ctx)
}

type identityToken string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t identityToken) GetIdentityToken() ([]byte, error) { return []byte(t), nil }
