package secretsmanager

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// defaultKey is the KMS key of secrets that set none. AWS omits it in its answers.
const defaultKey = "alias/aws/secretsmanager"

// settings decodes and checks the metadata of a target, and checks its key.
func (c *Client) settings(t provider.Target) (m awsconfig.Metadata, err error) {
	if err := c.config.CheckKey(t.Key); err != nil {
		return m, err
	}
	if err := awsconfig.ParseMetadata(t.Metadata, &m, "description, kmsKeyID and tags"); err != nil {
		return m, err
	}
	return m, m.Check()
}

// settingsOf returns the settings of a secret.
func settingsOf(d *secretsmanager.DescribeSecretOutput) awsconfig.Metadata {
	return awsconfig.Metadata{
		Description: aws.ToString(d.Description), KMSKeyID: cmp.Or(aws.ToString(d.KmsKeyId), defaultKey), Tags: tagMap(d.Tags),
	}
}

func tagList(tags map[string]string) []types.Tag {
	return awsconfig.TagList(tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}

// given returns nil for an empty setting, which leaves it unchanged.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
