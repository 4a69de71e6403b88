package awsconfig

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

const (
	// sessionDuration is the longest session of chained roles, and the shortest maximum that a role can have.
	sessionDuration = time.Hour
	// expiryWindow is how long before they expire credentials are replaced.
	expiryWindow = time.Minute
	// loginTimeout limits one login. Several calls can wait for the same login, so none of their contexts ends
	// it.
	loginTimeout = 30 * time.Second
)

// static reads an access key from the referenced Secrets.
func static(ctx context.Context, ref *v1alpha1.AWSSecretRef, creds provider.Credentials) (aws.CredentialsProvider, error) {
	id, err := valueOf(ctx, creds, secretSource[keyID], ref.AccessKeyIDSecretRef)
	if err != nil {
		return nil, err
	}
	key, err := valueOf(ctx, creds, secretSource[secretKey], ref.SecretAccessKeySecretRef)
	if err != nil {
		return nil, err
	}
	var token string
	if ref.SessionTokenSecretRef != nil {
		if token, err = valueOf(ctx, creds, secretSource[sessionToken], *ref.SessionTokenSecretRef); err != nil {
			return nil, err
		}
	}
	return credentials.NewStaticCredentialsProvider(id, key, token), nil
}

// valueOf reads one value of an access key, without leading and trailing white space such as a line end.
func valueOf(ctx context.Context, creds provider.Credentials, field string, sel common.SecretKeySelector) (string, error) {
	v, err := creds.SecretValue(ctx, sel)
	if err != nil {
		return "", provider.Field(field, err)
	}
	text := strings.TrimSpace(string(v))
	if text == "" {
		return "", provider.NewError(provider.Invalid, "%s: the value is blank; store the complete value", field)
	}
	return text, nil
}

// A step is one role in the chain that ends with spec.role or the role of the annotation.
type step struct {
	field, arn string
	// options apply to spec.role only, because its trust policy checks the external id and the tags.
	options func(*stscreds.AssumeRoleOptions)
}

// steps returns the chain of roles. annotated is the only one if it is set. tags are passed when spec.role is assumed.
func steps(spec *v1alpha1.AWSSpec, annotated provider.Setting, tags []types.Tag) []step {
	if annotated.Text != "" {
		return []step{{field: annotated.Field, arn: annotated.Text}}
	}
	var all []step
	for i, arn := range spec.AdditionalRoles {
		all = append(all, step{field: fmt.Sprintf("spec.additionalRoles[%d]", i), arn: arn})
	}
	if spec.Role == "" {
		return all
	}
	return append(all, step{field: "spec.role", arn: spec.Role, options: func(o *stscreds.AssumeRoleOptions) {
		if spec.ExternalID != "" {
			o.ExternalID = aws.String(spec.ExternalID)
		}
		o.Tags, o.TransitiveTagKeys = tags, spec.TransitiveTagKeys
	}})
}

// A Session describes a session of spec.role to open. The zero value describes the session of a store.
type Session struct {
	// Duration is how long the session lasts; 0 means one hour.
	Duration time.Duration
	// SerialNumber and TokenCode are those of the caller's MFA device, if the role requires one.
	SerialNumber, TokenCode string
}

func (s Session) duration() time.Duration { return cmp.Or(s.Duration, sessionDuration) }

// assume adds the chain of roles to the present credentials. Calls to AWS share one cached session until it
// expires; s describes the separate sessions that OpenSession opens.
func (c *Config) assume(o Object, s Session, creds provider.Credentials) error {
	spec, session := o.AWS(), sessionName(o.GetNamespace(), o.GetName())
	tags, err := sessionTags(o, creds)
	if err != nil {
		return err
	}
	all := steps(spec, c.annotated, tags)
	for i, one := range all {
		if i == len(all)-1 {
			c.role = one.arn
			c.caller, c.session = c.AWS.Credentials, c.login(spec, i, one, s, session, creds)
		}
		c.AWS.Credentials = c.cached(c.login(spec, i, one, Session{}, session, creds))
	}
	return nil
}

// login assumes one role of the chain. If the spec logs in with the token of a ServiceAccount, it assumes the first role.
func (c *Config) login(spec *v1alpha1.AWSSpec, i int, one step, s Session, session string, creds provider.Credentials) *login {
	l := &login{field: one.field, doing: fmt.Sprintf("cannot assume role %s", one.arn), denied: deniedChain}
	if one.options != nil {
		l.denied, l.deniedTags = deniedRole, deniedTags
	}
	if i == 0 && spec.Auth.ByToken() {
		l.denied, l.deniedTags = deniedToken, ""
		l.next = &webIdentity{client: c.STS(), role: one.arn, session: session, duration: s.duration(), auth: spec.Auth, creds: creds}
	} else {
		l.next = stscreds.NewAssumeRoleProvider(c.STS(), one.arn, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName, o.Duration = session, s.duration()
			if s.SerialNumber != "" {
				o.SerialNumber, o.TokenProvider = aws.String(s.SerialNumber), func() (string, error) { return s.TokenCode, nil }
			}
			if one.options != nil {
				one.options(o)
			}
		})
	}
	return l
}

// STS returns a client of STS that uses the present credentials of the Config.
func (c *Config) STS() *sts.Client {
	return sts.NewFromConfig(c.AWS, func(o *sts.Options) { o.BaseEndpoint = cmp.Or(c.sts, o.BaseEndpoint) })
}

// HasRole reports whether the Config works as a role that it assumes, so that OpenSession can open sessions of it.
func (c *Config) HasRole() bool { return c.session != nil }

// OpenSession opens a session of the role that no other call uses.
func (c *Config) OpenSession(ctx context.Context) (aws.Credentials, error) {
	return c.session.Retrieve(ctx)
}

// AsCaller returns the Config with the credentials that assume spec.role.
func (c *Config) AsCaller() *Config {
	before := *c
	before.AWS.Credentials = c.caller
	return &before
}

func (c *Config) cached(p aws.CredentialsProvider) aws.CredentialsProvider {
	cache := aws.NewCredentialsCache(p, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryWindow })
	c.caches = append(c.caches, cache)
	return cache
}

var noSessionName = regexp.MustCompile(`[^\w+=,.@-]+`)

// sessionName returns a name that shows in CloudTrail which store calls.
func sessionName(namespace, name string) string {
	s := noSessionName.ReplaceAllString(strings.Join([]string{appID, namespace, name}, "@"), "-")
	return s[:min(len(s), 64)]
}
