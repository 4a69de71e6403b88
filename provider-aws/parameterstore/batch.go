package parameterstore

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	// batchSize is the limit of GetParameters.
	batchSize = 10
	// batches is the entry in denied that stands for a missing permission for GetParameters. It is not a valid
	// id.
	batches = ""
)

// BatchSize returns the maximum number of parameters in one GetParameters call.
func (c *Client) BatchSize() int { return batchSize }

// GetBatch reads all refs with one call, versions included. A parameter that fails such a call, or that the
// answer does not explain, is read by a separate call.
func (c *Client) GetBatch(ctx context.Context, refs []provider.Ref) []provider.Result {
	results := make([]provider.Result, len(refs))
	ids := make([]string, len(refs))
	var together, single []int
	for i, ref := range refs {
		ids[i], results[i].Err = c.id(ref)
		switch {
		case results[i].Err != nil:
		case c.denied.Has(batches), c.denied.Has(ids[i]):
			single = append(single, i)
		default:
			together = append(together, i)
		}
	}
	b := &batch{c, refs, ids, results}
	// A call for a single parameter has a clearer error, at the same cost.
	if len(together) == 1 {
		together, single = nil, append(single, together...)
	}
	if len(together) > 0 {
		single = append(single, b.readTogether(ctx, together)...)
	}
	b.readSingle(ctx, single)
	return results
}

// A batch is one GetBatch in progress.
type batch struct {
	*Client
	refs    []provider.Ref
	ids     []string
	results []provider.Result
}

func (b *batch) readSingle(ctx context.Context, places []int) {
	awsconfig.Each(places, func(i int) { b.results[i].Value, b.results[i].Err = b.Get(ctx, b.refs[i]) })
}

// readTogether reads the refs at some places with one call, and returns the places that need a call of their
// own.
func (b *batch) readTogether(ctx context.Context, places []int) (single []int) {
	in := &ssm.GetParametersInput{WithDecryption: aws.Bool(true)}
	for _, i := range places {
		if !slices.Contains(in.Names, b.ids[i]) {
			in.Names = append(in.Names, b.ids[i])
		}
	}
	out, err := awsconfig.Call(ctx, b.config, b.api.GetParameters, in)
	switch {
	case err == nil:
		return b.take(ctx, places, out)
	case b.config.IsOfWholeBatch(err, codes), awsconfig.CodeOf(err) == invalidKeyID:
		b.readSpoilt(ctx, places, awsconfig.IsAccessDenied(awsconfig.CodeOf(err)))
	default:
		for _, i := range places {
			b.results[i].Err = b.explain(err, b.about(b.refs[i]))
		}
	}
	return nil
}

// readSpoilt reads each ref of a failed call separately. One parameter that the caller is not allowed to read
// fails the whole call, so the parameters that fail now are left out of batches for a while. If none of them
// fails, the permission for batches is missing.
func (b *batch) readSpoilt(ctx context.Context, places []int, accessDenied bool) {
	b.readSingle(ctx, places)
	attributed := false
	for _, i := range places {
		if class := provider.ClassOf(b.results[i].Err); b.results[i].Err != nil && (class == provider.Denied || class == provider.Invalid) {
			attributed = true
			b.denied.Note(b.ids[i])
		}
	}
	answered := func(i int) bool { return b.results[i].Err == nil || provider.IsNotFound(b.results[i].Err) }
	if accessDenied && !attributed && slices.ContainsFunc(places, answered) {
		b.denied.Note(batches)
	}
}

// take stores the results of an answer, and returns the places that need a call of their own. AWS calls a parameter
// invalid if it does not exist, has no valid name, or cannot be read; only a separate call shows which. A parameter
// that the answer lacks, or that cannot be told from another one, is Unavailable, not NotFound.
func (b *batch) take(ctx context.Context, places []int, out *ssm.GetParametersOutput) (single []int) {
	ids := make([]string, len(places))
	for n, i := range places {
		ids[n] = b.ids[i]
	}
	all := answersOf(ids, out)
	found := map[int]*types.Parameter{}
	var tagged []int
	for _, i := range places {
		p, how := all.find(b.ids[i])
		switch {
		case slices.Contains(out.InvalidParameters, b.ids[i]), how == shared:
			single = append(single, i)
		case how == missing:
			b.results[i].Err = provider.NewError(provider.Unavailable, "%s: the response of AWS does not include it", about(b.refs[i]))
		case how == unclear:
			b.results[i].Err = provider.NewError(provider.Unavailable, "%s: the response of AWS does not show which version of the parameter it is about; set spec.endpoint to a server that returns Selector, or read only one version", about(b.refs[i]))
		case b.refs[i].Metadata:
			found[i], tagged = p, append(tagged, i)
		default:
			b.results[i].Value, b.results[i].Err = value(b.refs[i], p)
		}
	}
	awsconfig.Each(tagged, func(i int) { b.results[i].Value, b.results[i].Err = b.complete(ctx, b.refs[i], found[i]) })
	return single
}
