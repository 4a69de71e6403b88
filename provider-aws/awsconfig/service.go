package awsconfig

import (
	"context"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// A Service is a service of AWS whose client of the SDK is not used, because all of its calls would be in
// the binary.
type Service struct {
	// ID is the SDK's name of the service. AWS_ENDPOINT_URL_<ID> moves it, as it does with the SDK.
	ID string
	// Host and DualStackHost begin its addresses, before the region.
	Host, DualStackHost string
}

// URL returns the address of a service in a region: spec.endpoint, or what the operator's environment
// says, or AWS's own.
func (c *Config) URL(ctx context.Context, s Service, region string) (*url.URL, error) {
	env := c.env()
	raw := aws.ToString(c.Endpoint)
	if ignored, _, _ := env.GetIgnoreConfiguredEndpoints(ctx); raw == "" && !ignored {
		raw, _, _ = env.GetServiceBaseEndpoint(ctx, s.ID)
	}
	if raw != "" {
		u, err := url.Parse(raw)
		if err != nil {
			return nil, store.NewError(store.Invalid, "the operator's AWS_ENDPOINT_URL_%s is not a URL; correct it", s.ID)
		}
		return u, nil
	}

	// The SDK has the domains of AWS's partitions, but gives them only as part of an address of a service.
	fips, dual := env.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled, env.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled
	like, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, sts.EndpointParameters{
		Region: aws.String(region), UseFIPS: aws.Bool(false), UseDualStack: aws.Bool(dual), UseGlobalEndpoint: aws.Bool(false),
	})
	if err != nil {
		return nil, store.NewError(store.Invalid, "AWS has no address with the operator's AWS_USE_DUALSTACK_ENDPOINT in region %s; unset it, or correct spec.region", region)
	}
	host := s.Host
	if dual {
		host = s.DualStackHost
	}
	if fips {
		host += "-fips"
	}
	_, rest, _ := strings.Cut(like.URI.Host, ".")
	return &url.URL{Scheme: "https", Host: host + "." + rest}, nil
}

// env is the operator's environment.
func (c *Config) env() config.EnvConfig {
	for _, s := range c.AWS.ConfigSources {
		if env, ok := s.(config.EnvConfig); ok {
			return env
		}
	}
	return config.EnvConfig{}
}
