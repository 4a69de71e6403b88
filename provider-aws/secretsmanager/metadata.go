package secretsmanager

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// defaultKey is the KMS key of secrets that set none. AWS omits it in its answers.
const defaultKey = "alias/aws/secretsmanager"

// Metadata holds the settings that a provider.Target can have. An empty field is left unchanged in AWS.
type Metadata struct {
	awsconfig.Metadata

	// ReplicaRegions are regions that must have a replica. Replicas in other regions stay.
	ReplicaRegions []replicaRegion `json:"replicaRegions"`
	// ResourcePolicy is the policy of the secret.
	ResourcePolicy resourcePolicy `json:"resourcePolicy"`
}

// settings decodes and checks the metadata of a target, and checks its key.
func (c *Client) settings(t provider.Target) (m Metadata, err error) {
	if err := c.config.CheckKey(t.Key); err != nil {
		return m, err
	}
	if err := provider.DecodeMetadata(t.Metadata, &m, "description, kmsKeyID, tags, replicaRegions and resourcePolicy"); err != nil {
		return m, err
	}
	if err := m.Check(); err != nil {
		return m, err
	}
	if err := checkReplicas(m.ReplicaRegions, c.config.AWS.Region); err != nil {
		return m, err
	}
	return m, m.ResourcePolicy.check()
}

// drift returns the names of the settings that differ from those of a secret. It reads the policy of the secret only if
// the target sets one.
func (c *Client) drift(ctx context.Context, key string, m Metadata, d *secretsmanager.DescribeSecretOutput) ([]string, error) {
	drift := m.Drift(settingsOf(d))
	for _, r := range m.ReplicaRegions {
		if !r.replicatedBy(d.ReplicationStatus) {
			drift = append(drift, replicaDrift+r.Region)
		}
	}
	if m.ResourcePolicy == nil {
		return drift, nil
	}
	out, err := do(ctx, c, c.api.GetResourcePolicy, &secretsmanager.GetResourcePolicyInput{SecretId: d.ARN}, "GetResourcePolicy", key)
	if err != nil {
		return nil, err
	}
	if !m.ResourcePolicy.equals(aws.ToString(out.ResourcePolicy)) {
		drift = append(drift, policyDrift)
	}
	return drift, nil
}

// Drifted returns only the settings that have drifted and need an update.
func (m *Metadata) Drifted(drift []string) Metadata {
	only := Metadata{Metadata: m.Metadata.Drifted(drift)}
	for _, r := range m.ReplicaRegions {
		if slices.Contains(drift, replicaDrift+r.Region) {
			only.ReplicaRegions = append(only.ReplicaRegions, r)
		}
	}
	if slices.Contains(drift, policyDrift) {
		only.ResourcePolicy = m.ResourcePolicy
	}
	return only
}

// settingsOf returns the settings of a secret that every service has.
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
