package secretsmanager

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	// replicaDrift is the start of the names of replicas in Observed.Drift.
	replicaDrift = "replicaRegions."
	// replicasKey is the key of the tag with the regions whose replicas the operator has created, so that only these are
	// removed with the secret.
	replicasKey = "direct-secrets.io/replicas"
	// maxReplicas keeps the value of that tag within the 256 characters of AWS.
	maxReplicas = 16
	maxTagValue = 256
)

// A replicaRegion is a region that must have a replica of the secret. Without a key AWS chooses its own.
type replicaRegion struct {
	Region   string `json:"region"`
	KMSKeyID string `json:"kmsKeyID"`
}

var regionName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// checkReplicas rejects replicas that AWS would reject. own is the region of the store.
func checkReplicas(replicas []replicaRegion, own string) error {
	if len(replicas) > maxReplicas {
		return provider.NewError(provider.Invalid, "metadata.replicaRegions: has %d regions, at most %d are allowed; remove some", len(replicas), maxReplicas)
	}
	if len(replicasTag(nil, replicas)) > maxTagValue {
		return provider.NewError(provider.Invalid, "metadata.replicaRegions: the names of the regions are too long together; correct them")
	}
	for i, r := range replicas {
		switch {
		case !regionName.MatchString(r.Region):
			return provider.NewError(provider.Invalid, "metadata.replicaRegions[%d].region: %.64q is not a region; write it as eu-central-1", i, r.Region)
		case r.Region == own:
			return provider.NewError(provider.Invalid, "metadata.replicaRegions[%d].region: %s is the region of the store, which has the secret itself; remove it", i, own)
		case slices.ContainsFunc(replicas[:i], func(o replicaRegion) bool { return o.Region == r.Region }):
			return provider.NewError(provider.Invalid, "metadata.replicaRegions[%d].region: %s is named twice; remove one", i, r.Region)
		}
	}
	return nil
}

func statusOf(replicas []types.ReplicationStatusType, region string) *types.ReplicationStatusType {
	i := slices.IndexFunc(replicas, func(s types.ReplicationStatusType) bool { return aws.ToString(s.Region) == region })
	if i < 0 {
		return nil
	}
	return &replicas[i]
}

// replicatedBy reports whether the secret has the replica, or AWS is creating it.
func (r replicaRegion) replicatedBy(replicas []types.ReplicationStatusType) bool {
	s := statusOf(replicas, r.Region)
	return s != nil && s.Status != types.StatusTypeFailed && r.hasKey(s)
}

func (r replicaRegion) hasKey(s *types.ReplicationStatusType) bool {
	want := awsconfig.Metadata{KMSKeyID: r.KMSKeyID}
	return len(want.Drift(awsconfig.Metadata{KMSKeyID: cmp.Or(aws.ToString(s.KmsKeyId), defaultKey)})) == 0
}

// replicasTag returns the regions of a tag and of replicas, as the value of the tag.
func replicasTag(created []string, replicas []replicaRegion) string {
	all := slices.Clone(created)
	for _, r := range replicas {
		if !slices.Contains(all, r.Region) {
			all = append(all, r.Region)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// newTags returns the tags of a new secret: its settings, the mark, and the replicas that are created with it.
func (m *Metadata) newTags(mark string) map[string]string {
	tags := m.Marked(mark)
	if len(m.ReplicaRegions) > 0 {
		tags[replicasKey] = replicasTag(nil, m.ReplicaRegions)
	}
	return tags
}

// createdReplicas returns the regions whose replicas the operator has created.
func createdReplicas(d *secretsmanager.DescribeSecretOutput) []string {
	return strings.Fields(tagMap(d.Tags)[replicasKey])
}

// ownReplicas returns the regions with replicas of a secret that is about to be deleted, because AWS deletes no secret with replicas.
// It returns an error if another client has created one of them.
func (c *Client) ownReplicas(key string, d *secretsmanager.DescribeSecretOutput) (regions []string, err error) {
	for _, s := range d.ReplicationStatus {
		region := aws.ToString(s.Region)
		// A region with a failed replica can have another secret of the same name.
		if s.Status == types.StatusTypeFailed || !slices.Contains(createdReplicas(d), region) {
			return nil, provider.NewError(provider.Invalid, "%s: has a replica in %.64q that the operator has not created, and AWS deletes no secret with replicas; remove the replica at AWS", c.about(provider.Ref{Key: key}), region)
		}
		regions = append(regions, region)
	}
	return regions, nil
}

func replicaList(replicas []replicaRegion) (list []types.ReplicaRegionType) {
	for _, r := range replicas {
		list = append(list, types.ReplicaRegionType{Region: aws.String(r.Region), KmsKeyId: given(r.KMSKeyID)})
	}
	return list
}

// replicate creates the replicas that the secret lacks. It never overwrites a secret of the same name in another region,
// and removes no replica, so it cannot change the KMS key of one.
func (c *Client) replicate(ctx context.Context, key string, id *string, replicas []replicaRegion) error {
	if len(replicas) == 0 {
		return nil
	}
	d, err := c.describe(ctx, key)
	if err != nil {
		return err
	}
	var missing []replicaRegion
	for _, r := range replicas {
		if statusOf(d.ReplicationStatus, r.Region) == nil {
			missing = append(missing, r)
		}
	}
	status := d.ReplicationStatus
	if len(missing) > 0 {
		tag := map[string]string{replicasKey: replicasTag(createdReplicas(d), missing)}
		if _, err := do(ctx, c, c.api.TagResource, &secretsmanager.TagResourceInput{SecretId: id, Tags: tagList(tag)}, "TagResource", key); err != nil {
			return err
		}
		in := &secretsmanager.ReplicateSecretToRegionsInput{SecretId: id, AddReplicaRegions: replicaList(missing)}
		out, err := do(ctx, c, c.api.ReplicateSecretToRegions, in, "ReplicateSecretToRegions", key)
		if err != nil {
			return err
		}
		status = out.ReplicationStatus
	}
	return c.checkReplicated(key, replicas, status)
}

// checkReplicated returns an error for a replica that has failed, or that has another key.
func (c *Client) checkReplicated(key string, replicas []replicaRegion, status []types.ReplicationStatusType) error {
	what := c.about(provider.Ref{Key: key})
	for _, r := range replicas {
		switch s := statusOf(status, r.Region); {
		case s == nil:
			return provider.NewError(provider.Unavailable, "%s: the response of AWS does not include the replica in %s", what, r.Region)
		case s.Status == types.StatusTypeFailed:
			return provider.NewError(provider.Invalid, "%s: AWS cannot create the replica in %s of metadata.replicaRegions; check that the region has no secret of this name and that its KMS key can be used, and remove the failed replica at AWS", what, r.Region)
		case !r.hasKey(s):
			return provider.NewError(provider.Invalid, "%s: the replica in %s has another KMS key than metadata.replicaRegions, and AWS cannot change it; correct kmsKeyID, or remove the replica at AWS", what, r.Region)
		}
	}
	return nil
}
