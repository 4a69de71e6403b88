// Package awsconfig turns the part that the Kinds of AWS share into what a client of any AWS
// service is made from: credentials, region, endpoint, transport and retries. Its Explain classifies
// the errors of AWS.
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

// appID shows in the user agent of every request.
const appID = "direct-secrets"

var region = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// A Config is what the clients of one store are made from.
type Config struct {
	// AWS has everything but the endpoint of the store's own service.
	AWS aws.Config
	// Endpoint of the store's own service; nil means that of the region. STS is not meant by it.
	Endpoint *string
	// Prefix is put before every key that is no ARN.
	Prefix string

	blame     blame
	transport *http.Transport
	caches    []*aws.CredentialsCache
	// sts is the endpoint of STS; nil means that of the region.
	sts *string
	// session makes a new session of spec.role each time, as caller; nil without a role.
	session aws.CredentialsProvider
	caller  aws.CredentialsProvider
	// account is the number of the one that is worked in, once it is known.
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

// Load returns the Config of a store or generator. It reads Secrets through creds, but calls neither AWS
// nor keeps ctx; creds are kept only for ServiceAccount tokens. Errors are of package store, and name
// the field to mend.
func Load(ctx context.Context, o Object, creds provider.Credentials) (*Config, error) {
	c, err := newConfig(ctx, o, creds)
	if err != nil {
		return nil, err
	}
	c.assume(o.AWS(), Session{}, sessionName(o.GetNamespace(), o.GetName()), creds)
	return c, nil
}

// LoadSTS returns the Config of what hands out sessions of STS. spec.endpoint is that of STS, and s says
// what OpenSession opens.
func LoadSTS(ctx context.Context, o Object, s Session, creds provider.Credentials) (*Config, error) {
	c, err := newConfig(ctx, o, creds)
	if err != nil {
		return nil, err
	}
	c.sts = c.Endpoint
	c.assume(o.AWS(), s, sessionName(o.GetNamespace(), o.GetName()), creds)
	return c, nil
}

// newConfig returns a Config that has assumed no role yet.
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

// Forget makes the next call log in anew, and reports whether that can help: it cannot with a
// static access key.
func (c *Config) Forget() bool {
	for _, cache := range c.caches {
		cache.Invalidate()
	}
	return len(c.caches) > 0
}

// useAmbient takes the operator's own identity and configuration.
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
	c.blame = ambientBlame
	// A certificate bundle that the operator was given stays in force.
	transport := newTransport()
	if err := trust(transport, env); err != nil {
		return err
	}
	c.use(cfg, transport)
	c.AWS.Credentials = c.cached(&login{field: "spec.auth", doing: "the operator's own identity gives no credentials", next: cfg.Credentials})
	return nil
}

// useAuth takes nothing from the operator's environment but endpoints and the like: no files, no
// profile, no region and no identity.
func (c *Config) useAuth(ctx context.Context, spec *v1alpha1.AWSSpec, creds provider.Credentials, retryer func() aws.Retryer) error {
	if spec.Region == "" {
		return provider.NewError(provider.Invalid, "spec.region: must be set where spec.auth is, for example eu-central-1")
	}
	env, err := awsEnv()
	if err != nil {
		return err
	}
	c.use(aws.Config{Region: spec.Region, Retryer: retryer, AppID: appID, ConfigSources: []any{env}}, newTransport())
	c.blame = serviceAccountBlame
	if ref := spec.Auth.SecretRef; ref != nil {
		c.blame = secretBlame
		c.AWS.Credentials, err = static(ctx, ref, creds)
	}
	return err
}

func (c *Config) use(cfg aws.Config, t *http.Transport) {
	c.AWS, c.transport = cfg, t
	c.AWS.HTTPClient = newHTTPClient(t)
}

// check finds what no call could succeed with. Most of it the API server rejects already.
func check(spec *v1alpha1.AWSSpec) error {
	passed := spec.ExternalID != "" || len(spec.SessionTags) > 0 || len(spec.TransitiveTagKeys) > 0
	byToken := spec.Auth != nil && spec.Auth.ServiceAccountRef != nil
	switch {
	case spec.Region != "" && !region.MatchString(spec.Region):
		return provider.NewError(provider.Invalid, "spec.region: %q is not a region; write it as eu-central-1", spec.Region)
	case spec.Auth != nil && (spec.Auth.SecretRef != nil) == byToken:
		return provider.NewError(provider.Invalid, "spec.auth: set either secretRef or serviceAccountRef")
	case byToken && spec.Role == "":
		return provider.NewError(provider.Invalid, "spec.role: must be set with spec.auth.serviceAccountRef, to the ARN of the role that trusts the ServiceAccount")
	case spec.Role == "" && (passed || len(spec.AdditionalRoles) > 0):
		return provider.NewError(provider.Invalid, "spec.role: must be set where additionalRoles, externalID, sessionTags or transitiveTagKeys are")
	case byToken && passed && len(spec.AdditionalRoles) == 0:
		return provider.NewError(provider.Invalid, "spec.role: is assumed with a token, which passes no externalID, sessionTags or transitiveTagKeys; remove them, or name the role that trusts the ServiceAccount in spec.additionalRoles")
	}
	return nil
}
