package secretsmanager

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	// batchSize is the limit of BatchGetSecretValue.
	batchSize = 20
	// parallel bounds the single reads of one batch that are under way at the same time.
	parallel = 8
	// batchPause is how long no batch is tried after one was denied.
	batchPause = 5 * time.Minute
)

// BatchSize is the limit of BatchGetSecretValue.
func (c *Client) BatchSize() int { return batchSize }

// GetBatch reads current versions by one call. Other versions, metadata, and what the call cannot
// do, are read one by one.
func (c *Client) GetBatch(ctx context.Context, refs []store.Ref) []store.Result {
	results := make([]store.Result, len(refs))
	var together, single []int
	for i, ref := range refs {
		switch {
		case c.checkKey(ref.Key) != nil:
			results[i].Err = c.checkKey(ref.Key)
		case ref.Version == "" && !ref.Metadata:
			together = append(together, i)
		default:
			single = append(single, i)
		}
	}
	// A batch of one gains nothing, and needs one more permission.
	if len(together) == 1 || c.now().UnixNano() < c.batchDenied.Load() {
		together, single = nil, append(single, together...)
	}
	if len(together) > 0 {
		single = append(single, c.readTogether(ctx, refs, together, results)...)
	}
	c.readSingle(ctx, refs, single, results)
	return results
}

// readSingle reads the refs at some places one by one.
func (c *Client) readSingle(ctx context.Context, refs []store.Ref, places []int, results []store.Result) {
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, i := range places {
		g.Go(func() error {
			results[i].Value, results[i].Err = c.Get(ctx, refs[i])
			return nil
		})
	}
	_ = g.Wait() // Each result has its own error.
}

// readTogether reads the refs at some places by one call, and returns those places that must be
// read one by one instead.
func (c *Client) readTogether(ctx context.Context, refs []store.Ref, places []int, results []store.Result) (single []int) {
	ids := newAnswers()
	for _, i := range places {
		ids.ask(c.id(refs[i].Key))
	}
	failure := c.batch(ctx, ids)
	alone := c.mustReadSingle(failure)
	for _, i := range places {
		ref := refs[i]
		entry, known := ids.find(c.id(ref.Key))
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
			results[i].Err = store.NewError(store.Unavailable, "%s: the answer of AWS lacks it", about(ref))
		}
	}
	return single
}

// mustReadSingle reports whether the failure of a whole batch says nothing of its entries: the
// permission for batches is missing, which is remembered, or one entry spoils the call.
func (c *Client) mustReadSingle(failure error) bool {
	code := awsconfig.CodeOf(failure)
	if awsconfig.IsAccessDenied(code) {
		c.batchDenied.Store(c.now().Add(batchPause).UnixNano())
		return true
	}
	if code == "" {
		return false
	}
	class := store.ClassOf(c.explain(failure, ""))
	return class == store.Invalid || class == store.NotFound
}

// batch asks for the pages of an answer until it is complete, or there are no more. What came before
// a failure stands.
func (c *Client) batch(ctx context.Context, a *answers) error {
	in := &secretsmanager.BatchGetSecretValueInput{SecretIdList: a.ids}
	for !a.complete() {
		out, err := call(ctx, c, c.api.BatchGetSecretValue, in)
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
