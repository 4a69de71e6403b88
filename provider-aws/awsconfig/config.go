// Package awsconfig turns the spec fields that all AWS Kinds share into the settings of an AWS client:
// credentials, region, endpoint, transport and retries. Config.Explain classifies the errors of AWS.
package awsconfig

import (
	"context"
	"net/http"
	"regexp"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// appID is added to the user agent of every request.
const appID = "direct-secrets"

var region = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// A Config holds the settings from which the clients of one store are created.
type Config struct {
	// AWS holds all settings but the endpoint of the store's own service.
	AWS aws.Config
	// Endpoint is that of the store's own service, never of STS; nil means the region's endpoint.
	Endpoint *string
	// Prefix is added in front of every key that is not an ARN.
	Prefix string

	credentialsSource credentialsSource
	transport         *http.Transport
	caches            []*aws.CredentialsCache
	// sts is the endpoint of STS; nil means the region's endpoint.
	sts *string
	// session opens a new session of spec.role at every call, with the credentials of caller; both are nil
	// without a role.
	session aws.CredentialsProvider
	caller  aws.CredentialsProvider
	// role is the ARN of the role that the store works as; empty if there is none.
	role string
	// annotated is the role in the annotation of the ServiceAccount, if spec.role is not set.
	annotated provider.Setting
	// account caches the number of the AWS account, once it is known.
	account *atomic.Pointer[string]
}

// An Object is a store or generator Kind of AWS.
type Object interface {
	provider.Object

	// AWS returns the embedded spec.
	AWS() *v1alpha1.AWSSpec
}

// A StoreObject is a store Kind of AWS.
type StoreObject interface {
	Object

	// KeySpec returns the embedded spec.
	KeySpec() *v1alpha1.KeySpec
}

// LoadStore returns the Config of a store; see Load.
func LoadStore(ctx context.Context, o StoreObject, creds provider.Credentials) (*Config, error) {
	c, err := Load(ctx, o, creds)
	if err != nil {
		return nil, err
	}
	c.Prefix = o.KeySpec().Prefix
	return c, nil
}

// Load returns the Config of a store or generator. It reads Secrets and ServiceAccounts through creds, does not call AWS, and does
// not keep ctx. It keeps creds only to request ServiceAccount tokens. Errors are of package provider, and name
// the field to fix.
func Load(ctx context.Context, o Object, creds provider.Credentials) (*Config, error) {
	c, err := newConfig(ctx, o, creds)
	if err != nil {
		return nil, err
	}
	if err := c.assume(o, Session{}, creds); err != nil {
		return nil, err
	}
	return c, nil
}

// LoadSTS returns the Config of a generator of STS sessions. Its spec.endpoint is that of STS, and s describes
// the sessions that OpenSession opens.
func LoadSTS(ctx context.Context, o Object, s Session, creds provider.Credentials) (*Config, error) {
	c, err := newConfig(ctx, o, creds)
	if err != nil {
		return nil, err
	}
	c.sts = c.Endpoint
	if err := c.assume(o, s, creds); err != nil {
		return nil, err
	}
	return c, nil
}

// newConfig returns a Config that has not assumed a role yet.
func newConfig(ctx context.Context, o Object, creds provider.Credentials) (*Config, error) {
	spec := o.AWS()
	if err := check(spec); err != nil {
		return nil, err
	}
	endpoint, err := parseEndpoint(spec.Endpoint, creds)
	if err != nil {
		return nil, err
	}
	retryer, err := newRetryer(spec.RetrySettings)
	if err != nil {
		return nil, err
	}
	c := &Config{Endpoint: endpoint, account: &atomic.Pointer[string]{}}
	if spec.Auth == nil {
		err = c.useAmbient(spec, creds, retryer)
	} else {
		err = c.useAuth(ctx, spec, creds, retryer)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close closes idle connections.
func (c *Config) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// Forget makes the next call log in again. It reports whether that can help, which it cannot with a static
// access key.
func (c *Config) Forget() bool {
	for _, cache := range c.caches {
		cache.Invalidate()
	}
	return len(c.caches) > 0
}

// useAmbient uses the operator's own identity and configuration.
func (c *Config) useAmbient(spec *v1alpha1.AWSSpec, creds provider.Credentials, retryer func() aws.Retryer) error {
	if err := creds.Ambient(); err != nil {
		return provider.Field("spec.auth", err)
	}
	env, err := awsEnv()
	if err != nil {
		return err
	}
	cfg, err := ambient(env, spec.Region, retryer)
	if err != nil {
		return err
	}
	c.credentialsSource = ambientSource
	// The operator's AWS_CA_BUNDLE still applies.
	transport := newTransport()
	if err := trust(transport, env); err != nil {
		return err
	}
	c.use(cfg, transport)
	c.AWS.Credentials = c.cached(&login{field: "spec.auth", doing: "the operator's own identity has no credentials", next: cfg.Credentials, denied: deniedAmbient(cfg)})
	return nil
}

// useAuth takes only settings such as endpoints from the operator's environment: no files, no profile, no
// region and no identity.
func (c *Config) useAuth(ctx context.Context, spec *v1alpha1.AWSSpec, creds provider.Credentials, retryer func() aws.Retryer) error {
	if spec.Region == "" {
		return provider.NewError(provider.Invalid, "spec.region: required with spec.auth; set it, for example to eu-central-1")
	}
	env, err := awsEnv()
	if err != nil {
		return err
	}
	c.use(aws.Config{Region: spec.Region, Retryer: retryer, AppID: appID, ConfigSources: []any{env}}, newTransport())
	switch {
	case spec.Auth.SecretRef != nil:
		c.credentialsSource = secretSource
		c.AWS.Credentials, err = static(ctx, spec.Auth.SecretRef, creds)
	case spec.Auth.OperatorServiceAccount != nil:
		c.credentialsSource = ownSource
	default:
		c.credentialsSource = serviceAccountSource
		c.annotated, err = annotatedRole(ctx, spec, creds)
	}
	return err
}

func (c *Config) use(cfg aws.Config, t *http.Transport) {
	c.AWS, c.transport = cfg, t
	c.AWS.HTTPClient = newHTTPClient(t)
}

// check rejects settings with which no call could succeed. The API server already rejects most of them.
func check(spec *v1alpha1.AWSSpec) error {
	passed := spec.ExternalID != "" || len(spec.SessionTags) > 0 || len(spec.TransitiveTagKeys) > 0 || spec.SessionTagsPolicy == v1alpha1.SessionTagsSimple
	if err := checkAuth(spec); err != nil {
		return err
	}
	switch {
	case spec.Region != "" && !region.MatchString(spec.Region):
		return provider.NewError(provider.Invalid, "spec.region: %q is not a region; write it as eu-central-1", spec.Region)
	case spec.Role == "" && (passed || len(spec.AdditionalRoles) > 0):
		return provider.NewError(provider.Invalid, "spec.role: required with additionalRoles, externalID, sessionTags, sessionTagsPolicy or transitiveTagKeys")
	case spec.Auth.ByToken() && passed && len(spec.AdditionalRoles) == 0:
		return provider.NewError(provider.Invalid, "spec.role: externalID, sessionTags, sessionTagsPolicy and transitiveTagKeys cannot be used with a role that is assumed with a token; remove them, or name the role that trusts the ServiceAccount in spec.additionalRoles")
	}
	return nil
}

func checkAuth(spec *v1alpha1.AWSSpec) error {
	a := spec.Auth
	if a == nil {
		return nil
	}
	_, err := provider.ExactlyOne("spec.auth", provider.Choice{Field: "secretRef", Set: a.SecretRef != nil},
		provider.Choice{Field: "serviceAccountRef", Set: a.ServiceAccountRef != nil}, provider.Choice{Field: "operatorServiceAccount", Set: a.OperatorServiceAccount != nil})
	if err == nil && a.OperatorServiceAccount != nil && spec.Role == "" {
		return provider.NewError(provider.Invalid, "spec.role: required with auth.operatorServiceAccount; set it to the ARN of the IAM role that trusts the operator's own ServiceAccount")
	}
	return err
}
