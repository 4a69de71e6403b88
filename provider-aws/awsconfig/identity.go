package awsconfig

import (
	"context"
	stderrors "errors"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

var accountNumber = regexp.MustCompile(`^[0-9]{12}$`)

// Identity returns the place of a service's secrets: the account that STS names, and a region. A store chooses
// the endpoint of its service, but never that of STS. A custom endpoint is part of the place, because any
// server can run there.
func (c *Config) Identity(ctx context.Context, service string) (provider.Identity, error) {
	number, err := c.inAccount(ctx)
	if err != nil {
		return provider.Identity{}, err
	}
	place := []string{service, number, c.AWS.Region}
	if c.Endpoint != nil {
		place = append(place, strings.TrimRight(*c.Endpoint, "/"))
	}
	return provider.Identity{Place: strings.Join(place, " "), Prefix: c.Prefix}, nil
}

// Owns reports whether an ARN is of the account and region of the store. The error is errors.ErrUnsupported if the account is not
// known.
func (c *Config) Owns(ctx context.Context, id string) (bool, error) {
	parsed, err := arn.Parse(id)
	if err != nil || parsed.Region != c.AWS.Region {
		return false, nil //nolint:nilerr // AWS knows no such secret.
	}
	number, err := c.inAccount(ctx)
	return number == parsed.AccountID, err
}

// inAccount returns the account number. A store with a custom endpoint might not use AWS at all, so STS is
// called only if the operator's environment names its endpoint.
func (c *Config) inAccount(ctx context.Context) (string, error) {
	if c.Endpoint != nil && !c.choosesSTS(ctx) {
		return "", errors.Wrap(stderrors.ErrUnsupported, "the account behind spec.endpoint")
	}
	if known := c.account.Load(); known != nil {
		return *known, nil
	}
	out, err := Call(ctx, c, c.STS().GetCallerIdentity, &sts.GetCallerIdentityInput{})
	switch {
	case err != nil:
		return "", c.Explain(err, "the account", nil)
	case !accountNumber.MatchString(aws.ToString(out.Account)):
		return "", provider.NewError(provider.Unavailable, "the response of AWS has no account")
	}
	c.account.Store(out.Account)
	return *out.Account, nil
}

// choosesSTS reports whether the operator's environment names an endpoint for STS.
func (c *Config) choosesSTS(ctx context.Context) bool {
	for _, s := range c.AWS.ConfigSources {
		if env, ok := s.(config.EnvConfig); ok {
			_, found, err := env.GetServiceBaseEndpoint(ctx, sts.ServiceID)
			return found && err == nil
		}
	}
	return false
}
