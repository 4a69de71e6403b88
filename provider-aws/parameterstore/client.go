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

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A Client reads and writes one store.
type Client struct {
	api    calls
	config *awsconfig.Config
	denied awsconfig.Denied
}

// calls are the calls of AWS that are used, as functions: see awsconfig.API.
type calls struct {
	get      awsconfig.API[ssm.GetParameterInput, ssm.GetParameterOutput, ssm.Options]
	getMany  awsconfig.API[ssm.GetParametersInput, ssm.GetParametersOutput, ssm.Options]
	getBelow awsconfig.API[ssm.GetParametersByPathInput, ssm.GetParametersByPathOutput, ssm.Options]
	describe awsconfig.API[ssm.DescribeParametersInput, ssm.DescribeParametersOutput, ssm.Options]
	listTags awsconfig.API[ssm.ListTagsForResourceInput, ssm.ListTagsForResourceOutput, ssm.Options]

	put    awsconfig.API[ssm.PutParameterInput, ssm.PutParameterOutput, ssm.Options]
	tag    awsconfig.API[ssm.AddTagsToResourceInput, ssm.AddTagsToResourceOutput, ssm.Options]
	remove awsconfig.API[ssm.DeleteParameterInput, ssm.DeleteParameterOutput, ssm.Options]
}

var (
	_ store.Batcher = &Client{}
	_ store.Finder  = &Client{}
	_ store.Checker = &Client{}
)

// What the loops of common ask for, for these Kinds.
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=awsparameterstores,verbs=list;watch
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=awsparameterstores/status,verbs=patch
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=clusterawsparameterstores,verbs=list;watch,roleName=cluster
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=clusterawsparameterstores/status,verbs=patch,roleName=cluster

// Connect makes the client of a store, namespaced or not. AWS is not called.
func Connect[S awsconfig.StoreObject](ctx context.Context, s S, creds store.Credentials) (store.Client, error) {
	c, err := awsconfig.LoadStore(ctx, s, creds)
	if err != nil {
		return nil, err
	}
	api := ssm.NewFromConfig(c.AWS, func(o *ssm.Options) { o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint) })
	return &Client{config: c, api: calls{
		get: api.GetParameter, getMany: api.GetParameters, getBelow: api.GetParametersByPath,
		describe: api.DescribeParameters, listTags: api.ListTagsForResource,
		put: api.PutParameter, tag: api.AddTagsToResource, remove: api.DeleteParameter,
	}}, nil
}

// Close releases connections.
func (c *Client) Close() error { return c.config.Close() }

// Check describes one parameter. Where that very permission is missing the login works all the same.
func (c *Client) Check(ctx context.Context) error {
	out, err := awsconfig.Call(ctx, c.config, c.api.describe, &ssm.DescribeParametersInput{MaxResults: aws.Int32(1)})
	if err == nil && out.Parameters == nil {
		return awsconfig.NoList("describing one parameter")
	}
	return c.config.LoginFailure(err, codes)
}

// Get reads one version of a parameter, and its tags where metadata is asked for.
func (c *Client) Get(ctx context.Context, ref store.Ref) (store.Value, error) {
	id, err := c.id(ref)
	if err != nil {
		return store.Value{}, err
	}
	out, err := awsconfig.Call(ctx, c.config, c.api.get, &ssm.GetParameterInput{Name: aws.String(id), WithDecryption: aws.Bool(true)})
	if err != nil {
		return store.Value{}, c.explain(err, about(ref))
	}
	return c.complete(ctx, ref, out.Parameter)
}

// complete makes a Value of an answer, with tags where they are asked for.
func (c *Client) complete(ctx context.Context, ref store.Ref, p *types.Parameter) (store.Value, error) {
	v, err := value(ref, p)
	if err != nil || !ref.Metadata {
		return v, err
	}
	if v.Metadata, err = c.tags(ctx, aws.ToString(p.Name)); err != nil {
		return store.Value{}, c.explain(err, "metadata of "+about(store.Ref{Key: ref.Key}))
	}
	return v, nil
}

// tags of a parameter. Here AWS takes its name, and no ARN.
func (c *Client) tags(ctx context.Context, name string) (map[string]string, error) {
	in := &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String(name)}
	out, err := awsconfig.Call(ctx, c.config, c.api.listTags, in)
	if err != nil {
		return nil, err
	}
	return tagMap(out.TagList), nil
}

func tagMap(tags []types.Tag) map[string]string {
	return awsconfig.TagMap(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

// value makes a Value of an answer, whatever the type of the parameter. One without any value proves
// nothing.
func value(ref store.Ref, p *types.Parameter) (store.Value, error) {
	if p == nil || p.Value == nil {
		return store.Value{}, store.NewError(store.Unavailable, "%s: the answer of AWS lacks the value", about(ref))
	}
	return store.Value{Key: ref.Key, Data: []byte(*p.Value), Version: strconv.FormatInt(p.Version, 10)}, nil
}
