package secretsmanager

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	apiuuid "k8s.io/apimachinery/pkg/util/uuid"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	// maxValue is the maximum size of a value in Secrets Manager, in bytes.
	maxValue = 65536

	// current is the label of the current version. Whenever AWS moves it, it moves AWSPREVIOUS to the version
	// before: https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_UpdateSecretVersionStage.html.
	current = "AWSCURRENT"
	// staged is the label of a version that is about to become current. Without a label PutSecretValue would
	// make the version current at once, even if another writer has changed the current version meanwhile.
	staged = "direct-secrets/staged"
)

var _ provider.Writer = &Client{}

// Features returns all features: a name can be created only once, and AWSCURRENT moves only away from the
// version that was seen.
func (c *Client) Features() provider.Features {
	return provider.Features{Exclusive: true, Guarded: true}
}

// do makes one call of a Writer.
func do[In, Out any](ctx context.Context, c *Client, f awsconfig.Operation[In, Out, secretsmanager.Options], in *In, action, key string) (*Out, error) {
	out, err := awsconfig.Call(ctx, c.config, f, in)
	if err != nil {
		return nil, awsconfig.ToAllow(c.explain(err, c.about(provider.Ref{Key: key})), "secretsmanager:"+action)
	}
	return out, nil
}

// describe describes a secret, even if it is scheduled for deletion.
func (c *Client) describe(ctx context.Context, key string) (*secretsmanager.DescribeSecretOutput, error) {
	d, err := do(ctx, c, c.api.DescribeSecret, &secretsmanager.DescribeSecretInput{SecretId: aws.String(c.config.ID(key))}, "DescribeSecret", key)
	if err == nil && aws.ToString(d.ARN) == "" {
		err = provider.NewError(provider.Unavailable, "%s: the response of AWS does not include it", c.about(provider.Ref{Key: key}))
	}
	return d, err
}

// existing describes a secret that is not scheduled for deletion.
func (c *Client) existing(ctx context.Context, key string) (*secretsmanager.DescribeSecretOutput, error) {
	d, err := c.describe(ctx, key)
	if err == nil && d.DeletedDate != nil {
		err = c.config.ExplainCode(scheduledForDeletion, "", c.about(provider.Ref{Key: key}), codes)
	}
	return d, err
}

// unchanged describes a secret that must be the one that was seen. AWS has no condition for most calls, so this comes right before them.
// AWS appends random characters to the ARN of each new secret, so the ARN is the ID.
func (c *Client) unchanged(ctx context.Context, key string, seen provider.Observed) (*secretsmanager.DescribeSecretOutput, error) {
	d, err := c.existing(ctx, key)
	if err == nil {
		seen.ID = cmp.Or(seen.ID, *d.ARN)
		err = provider.Observed{Version: VersionName(currentOf(d)), ID: *d.ARN, Mark: tagMap(d.Tags)[awsconfig.MarkKey]}.Unchanged(seen)
	}
	return d, err
}

// currentOf returns the id of the current version, or "" for a secret without a value.
func currentOf(d *secretsmanager.DescribeSecretOutput) string {
	for id, stages := range d.VersionIdsToStages {
		if slices.Contains(stages, current) {
			return id
		}
	}
	return ""
}

// Observe reads a secret, its settings and its mark. It returns NotFound for a secret that is scheduled for
// deletion.
func (c *Client) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	m, err := c.settings(t)
	if err != nil {
		return provider.Observed{}, err
	}
	d, err := c.existing(ctx, t.Key)
	if err != nil {
		return provider.Observed{}, err
	}
	drift, err := c.drift(ctx, t.Key, m, d)
	if err != nil {
		return provider.Observed{}, err
	}
	o := provider.Observed{Mark: tagMap(d.Tags)[awsconfig.MarkKey], Drift: drift, ID: *d.ARN}
	out, err := do(ctx, c, c.api.GetSecretValue, &secretsmanager.GetSecretValueInput{SecretId: d.ARN}, "GetSecretValue", t.Key)
	switch {
	case provider.IsNotFound(err) && currentOf(d) == "": // The secret has no value yet.
		return o, nil
	case err != nil:
		return provider.Observed{}, err
	}
	v, err := value(provider.Ref{Key: t.Key}, out.SecretString, out.SecretBinary, out.VersionId)
	if err != nil {
		return provider.Observed{}, err
	}
	o.Data, o.Version = v.Data, v.Version
	return o, nil
}

// checkValue rejects values that AWS would reject.
func checkValue(key string, data []byte) error {
	switch {
	case len(data) == 0:
		return provider.NewError(provider.Invalid, "%s: the value is empty, which AWS does not allow", about(provider.Ref{Key: key}))
	case len(data) > maxValue:
		return provider.NewError(provider.Invalid, "%s: the value has %d bytes, and AWS allows at most %d", about(provider.Ref{Key: key}), len(data), maxValue)
	}
	return nil
}

// payload returns the data as text if possible, because the AWS console shows only text.
func payload(data []byte) (text *string, binary []byte) {
	if utf8.Valid(data) {
		return aws.String(string(data)), nil
	}
	return nil, data
}

// token returns a new version id. The client chooses it, so that a repeated call after a lost answer does not
// create a second version.
func token() *string { return aws.String(string(apiuuid.NewUUID())) }

// written returns the version that a call has created.
func written(key string, arn, id *string) (provider.Written, error) {
	if aws.ToString(arn) == "" || aws.ToString(id) == "" {
		return provider.Written{}, provider.NewError(provider.Unavailable, "%s: the response of AWS has no version", about(provider.Ref{Key: key}))
	}
	return provider.Written{Version: VersionName(*id), ID: *arn}, nil
}

// Create creates a secret and its mark with one call. A secret with a policy gets its value only under that policy.
func (c *Client) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	m, err := c.settings(t)
	if err == nil {
		err = checkValue(t.Key, data)
	}
	switch {
	case err != nil:
		return provider.Written{}, err
	case awsconfig.IsARN(t.Key):
		return provider.Written{}, provider.NewError(provider.Invalid, "%s: does not exist, and the ARN of a new secret cannot be chosen; push to a name", c.about(provider.Ref{Key: t.Key}))
	}
	in := &secretsmanager.CreateSecretInput{
		Name: aws.String(c.config.ID(t.Key)), ClientRequestToken: token(), Tags: tagList(m.newTags(mark)),
		Description: given(m.Description), KmsKeyId: given(m.KMSKeyID), AddReplicaRegions: replicaList(m.ReplicaRegions),
	}
	if m.ResourcePolicy == nil {
		in.SecretString, in.SecretBinary = payload(data)
	}
	out, err := do(ctx, c, c.api.CreateSecret, in, "CreateSecret", t.Key)
	switch {
	case provider.IsNotFound(err):
		return c.restore(ctx, t, data, mark)
	case err != nil:
		return provider.Written{}, err
	}
	if m.ResourcePolicy == nil {
		return written(t.Key, out.ARN, out.VersionId)
	}
	seen := provider.Observed{ID: aws.ToString(out.ARN), Mark: mark, Drift: []string{policyDrift}}
	return c.Update(ctx, t, seen, data)
}

// restore restores a secret that is scheduled for deletion, because AWS does not allow a new one of that name.
// It restores only a secret with the mark of the same object.
func (c *Client) restore(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	what := c.about(provider.Ref{Key: t.Key})
	d, err := c.describe(ctx, t.Key)
	switch {
	case provider.IsNotFound(err):
		return provider.Written{}, provider.NewError(provider.Unavailable, "%s: AWS refuses to create it, although no secret has this name; AWS may still be deleting one, or cannot find metadata.kmsKeyID", what)
	case err != nil:
		return provider.Written{}, err
	case d.DeletedDate == nil:
		return provider.Written{}, provider.ErrChanged
	case mark == "" || tagMap(d.Tags)[awsconfig.MarkKey] != mark:
		return provider.Written{}, provider.NewError(provider.Invalid, "%s: is scheduled for deletion and was not created by this object; restore it, delete it permanently, or push to another key", what)
	}
	if _, err := do(ctx, c, c.api.RestoreSecret, &secretsmanager.RestoreSecretInput{SecretId: d.ARN}, "RestoreSecret", t.Key); err != nil {
		return provider.Written{}, err
	}
	seen, err := c.Observe(ctx, t)
	switch {
	case err != nil:
		return provider.Written{}, err
	case seen.Mark != mark:
		return provider.Written{}, provider.ErrChanged
	}
	return c.Update(ctx, t, seen, data)
}

// Update writes the policy first, so that a new value is never under the old one. Then it writes the value, because only
// that write is guarded, and then the other settings that have drifted.
func (c *Client) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	m, err := c.settings(t)
	if err != nil {
		return provider.Written{}, err
	}
	drifted := m.Drifted(seen.Drift)
	writes := data != nil && (seen.Data == nil || !bytes.Equal(data, seen.Data))
	if writes {
		if err := checkValue(t.Key, data); err != nil {
			return provider.Written{}, err
		}
	}
	if drifted.ResourcePolicy != nil { // Another owner's policy must not be replaced.
		if _, err := c.unchanged(ctx, t.Key, seen); err != nil {
			return provider.Written{}, err
		}
	}
	if err := c.putPolicy(ctx, t.Key, aws.String(cmp.Or(seen.ID, c.config.ID(t.Key))), drifted.ResourcePolicy); err != nil {
		return provider.Written{}, err
	}
	w := provider.Written{Version: seen.Version, ID: seen.ID}
	if writes {
		if w, err = c.put(ctx, t.Key, seen, data); err != nil {
			return provider.Written{}, err
		}
	}
	if err := c.updateSettings(ctx, t, seen, drifted); err != nil {
		return provider.Written{}, err
	}
	return w, nil
}

// put writes a value in two steps. It stores a new version next to the current one, and then makes it current.
// AWS does the second step only if the current version is still the one in seen.
func (c *Client) put(ctx context.Context, key string, seen provider.Observed, data []byte) (provider.Written, error) {
	unlock, err := c.config.LockSecret(ctx, cmp.Or(seen.ID, c.config.ID(key)))
	if err != nil {
		return provider.Written{}, err
	}
	defer unlock()
	d, err := c.unchanged(ctx, key, seen)
	if err != nil {
		return provider.Written{}, err
	}
	in := &secretsmanager.PutSecretValueInput{SecretId: d.ARN, ClientRequestToken: token(), VersionStages: []string{staged}}
	in.SecretString, in.SecretBinary = payload(data)
	out, err := do(ctx, c, c.api.PutSecretValue, in, "PutSecretValue", key)
	if err != nil {
		return provider.Written{}, err
	}
	w, err := written(key, d.ARN, out.VersionId)
	if err != nil {
		return provider.Written{}, err
	}
	// The first version of a secret is current immediately.
	if !slices.Contains(out.VersionStages, current) {
		err = c.promote(ctx, key, d, out.VersionId)
	}
	// AWS deletes a version without labels. If the label is not removed now, the next write moves it, so an
	// error here does not fail this write.
	_, _ = awsconfig.Call(ctx, c.config, c.api.UpdateSecretVersionStage, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: d.ARN, VersionStage: aws.String(staged), RemoveFromVersionId: out.VersionId,
	})
	return w, err
}

// promote makes version id the current one instead of the version in was.
func (c *Client) promote(ctx context.Context, key string, was *secretsmanager.DescribeSecretOutput, id *string) error {
	from := currentOf(was)
	_, err := do(ctx, c, c.api.UpdateSecretVersionStage, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: was.ARN, VersionStage: aws.String(current), MoveToVersionId: id, RemoveFromVersionId: given(from),
	}, "UpdateSecretVersionStage", key)
	if provider.ClassOf(err) != provider.Invalid || err == nil {
		return err
	}
	// AWS also rejects a repeated call that it has carried out before. The current version shows whether it
	// did.
	switch d, failure := c.describe(ctx, key); {
	case failure != nil:
		return failure
	case currentOf(d) == *id:
		return nil
	case currentOf(d) == from:
		return err
	}
	return provider.ErrChanged
}

// updateSettings updates the settings that have drifted. It creates no version.
func (c *Client) updateSettings(ctx context.Context, t provider.Target, seen provider.Observed, m Metadata) error {
	id := aws.String(cmp.Or(seen.ID, c.config.ID(t.Key)))
	if m.Description != "" || m.KMSKeyID != "" {
		in := &secretsmanager.UpdateSecretInput{SecretId: id, Description: given(m.Description), KmsKeyId: given(m.KMSKeyID)}
		if _, err := do(ctx, c, c.api.UpdateSecret, in, "UpdateSecret", t.Key); err != nil {
			return err
		}
	}
	if len(m.Tags) > 0 {
		in := &secretsmanager.TagResourceInput{SecretId: id, Tags: tagList(m.Tags)}
		if _, err := do(ctx, c, c.api.TagResource, in, "TagResource", t.Key); err != nil {
			return err
		}
	}
	return c.replicate(ctx, t.Key, id, m.ReplicaRegions)
}

// Mark replaces the mark of a secret.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	if err := c.config.CheckKey(t.Key); err != nil {
		return err
	}
	unlock, err := c.config.LockSecret(ctx, cmp.Or(seen.ID, c.config.ID(t.Key)))
	if err != nil {
		return err
	}
	defer unlock()
	d, err := c.unchanged(ctx, t.Key, seen)
	if err != nil {
		return err
	}
	in := &secretsmanager.TagResourceInput{SecretId: d.ARN, Tags: tagList(map[string]string{awsconfig.MarkKey: mark})}
	_, err = do(ctx, c, c.api.TagResource, in, "TagResource", t.Key)
	return err
}

// Delete deletes a secret with the recovery window of the store.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	if err := c.config.CheckKey(t.Key); err != nil {
		return err
	}
	unlock, err := c.config.LockSecret(ctx, cmp.Or(seen.ID, c.config.ID(t.Key)))
	if err != nil {
		return err
	}
	defer unlock()
	d, err := c.unchanged(ctx, t.Key, seen)
	if err != nil {
		return err
	}
	replicas, err := c.ownReplicas(t.Key, d)
	if err != nil {
		return err
	}
	in := &secretsmanager.DeleteSecretInput{SecretId: d.ARN}
	if c.deletion != nil && c.deletion.ForceDeleteWithoutRecovery {
		in.ForceDeleteWithoutRecovery = aws.Bool(true)
	} else if c.deletion != nil && c.deletion.RecoveryWindowInDays > 0 {
		in.RecoveryWindowInDays = aws.Int64(c.deletion.RecoveryWindowInDays)
	}
	return c.deleteWith(ctx, t.Key, in, replicas)
}

// deleteWith deletes a secret and its replicas. AWS checks the permission before it refuses to delete a secret with replicas, so the
// replicas are removed only after that refusal: a login that is not allowed to delete loses none.
func (c *Client) deleteWith(ctx context.Context, key string, in *secretsmanager.DeleteSecretInput, replicas []string) error {
	_, failure := awsconfig.Call(ctx, c.config, c.api.DeleteSecret, in)
	if len(replicas) > 0 && isReplicated(failure) {
		remove := &secretsmanager.RemoveRegionsFromReplicationInput{SecretId: in.SecretId, RemoveReplicaRegions: replicas}
		if _, err := do(ctx, c, c.api.RemoveRegionsFromReplication, remove, "RemoveRegionsFromReplication", key); err != nil {
			return err
		}
		_, failure = awsconfig.Call(ctx, c.config, c.api.DeleteSecret, in)
	}
	if failure == nil {
		return nil
	}
	return awsconfig.ToAllow(c.explain(failure, c.about(provider.Ref{Key: key})), "secretsmanager:DeleteSecret")
}
