// Package secretsmanager reads and writes AWS Secrets Manager for the store Kind AWSSecretsManager.
package secretsmanager

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A Client reads and writes one store.
type Client struct {
	api      calls
	config   *awsconfig.Config
	denied   awsconfig.Denied
	deletion *v1alpha1.AWSSecretsManagerDeletion
}

// calls are the calls of AWS that are used, as functions: see awsconfig.API.
type calls struct {
	get      awsconfig.API[secretsmanager.GetSecretValueInput, secretsmanager.GetSecretValueOutput, secretsmanager.Options]
	getMany  awsconfig.API[secretsmanager.BatchGetSecretValueInput, secretsmanager.BatchGetSecretValueOutput, secretsmanager.Options]
	list     awsconfig.API[secretsmanager.ListSecretsInput, secretsmanager.ListSecretsOutput, secretsmanager.Options]
	describe awsconfig.API[secretsmanager.DescribeSecretInput, secretsmanager.DescribeSecretOutput, secretsmanager.Options]

	create  awsconfig.API[secretsmanager.CreateSecretInput, secretsmanager.CreateSecretOutput, secretsmanager.Options]
	restore awsconfig.API[secretsmanager.RestoreSecretInput, secretsmanager.RestoreSecretOutput, secretsmanager.Options]
	put     awsconfig.API[secretsmanager.PutSecretValueInput, secretsmanager.PutSecretValueOutput, secretsmanager.Options]
	stage   awsconfig.API[secretsmanager.UpdateSecretVersionStageInput, secretsmanager.UpdateSecretVersionStageOutput, secretsmanager.Options]
	update  awsconfig.API[secretsmanager.UpdateSecretInput, secretsmanager.UpdateSecretOutput, secretsmanager.Options]
	tag     awsconfig.API[secretsmanager.TagResourceInput, secretsmanager.TagResourceOutput, secretsmanager.Options]
	remove  awsconfig.API[secretsmanager.DeleteSecretInput, secretsmanager.DeleteSecretOutput, secretsmanager.Options]
}

// An Object is a store Kind of Secrets Manager.
type Object interface {
	awsconfig.StoreObject

	// Deletion says how secrets are deleted; nil means as AWS does it.
	Deletion() *v1alpha1.AWSSecretsManagerDeletion
}

var (
	_ store.Batcher = &Client{}
	_ store.Finder  = &Client{}
	_ store.Checker = &Client{}
)

// What the loops of common ask for, for these Kinds.
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=awssecretsmanagers,verbs=list;watch
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=awssecretsmanagers/status,verbs=patch
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=clusterawssecretsmanagers,verbs=list;watch,roleName=cluster
// +kubebuilder:rbac:groups=aws.direct-secrets.io,resources=clusterawssecretsmanagers/status,verbs=patch,roleName=cluster

// Connect makes the client of a store, namespaced or not. AWS is not called.
func Connect[S Object](ctx context.Context, s S, creds store.Credentials) (store.Client, error) {
	c, err := awsconfig.LoadStore(ctx, s, creds)
	if err != nil {
		return nil, err
	}
	api := sdk(c)
	return &Client{config: c, deletion: s.Deletion(), api: calls{
		get: api.GetSecretValue, getMany: api.BatchGetSecretValue, list: api.ListSecrets, describe: api.DescribeSecret,
		create: api.CreateSecret, restore: api.RestoreSecret, put: api.PutSecretValue, stage: api.UpdateSecretVersionStage,
		update: api.UpdateSecret, tag: api.TagResource, remove: api.DeleteSecret,
	}}, nil
}

func sdk(c *awsconfig.Config) *secretsmanager.Client {
	return secretsmanager.NewFromConfig(c.AWS, func(o *secretsmanager.Options) { o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint) })
}

// Close releases connections.
func (c *Client) Close() error { return c.config.Close() }

// Get reads one version of a secret, and its tags where metadata is asked for.
func (c *Client) Get(ctx context.Context, ref store.Ref) (store.Value, error) {
	if err := c.config.CheckKey(ref.Key); err != nil {
		return store.Value{}, err
	}
	in := &secretsmanager.GetSecretValueInput{SecretId: aws.String(c.config.ID(ref.Key))}
	in.VersionId, in.VersionStage = version(ref.Version)
	out, err := awsconfig.Call(ctx, c.config, c.api.get, in)
	if err != nil {
		return store.Value{}, c.explain(err, about(ref))
	}
	v, err := value(ref, out.SecretString, out.SecretBinary, out.VersionId)
	if err != nil || !ref.Metadata {
		return v, err
	}
	v.Metadata, err = c.tags(ctx, ref)
	if err != nil {
		return store.Value{}, err
	}
	return v, nil
}

func (c *Client) tags(ctx context.Context, ref store.Ref) (map[string]string, error) {
	out, err := awsconfig.Call(ctx, c.config, c.api.describe, &secretsmanager.DescribeSecretInput{SecretId: aws.String(c.config.ID(ref.Key))})
	if err != nil {
		return nil, c.explain(err, "metadata of "+about(store.Ref{Key: ref.Key}))
	}
	return tagMap(out.Tags), nil
}

func tagMap(tags []types.Tag) map[string]string {
	return awsconfig.TagMap(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

// value makes a Value of an answer. One without any value proves nothing.
func value(ref store.Ref, text *string, binary []byte, id *string) (store.Value, error) {
	v := store.Value{Key: ref.Key, Data: binary, Version: versionName(aws.ToString(id))}
	if text != nil {
		v.Data = []byte(*text)
	}
	if v.Data == nil || v.Version == "" {
		return store.Value{}, store.NewError(store.Unavailable, "%s: the answer of AWS lacks the value", about(ref))
	}
	return v, nil
}
