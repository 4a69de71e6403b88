package awsconfig

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
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
	auth          *v1alpha1.AWSAuth
	creds         provider.Credentials
}

// Only spec.auth.serviceAccountRef and spec.auth.operatorServiceAccount ask for it.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create,roleName=tokens

// Retrieve exchanges a token. It requests a new token each time, because tokens are short-lived.
func (w *webIdentity) Retrieve(ctx context.Context) (aws.Credentials, error) {
	token, err := w.token(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	return stscreds.NewWebIdentityRoleProvider(w.client, w.role, identityToken(token), func(o *stscreds.WebIdentityRoleOptions) {
		o.RoleSessionName, o.Duration = w.session, w.duration
	}).Retrieve(ctx)
}

func (w *webIdentity) token(ctx context.Context) (string, error) {
	if own := w.auth.OperatorServiceAccount; own != nil {
		token, err := provider.OwnToken(ctx, w.creds, own.Audience)
		return token, provider.Field(ownField, err)
	}
	account := *w.auth.ServiceAccountRef
	audiences := account.Audiences
	if len(audiences) == 0 {
		audiences = []string{audience}
	}
	token, err := w.creds.ServiceAccountToken(ctx, account, audiences...)
	return token, provider.Field(accountField, err)
}

type identityToken string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t identityToken) GetIdentityToken() ([]byte, error) { return []byte(t), nil }
