package awsconfig

import (
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
	"github.com/direct-secrets/direct-secrets/common/store"
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
func static(ctx context.Context, ref *v1alpha1.AWSSecretRef, creds store.Credentials) (aws.CredentialsProvider, error) {
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
func valueOf(ctx context.Context, creds store.Credentials, field string, sel common.SecretKeySelector) (string, error) {
	v, err := creds.SecretValue(ctx, sel)
	if err != nil {
		return "", store.Field(field, err)
	}
	text := strings.TrimSpace(string(v))
	if text == "" {
		return "", store.NewError(store.Invalid, "%s: the value is blank; store the whole value there", field)
	}
	return text, nil
}

// A step is one role on the way to the one that the store works as.
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

// assume puts the chain of roles before the credentials so far. The first is assumed with the token
// of a ServiceAccount where one is named.
func (c *Config) assume(spec *v1alpha1.AWSSpec, session string, creds store.Credentials) {
	for i, s := range steps(spec) {
		client := sts.NewFromConfig(c.AWS)
		var p aws.CredentialsProvider
		if i == 0 && spec.Auth != nil && spec.Auth.ServiceAccountRef != nil {
			p = &webIdentity{client: exchanger(client.AssumeRoleWithWebIdentity), role: s.arn, session: session, account: *spec.Auth.ServiceAccountRef, creds: creds}
		} else {
			p = stscreds.NewAssumeRoleProvider(assumer(client.AssumeRole), s.arn, func(o *stscreds.AssumeRoleOptions) {
				o.RoleSessionName, o.Duration = session, sessionDuration
				if s.options != nil {
					s.options(o)
				}
			})
		}
		c.AWS.Credentials = c.cached(&login{field: s.field, doing: fmt.Sprintf("cannot assume role %s", s.arn), next: p})
	}
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

// assumer and exchanger hold one function of the client of STS each, so that the linker can leave out the
// rest.
type assumer API[sts.AssumeRoleInput, sts.AssumeRoleOutput, sts.Options]

// AssumeRole implements stscreds.AssumeRoleAPIClient.
func (f assumer) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, o ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	return f(ctx, in, o...)
}

type exchanger API[sts.AssumeRoleWithWebIdentityInput, sts.AssumeRoleWithWebIdentityOutput, sts.Options]

// AssumeRoleWithWebIdentity implements stscreds.AssumeRoleWithWebIdentityAPIClient.
func (f exchanger) AssumeRoleWithWebIdentity(ctx context.Context, in *sts.AssumeRoleWithWebIdentityInput, o ...func(*sts.Options)) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	return f(ctx, in, o...)
}
