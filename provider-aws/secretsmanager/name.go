package secretsmanager

import (
	"context"
	stderrors "errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

var _ provider.Namer = &Client{}

// maxNames is the maximum number of names that are kept.
const maxNames = 10_000

// names are the names of secrets by ARN. The zero names are empty.
type names struct {
	mu sync.Mutex
	// Bound: maxNames.
	all map[string]string
}

func (n *names) known(arn string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.all[arn]
	return name, ok
}

func (n *names) keep(arn, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil || len(n.all) >= maxNames {
		n.all = map[string]string{}
	}
	n.all[arn] = name
}

// Name returns the name of a secret of the account and region of the store, and the ARN of any other. It asks AWS for the name in
// an ARN, because the last characters can be a part of the name or AWS's own.
func (c *Client) Name(ctx context.Context, key string) (provider.Name, error) {
	if err := c.config.CheckKey(key); err != nil || !awsconfig.IsARN(key) {
		return provider.Name{Key: c.config.ID(key)}, err
	}
	if name, ok := c.names.known(key); ok {
		return provider.Name{Key: name}, nil
	}
	d, err := c.describe(ctx, key)
	switch {
	case provider.IsNotFound(err):
		return provider.Name{Key: key}, nil
	case err != nil:
		return provider.Name{}, err
	}
	name := aws.ToString(d.Name)
	own, err := c.owns(ctx, *d.ARN, name)
	if err != nil {
		return provider.Name{}, err
	}
	if !own || name == "" {
		name = key
	}
	c.names.keep(key, name)
	return provider.Name{Key: name}, nil
}

// owns reports whether a secret is in the account and region of the store.
func (c *Client) owns(ctx context.Context, arn, name string) (bool, error) {
	own, err := c.config.Owns(ctx, arn)
	if !stderrors.Is(err, stderrors.ErrUnsupported) {
		return own, err
	}
	// The account is not known. The name alone means a secret of it.
	d, err := do(ctx, c, c.api.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: aws.String(name)}, "DescribeSecret", name)
	if provider.IsNotFound(err) {
		return false, nil
	}
	return err == nil && aws.ToString(d.ARN) == arn, err
}
