package secretsmanager

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// Check lists one secret. It also passes if only the permission for that call is missing, because then the
// login works.
func (c *Client) Check(ctx context.Context) error {
	out, err := awsconfig.Call(ctx, c.config, c.api.ListSecrets, &secretsmanager.ListSecretsInput{MaxResults: aws.Int32(1)})
	if err == nil && out.SecretList == nil {
		return awsconfig.NoList("listing one secret")
	}
	return c.config.LoginFailure(err, codes)
}
