// Package secretsmanager reads and writes AWS Secrets Manager for the store Kind AWSSecretsManager.
package secretsmanager

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A Client reads and writes one store.
type Client struct {
	api      api
	config   *awsconfig.Config
	denied   awsconfig.Denied
	deletion *v1alpha1.AWSSecretsManagerDeletion
	names    names
}

// An api holds the calls of the SDK's client that this package needs.
type api interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
	BatchGetSecretValue(context.Context, *secretsmanager.BatchGetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.BatchGetSecretValueOutput, error)
	ListSecrets(context.Context, *secretsmanager.ListSecretsInput, ...func(*secretsmanager.Options)) (*secretsmanager.ListSecretsOutput, error)
	DescribeSecret(context.Context, *secretsmanager.DescribeSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.DescribeSecretOutput, error)

	CreateSecret(context.Context, *secretsmanager.CreateSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.CreateSecretOutput, error)
	RestoreSecret(context.Context, *secretsmanager.RestoreSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.RestoreSecretOutput, error)
	PutSecretValue(context.Context, *secretsmanager.PutSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.PutSecretValueOutput, error)
	UpdateSecretVersionStage(context.Context, *secretsmanager.UpdateSecretVersionStageInput, ...func(*secretsmanager.Options)) (*secretsmanager.UpdateSecretVersionStageOutput, error)
	UpdateSecret(context.Context, *secretsmanager.UpdateSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.UpdateSecretOutput, error)
	TagResource(context.Context, *secretsmanager.TagResourceInput, ...func(*secretsmanager.Options)) (*secretsmanager.TagResourceOutput, error)
	ReplicateSecretToRegions(context.Context, *secretsmanager.ReplicateSecretToRegionsInput, ...func(*secretsmanager.Options)) (*secretsmanager.ReplicateSecretToRegionsOutput, error)
	RemoveRegionsFromReplication(context.Context, *secretsmanager.RemoveRegionsFromReplicationInput, ...func(*secretsmanager.Options)) (*secretsmanager.RemoveRegionsFromReplicationOutput, error)
	GetResourcePolicy(context.Context, *secretsmanager.GetResourcePolicyInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetResourcePolicyOutput, error)
	PutResourcePolicy(context.Context, *secretsmanager.PutResourcePolicyInput, ...func(*secretsmanager.Options)) (*secretsmanager.PutResourcePolicyOutput, error)
	DeleteSecret(context.Context, *secretsmanager.DeleteSecretInput, ...func(*secretsmanager.Options)) (*secretsmanager.DeleteSecretOutput, error)
}

// An Object is a store Kind of Secrets Manager.
type Object interface {
	awsconfig.StoreObject

	// Deletion describes how secrets are deleted; nil means AWS's default.
	Deletion() *v1alpha1.AWSSecretsManagerDeletion
}

var (
	_ provider.Batcher    = &Client{}
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
)

// Connect returns the client of a store, namespaced or not. It does not call AWS.
func Connect[S Object](ctx context.Context, s S, creds provider.Credentials) (provider.Client, error) {
	c, err := awsconfig.LoadStore(ctx, s, creds)
	if err != nil {
		return nil, err
	}
	return &Client{config: c, deletion: s.Deletion(), api: sdk(c)}, nil
}

func sdk(c *awsconfig.Config) *secretsmanager.Client {
	return secretsmanager.NewFromConfig(c.AWS, func(o *secretsmanager.Options) { o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint) })
}

// Identity returns the account and the region of the store.
func (c *Client) Identity(ctx context.Context) (provider.Identity, error) {
	return c.config.Identity(ctx, "secretsmanager")
}

// Close releases connections.
func (c *Client) Close() error { return c.config.Close() }

// Get reads one version of a secret, and its tags if metadata is requested.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	if err := c.config.CheckKey(ref.Key); err != nil {
		return provider.Value{}, err
	}
	in := &secretsmanager.GetSecretValueInput{SecretId: aws.String(c.config.ID(ref.Key))}
	in.VersionId, in.VersionStage = version(ref.Version)
	out, err := awsconfig.Call(ctx, c.config, c.api.GetSecretValue, in)
	if err != nil {
		return provider.Value{}, c.explain(err, c.about(ref))
	}
	v, err := value(ref, out.SecretString, out.SecretBinary, out.VersionId)
	if err != nil || !ref.Metadata {
		return v, err
	}
	v.Metadata, err = c.tags(ctx, ref)
	if err != nil {
		return provider.Value{}, err
	}
	return v, nil
}

func (c *Client) tags(ctx context.Context, ref provider.Ref) (map[string]string, error) {
	out, err := awsconfig.Call(ctx, c.config, c.api.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: aws.String(c.config.ID(ref.Key))})
	if err != nil {
		return nil, c.explain(err, "metadata of "+c.about(provider.Ref{Key: ref.Key}))
	}
	return tagMap(out.Tags), nil
}

func tagMap(tags []types.Tag) map[string]string {
	return awsconfig.TagMap(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

// value returns the Value of an answer. An answer without a value is Unavailable.
func value(ref provider.Ref, text *string, binary []byte, id *string) (provider.Value, error) {
	v := provider.Value{Key: ref.Key, Data: binary, Version: VersionName(aws.ToString(id))}
	if text != nil {
		v.Data = []byte(*text)
	}
	if v.Data == nil || v.Version == "" {
		return provider.Value{}, provider.NewError(provider.Unavailable, "%s: the response of AWS has no value", about(ref))
	}
	return v, nil
}
