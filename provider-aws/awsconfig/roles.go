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
	// sessionDuration is the longest that chained roles allow, and the shortest maximum that a role
	// can have.
	sessionDuration = time.Hour
	// expiryWindow is how long before their end credentials are replaced.
	expiryWindow = time.Minute
	// loginTimeout bounds one login. It is shared by all calls that wait for it, so it does not end
	// with any of them.
	loginTimeout = 30 * time.Second
)

// static reads an access key.
func static(ctx context.Context, ref *v1alpha1.AWSSecretRef, creds provider.Credentials) (aws.CredentialsProvider, error) {
	id, err := valueOf(ctx, creds, secretBlame[keyID], ref.AccessKeyIDSecretRef)
	if err != nil {
		return nil, err
	}
	key, err := valueOf(ctx, creds, secretBlame[secretKey], ref.SecretAccessKeySecretRef)
	if err != nil {
		return nil, err
	}
	var token string
	if ref.SessionTokenSecretRef != nil {
		if token, err = valueOf(ctx, creds, secretBlame[sessionToken], *ref.SessionTokenSecretRef); err != nil {
			return nil, err
		}
	}
	return credentials.NewStaticCredentialsProvider(id, key, token), nil
}

// valueOf reads a part of an access key. White space around it, such as the line end of a file, is no
// part of it.
func valueOf(ctx context.Context, creds provider.Credentials, field string, sel common.SecretKeySelector) (string, error) {
	v, err := creds.SecretValue(ctx, sel)
	if err != nil {
		return "", provider.Field(field, err)
	}
	text := strings.TrimSpace(string(v))
	if text == "" {
		return "", provider.NewError(provider.Invalid, "%s: the value is blank; store the whole value there", field)
	}
	return text, nil
}

// A step is one role on the way to the one that is worked as.
type step struct {
	field, arn string
	// options apply to role alone: external id and tags belong to its trust policy.
	options func(*stscreds.AssumeRoleOptions)
}

func steps(spec *v1alpha1.AWSSpec) []step {
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
		for _, t := range spec.SessionTags {
			o.Tags = append(o.Tags, types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)})
		}
		o.TransitiveTagKeys = spec.TransitiveTagKeys
	}})
}

// A Session is what a session of spec.role is to be like. The zero value is as it is for a store.
type Session struct {
	// Duration is how long it lasts; 0 means an hour.
	Duration time.Duration
	// SerialNumber and TokenCode are those of the MFA device of the caller, if it has to show one.
	SerialNumber, TokenCode string
}

func (s Session) duration() time.Duration { return cmp.Or(s.Duration, sessionDuration) }

// assume puts the chain of roles before the credentials so far. What calls AWS takes part in a session
// until it ends; s is for what is opened beside it.
func (c *Config) assume(spec *v1alpha1.AWSSpec, s Session, session string, creds provider.Credentials) {
	all := steps(spec)
	for i, one := range all {
		if i == len(all)-1 {
			c.caller, c.session = c.AWS.Credentials, c.login(spec, i, one, s, session, creds)
		}
		c.AWS.Credentials = c.cached(c.login(spec, i, one, Session{}, session, creds))
	}
}

// login assumes one role of the chain. The first is assumed with the token of a ServiceAccount where one is
// named.
func (c *Config) login(spec *v1alpha1.AWSSpec, i int, one step, s Session, session string, creds provider.Credentials) *login {
	var p aws.CredentialsProvider
	if i == 0 && spec.Auth != nil && spec.Auth.ServiceAccountRef != nil {
		p = &webIdentity{client: c.STS(), role: one.arn, session: session, duration: s.duration(), account: *spec.Auth.ServiceAccountRef, creds: creds}
	} else {
		p = stscreds.NewAssumeRoleProvider(c.STS(), one.arn, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName, o.Duration = session, s.duration()
			if s.SerialNumber != "" {
				o.SerialNumber, o.TokenProvider = aws.String(s.SerialNumber), func() (string, error) { return s.TokenCode, nil }
			}
			if one.options != nil {
				one.options(o)
			}
		})
	}
	return &login{field: one.field, doing: fmt.Sprintf("cannot assume role %s", one.arn), next: p}
}

// STS returns a client of STS that calls as whom a Config is so far.
func (c *Config) STS() *sts.Client {
	return sts.NewFromConfig(c.AWS, func(o *sts.Options) { o.BaseEndpoint = cmp.Or(c.sts, o.BaseEndpoint) })
}

// OpenSession opens a session of spec.role that nothing else takes part in.
func (c *Config) OpenSession(ctx context.Context) (aws.Credentials, error) {
	return c.session.Retrieve(ctx)
}

// AsCaller returns the Config before it has assumed spec.role.
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

// sessionName tells in CloudTrail which store calls.
func sessionName(namespace, name string) string {
	s := noSessionName.ReplaceAllString(strings.Join([]string{appID, namespace, name}, "@"), "-")
	return s[:min(len(s), 64)]
}
