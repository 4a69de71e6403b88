// Package secretsmanager reads AWS Secrets Manager for the store Kind AWSSecretsManager.
package secretsmanager

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// A Client reads one store.
type Client struct {
	api    *secretsmanager.Client
	config *awsconfig.Config
	prefix string
	now    func() time.Time

	// batchDenied is until when, in nanoseconds since 1970, no batch is tried.
	batchDenied atomic.Int64
}

var (
	_ store.Batcher = &Client{}
	_ store.Finder  = &Client{}
	_ store.Checker = &Client{}
)

// Connect makes the client of a store. AWS is not called.
func Connect(ctx context.Context, s *v1alpha1.AWSSecretsManager, creds store.Credentials) (store.Client, error) {
	return connect(ctx, s, &s.Spec.AWSSpec, creds)
}

func connect(ctx context.Context, o store.Object, spec *v1alpha1.AWSSpec, creds store.Credentials) (store.Client, error) {
	c, err := awsconfig.Load(ctx, o, spec, creds)
	if err != nil {
		return nil, err
	}
	api := secretsmanager.NewFromConfig(c.AWS, func(o *secretsmanager.Options) {
		if c.Endpoint != nil {
			o.BaseEndpoint = c.Endpoint
		}
	})
	return &Client{api: api, config: c, prefix: spec.Prefix, now: time.Now}, nil
}

// Close releases connections.
func (c *Client) Close() error { return c.config.Close() }

// Get reads one version of a secret, and its tags where metadata is asked for.
func (c *Client) Get(ctx context.Context, ref store.Ref) (store.Value, error) {
	if err := c.checkKey(ref.Key); err != nil {
		return store.Value{}, err
	}
	in := &secretsmanager.GetSecretValueInput{SecretId: aws.String(c.id(ref.Key))}
	in.VersionId, in.VersionStage = version(ref.Version)
	out, err := call(ctx, c, c.api.GetSecretValue, in)
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
	out, err := call(ctx, c, c.api.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: aws.String(c.id(ref.Key))})
	if err != nil {
		return nil, c.explain(err, "metadata of "+about(store.Ref{Key: ref.Key}))
	}
	return tagMap(out.Tags), nil
}

func tagMap(tags []types.Tag) map[string]string {
	m := make(map[string]string, len(tags))
	for _, t := range tags {
		m[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return m
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

// id is how AWS knows a key: ARNs are complete, names get the store's prefix.
func (c *Client) id(key string) string {
	if strings.HasPrefix(key, arnPrefix) {
		return key
	}
	return c.prefix + key
}

// maxID is the length of an id from which on AWS rejects a call, and with it a whole batch.
const maxID = 2048

func (c *Client) checkKey(key string) error {
	if key == "" || len(c.id(key)) > maxID {
		return store.NewError(store.Invalid, "a key of %d characters is none that AWS can have", len(key))
	}
	return nil
}

// call makes one call of the API. A session that ended before its time is replaced once.
func call[In, Out any](ctx context.Context, c *Client, f func(context.Context, *In, ...func(*secretsmanager.Options)) (*Out, error), in *In) (*Out, error) {
	ctx, said := awsconfig.Listen(ctx)
	out, err := f(ctx, in)
	if awsconfig.IsExpired(awsconfig.CodeOf(err)) && c.config.Forget() {
		out, err = f(ctx, in)
	}
	return out, said.Or(err)
}
