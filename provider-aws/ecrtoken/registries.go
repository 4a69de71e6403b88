package ecrtoken

import (
	"cmp"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A registry is a service that gives logins. Both are asked in the same way, but for the names.
type registry struct {
	service awsconfig.Service
	// name is that in signatures, and region the only one in which it is, if there is one.
	name, region string
	// target begins the name of the operation in requests.
	target string
	// address is where its images are, where answers do not say so.
	address string
	// actions are the permissions that it takes.
	actions string
}

var private = registry{
	service: awsconfig.Service{ID: "ECR", Host: "api.ecr", DualStackHost: "ecr"},
	name:    "ecr", target: "AmazonEC2ContainerRegistry_V20150921", actions: "ecr:GetAuthorizationToken",
}

// registries are the services by spec.scope, as the API references have them:
// https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_GetAuthorizationToken.html and
// https://docs.aws.amazon.com/AmazonECRPublic/latest/APIReference/API_GetAuthorizationToken.html.
var registries = map[v1alpha1.ECRScope]registry{
	"":                  private,
	v1alpha1.ECRPrivate: private,
	v1alpha1.ECRPublic: {
		service: awsconfig.Service{ID: "ECR PUBLIC", Host: "api.ecr-public", DualStackHost: "ecr-public"},
		name:    "ecr-public", region: "us-east-1", target: "SpencerFrontendService", address: "https://public.ecr.aws",
		actions: "ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken",
	},
}

// codes are the errors of these services beside those common to AWS. What AWS does not have here, or has
// newly, is Unavailable.
var codes = awsconfig.Codes{
	"ServerException":             {Class: store.Unavailable, Text: "AWS has an internal error"},
	"UnsupportedCommandException": {Class: store.Invalid, Text: "AWS has no such registries there; correct spec.scope or spec.region"},
}

// endpoint is the address of the registries that a login is for.
func (d *authorization) endpoint(r registry) string { return cmp.Or(d.ProxyEndpoint, r.address) }
