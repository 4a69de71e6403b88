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
	// batchSize is the maximum number of secrets in one BatchGetSecretValue call.
	batchSize = 20
	// batches is the entry in denied that stands for a missing permission for BatchGetSecretValue.
	batches = ""
)

// BatchSize returns the maximum number of secrets in one BatchGetSecretValue call.
func (c *Client) BatchSize() int { return batchSize }

// GetBatch reads current versions with one call. Other versions, metadata, and secrets that the batch call
// cannot read need separate calls.
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
	// A batch of one secret saves no call, and needs one more permission.
	if len(together) == 1 || c.denied.Has(batches) {
		together, single = nil, append(single, together...)
	}
	if len(together) > 0 {
		single = append(single, c.readTogether(ctx, refs, together, results)...)
	}
	awsconfig.Each(single, func(i int) { results[i].Value, results[i].Err = c.Get(ctx, refs[i]) })
	return results
}

// readTogether reads the refs at some places with one call, and returns the places that need a call of their
// own.
func (c *Client) readTogether(ctx context.Context, refs []provider.Ref, places []int, results []provider.Result) (single []int) {
	ids := newAnswers()
	for _, i := range places {
		ids.ask(c.config.ID(refs[i].Key))
	}
	failure := c.batch(ctx, ids)
	if awsconfig.IsAccessDenied(awsconfig.CodeOf(failure)) {
		c.denied.Note(batches)
	}
	alone := c.config.IsOfWholeBatch(failure, codes)
	for _, i := range places {
		ref := refs[i]
		found := ids.find(c.config.ID(ref.Key))
		switch {
		case len(found) == 1 && found[0].failure != nil:
			results[i].Err = c.explain(found[0].failure, c.about(ref))
		case len(found) == 1:
			results[i].Value, results[i].Err = value(ref, found[0].text, found[0].binary, found[0].version)
		case alone, len(found) > 1: // Only a separate call shows which of several secrets the key names.
			single = append(single, i)
		case failure != nil:
			results[i].Err = c.explain(failure, c.about(ref))
		default:
			results[i].Err = provider.NewError(provider.Unavailable, "%s: the response of AWS does not include it", c.about(ref))
		}
	}
	return single
}

// batch fetches the pages of an answer until there is a result for every id, or no further page. Results before
// a failure stay valid.
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
		// A server that returns the same page token again would cause an endless loop.
		if next := aws.ToString(out.NextToken); next == "" || next == aws.ToString(in.NextToken) {
			return nil
		}
		in.NextToken = out.NextToken
	}
	return nil
}
