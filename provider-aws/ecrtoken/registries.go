package ecrtoken

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecrpublic"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A registry is a service that issues registry logins. The SDK has a separate client and separate types for
// each.
type registry struct {
	// connect returns the authorizer of the service.
	connect func(*awsconfig.Config) authorizer
	// actions names the permissions that the service requires.
	actions string
}

// An authorizer requests one login. A field that is missing in the answer is zero.
type authorizer interface {
	authorize(context.Context) (authorization, error)
}

// An authorization is a login to registries.
type authorization struct {
	// token is the user and the password, joined by a colon and encoded as base64.
	token   string
	expires time.Time
	// endpoint is the address of the registries.
	endpoint string
}

// publicAddress is the address of the public registry, which its answers do not contain.
const publicAddress = "https://public.ecr.aws"

var private = registry{actions: "ecr:GetAuthorizationToken", connect: func(c *awsconfig.Config) authorizer {
	return privateRegistry{config: c, api: ecr.NewFromConfig(c.AWS, func(o *ecr.Options) {
		o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint)
	})}
}}

var public = registry{actions: "ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken", connect: func(c *awsconfig.Config) authorizer {
	return publicRegistry{config: c, api: ecrpublic.NewFromConfig(c.AWS, func(o *ecrpublic.Options) {
		o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint)
		o.Region = "us-east-1" // The service exists in this region only.
	})}
}}

// registries are the services by spec.scope, as the API references have them:
// https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_GetAuthorizationToken.html and
// https://docs.aws.amazon.com/AmazonECRPublic/latest/APIReference/API_GetAuthorizationToken.html.
var registries = map[v1alpha1.ECRScope]registry{"": private, v1alpha1.ECRPrivate: private, v1alpha1.ECRPublic: public}

// A privateAPI is the call of the SDK's client that this package needs.
type privateAPI interface {
	GetAuthorizationToken(context.Context, *ecr.GetAuthorizationTokenInput, ...func(*ecr.Options)) (*ecr.GetAuthorizationTokenOutput, error)
}

type privateRegistry struct {
	config *awsconfig.Config
	api    privateAPI
}

func (r privateRegistry) authorize(ctx context.Context) (authorization, error) {
	out, err := awsconfig.Call(ctx, r.config, r.api.GetAuthorizationToken, &ecr.GetAuthorizationTokenInput{})
	if err != nil || len(out.AuthorizationData) == 0 {
		return authorization{}, err
	}
	d := out.AuthorizationData[0]
	return authorization{token: aws.ToString(d.AuthorizationToken), expires: aws.ToTime(d.ExpiresAt), endpoint: aws.ToString(d.ProxyEndpoint)}, nil
}

// A publicAPI is the call of the SDK's client that this package needs.
type publicAPI interface {
	GetAuthorizationToken(context.Context, *ecrpublic.GetAuthorizationTokenInput, ...func(*ecrpublic.Options)) (*ecrpublic.GetAuthorizationTokenOutput, error)
}

type publicRegistry struct {
	config *awsconfig.Config
	api    publicAPI
}

func (r publicRegistry) authorize(ctx context.Context) (authorization, error) {
	out, err := awsconfig.Call(ctx, r.config, r.api.GetAuthorizationToken, &ecrpublic.GetAuthorizationTokenInput{})
	if err != nil || out.AuthorizationData == nil {
		return authorization{}, err
	}
	d := out.AuthorizationData
	return authorization{token: aws.ToString(d.AuthorizationToken), expires: aws.ToTime(d.ExpiresAt), endpoint: publicAddress}, nil
}

// codes are the error codes of these services in addition to the common ones of AWS. Any other
// code is Unavailable.
var codes = awsconfig.Codes{
	"ServerException":             {Class: provider.Unavailable, Text: "AWS has an internal error"},
	"UnsupportedCommandException": {Class: provider.Invalid, Text: "AWS has no registries of this scope in the region; correct spec.scope or spec.region"},
}
