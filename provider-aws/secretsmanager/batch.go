package secretsmanager

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	// batchSize is the limit of BatchGetSecretValue.
	batchSize = 20
	// batches is what is denied where the permission for batches is missing.
	batches = ""
)

// BatchSize is the limit of BatchGetSecretValue.
func (c *Client) BatchSize() int { return batchSize }

// GetBatch reads current versions by one call. Other versions, metadata, and what the call cannot
// do, are read one by one.
func (c *Client) GetBatch(ctx context.Context, refs []provider.Ref) []provider.Result {
	results := make([]provider.Result, len(refs))
	var together, single []int
	for i, ref := range refs {
		results[i].Err = c.config.CheckKey(ref.Key)
		switch {
		case results[i].Err != nil:
		case ref.Version == "" && !ref.Metadata:
			together = append(together, i)
		default:
			single = append(single, i)
		}
	}
	// A batch of one gains nothing, and needs one more permission.
	if len(together) == 1 || c.denied.Has(batches) {
		together, single = nil, append(single, together...)
	}
	if len(together) > 0 {
		single = append(single, c.readTogether(ctx, refs, together, results)...)
	}
	awsconfig.Each(single, func(i int) { results[i].Value, results[i].Err = c.Get(ctx, refs[i]) })
	return results
}

// readTogether reads the refs at some places by one call, and returns those places that must be
// read one by one instead.
func (c *Client) readTogether(ctx context.Context, refs []provider.Ref, places []int, results []provider.Result) (single []int) {
	ids := newAnswers()
	for _, i := range places {
		ids.ask(c.config.ID(refs[i].Key))
	}
	failure := c.batch(ctx, ids)
	if awsconfig.IsAccessDenied(awsconfig.CodeOf(failure)) {
		c.denied.Note(batches)
	}
	alone := c.config.SaysNothingOfEntries(failure, codes)
	for _, i := range places {
		ref := refs[i]
		entry, known := ids.find(c.config.ID(ref.Key))
		switch {
		case known && entry.failure != nil:
			results[i].Err = c.explain(entry.failure, about(ref))
		case known:
			results[i].Value, results[i].Err = value(ref, entry.text, entry.binary, entry.version)
		case alone:
			single = append(single, i)
		case failure != nil:
			results[i].Err = c.explain(failure, about(ref))
		default:
			results[i].Err = provider.NewError(provider.Unavailable, "%s: the answer of AWS lacks it", about(ref))
		}
	}
	return single
}

// batch asks for the pages of an answer until it is complete, or there are no more. What came before
// a failure stands.
func (c *Client) batch(ctx context.Context, a *answers) error {
	in := &secretsmanager.BatchGetSecretValueInput{SecretIdList: a.ids}
	for !a.complete() {
		out, err := awsconfig.Call(ctx, c.config, c.api.BatchGetSecretValue, in)
		if err != nil {
			return err
		}
		for _, e := range out.Errors {
			failure := &smithy.GenericAPIError{Code: aws.ToString(e.ErrorCode), Message: aws.ToString(e.Message)}
			a.add(entry{id: aws.ToString(e.SecretId), failure: failure})
		}
		for _, v := range out.SecretValues {
			a.add(entry{id: aws.ToString(v.Name), arn: aws.ToString(v.ARN), text: v.SecretString, binary: v.SecretBinary, version: v.VersionId})
		}
		// The same page again would never end.
		if next := aws.ToString(out.NextToken); next == "" || next == aws.ToString(in.NextToken) {
			return nil
		}
		in.NextToken = out.NextToken
	}
	return nil
}
