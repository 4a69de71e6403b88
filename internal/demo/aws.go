package demo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// putSecret creates a secret, or updates its value, with the AWS SDK as a user would.
func (d *demo) putSecret(ctx context.Context, name, value string) error {
	c := secretsmanager.New(secretsmanager.Options{
		Region:       stack.Region,
		BaseEndpoint: aws.String(d.stack.AWS.URL()),
		Credentials:  credentials.NewStaticCredentialsProvider(stack.AccessKeyID, stack.SecretAccessKey, ""),
	})
	_, err := c.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: &value})
	if exists := (*types.ResourceExistsException)(nil); errors.As(err, &exists) {
		_, err = c.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &name, SecretString: &value})
	}
	return err
}
