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

// A registry is a service that gives logins. Each has a client of its own in the SDK, with types of its own.
type registry struct {
	// connect returns what asks the service for a login.
	connect func(*awsconfig.Config) authorizer
	// actions are the permissions that it takes.
	actions string
}

// An authorizer asks for one login. What an answer lacks is zero.
type authorizer interface {
	authorize(context.Context) (authorization, error)
}

// An authorization is a login to registries.
type authorization struct {
	// token is the user and the password, in base64.
	token   string
	expires time.Time
	// endpoint is the address of the registries.
	endpoint string
}

// publicAddress is where the images of the public registry are. Its answers do not say so.
const publicAddress = "https://public.ecr.aws"

var private = registry{actions: "ecr:GetAuthorizationToken", connect: func(c *awsconfig.Config) authorizer {
	return privateRegistry{config: c, api: ecr.NewFromConfig(c.AWS, func(o *ecr.Options) {
		o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint)
	})}
}}

var public = registry{actions: "ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken", connect: func(c *awsconfig.Config) authorizer {
	return publicRegistry{config: c, api: ecrpublic.NewFromConfig(c.AWS, func(o *ecrpublic.Options) {
		o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint)
		o.Region = "us-east-1" // It is in no other.
	})}
}}

// registries are the services by spec.scope, as the API references have them:
// https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_GetAuthorizationToken.html and
// https://docs.aws.amazon.com/AmazonECRPublic/latest/APIReference/API_GetAuthorizationToken.html.
var registries = map[v1alpha1.ECRScope]registry{"": private, v1alpha1.ECRPrivate: private, v1alpha1.ECRPublic: public}

// A privateAPI has the call of the SDK's client that is used.
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

// A publicAPI has the call of the SDK's client that is used.
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

// codes are the errors of these services beside those common to AWS. What AWS does not have here, or has
// newly, is Unavailable.
var codes = awsconfig.Codes{
	"ServerException":             {Class: provider.Unavailable, Text: "AWS has an internal error"},
	"UnsupportedCommandException": {Class: provider.Invalid, Text: "AWS has no such registries there; correct spec.scope or spec.region"},
}
