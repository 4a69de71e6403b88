package secretsmanager

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// Check lists one secret. Where that very permission is missing the login works all the same.
func (c *Client) Check(ctx context.Context) error {
	out, err := awsconfig.Call(ctx, c.config, c.api.ListSecrets, &secretsmanager.ListSecretsInput{MaxResults: aws.Int32(1)})
	if err == nil && out.SecretList == nil {
		return awsconfig.NoList("listing one secret")
	}
	return c.config.LoginFailure(err, codes)
}
