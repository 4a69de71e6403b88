// Package parameterstore reads and writes AWS Systems Manager Parameter Store for the store Kind
// AWSParameterStore.
package parameterstore

import (
	"cmp"
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A Client reads and writes one store.
type Client struct {
	api    api
	config *awsconfig.Config
	denied awsconfig.Denied
}

// An api holds the calls of the SDK's client that this package needs.
type api interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
	GetParameters(context.Context, *ssm.GetParametersInput, ...func(*ssm.Options)) (*ssm.GetParametersOutput, error)
	GetParametersByPath(context.Context, *ssm.GetParametersByPathInput, ...func(*ssm.Options)) (*ssm.GetParametersByPathOutput, error)
	DescribeParameters(context.Context, *ssm.DescribeParametersInput, ...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error)
	ListTagsForResource(context.Context, *ssm.ListTagsForResourceInput, ...func(*ssm.Options)) (*ssm.ListTagsForResourceOutput, error)

	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
	AddTagsToResource(context.Context, *ssm.AddTagsToResourceInput, ...func(*ssm.Options)) (*ssm.AddTagsToResourceOutput, error)
	DeleteParameter(context.Context, *ssm.DeleteParameterInput, ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error)
}

var (
	_ provider.Batcher    = &Client{}
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
)

// Connect returns the client of a store, namespaced or not. It does not call AWS.
func Connect[S awsconfig.StoreObject](ctx context.Context, s S, creds provider.Credentials) (provider.Client, error) {
	c, err := awsconfig.LoadStore(ctx, s, creds)
	if err != nil {
		return nil, err
	}
	sdk := ssm.NewFromConfig(c.AWS, func(o *ssm.Options) { o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint) })
	return &Client{config: c, api: sdk}, nil
}

// Identity returns the account and the region of the store.
func (c *Client) Identity(ctx context.Context) (provider.Identity, error) {
	return c.config.Identity(ctx, "ssm")
}

// Close releases connections.
func (c *Client) Close() error { return c.config.Close() }

// Check describes one parameter. It also passes if only the permission for that call is missing, because then
// the login works.
func (c *Client) Check(ctx context.Context) error {
	out, err := awsconfig.Call(ctx, c.config, c.api.DescribeParameters, &ssm.DescribeParametersInput{MaxResults: aws.Int32(1)})
	if err == nil && out.Parameters == nil {
		return awsconfig.NoList("describing one parameter")
	}
	return c.config.LoginFailure(err, codes)
}

// Get reads one version of a parameter, and its tags if metadata is requested.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	id, err := c.id(ref)
	if err != nil {
		return provider.Value{}, err
	}
	out, err := awsconfig.Call(ctx, c.config, c.api.GetParameter, &ssm.GetParameterInput{Name: aws.String(id), WithDecryption: aws.Bool(true)})
	if err != nil {
		return provider.Value{}, c.explain(err, c.about(ref))
	}
	return c.complete(ctx, ref, out.Parameter)
}

// complete returns the Value of an answer, with tags if metadata is requested.
func (c *Client) complete(ctx context.Context, ref provider.Ref, p *types.Parameter) (provider.Value, error) {
	v, err := value(ref, p)
	if err != nil || !ref.Metadata {
		return v, err
	}
	if v.Metadata, err = c.tags(ctx, aws.ToString(p.Name)); err != nil {
		return provider.Value{}, c.explain(err, "metadata of "+c.about(provider.Ref{Key: ref.Key}))
	}
	return v, nil
}

// tags returns the tags of a parameter. This call accepts its name, but not its ARN.
func (c *Client) tags(ctx context.Context, name string) (map[string]string, error) {
	in := &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String(name)}
	out, err := awsconfig.Call(ctx, c.config, c.api.ListTagsForResource, in)
	if err != nil {
		return nil, err
	}
	return tagMap(out.TagList), nil
}

func tagMap(tags []types.Tag) map[string]string {
	return awsconfig.TagMap(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

// value returns the Value of an answer, whatever the type of the parameter. An answer without a value is
// Unavailable.
func value(ref provider.Ref, p *types.Parameter) (provider.Value, error) {
	if p == nil || p.Value == nil {
		return provider.Value{}, provider.NewError(provider.Unavailable, "%s: the response of AWS has no value", about(ref))
	}
	return provider.Value{Key: ref.Key, Data: []byte(*p.Value), Version: strconv.FormatInt(p.Version, 10)}, nil
}
