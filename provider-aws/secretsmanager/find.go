package secretsmanager

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/store"
)

const (
	// maxFound is how many secrets a query may select.
	maxFound = 10000
	// maxFilters is the limit of ListSecrets.
	maxFilters = 10
)

// Find lists the secrets that match, and then reads them in batches. Secrets that are scheduled for
// deletion do not exist.
func (c *Client) Find(ctx context.Context, q store.Query) iter.Seq2[store.Value, error] {
	return func(yield func(store.Value, error) bool) {
		refs, err := c.list(ctx, q)
		if err != nil {
			yield(store.Value{}, err)
			return
		}
		for some := range slices.Chunk(refs, batchSize) {
			for _, r := range c.GetBatch(ctx, some) {
				if store.IsNotFound(r.Err) {
					continue // deleted since it was listed
				}
				if !yield(r.Value, r.Err) || r.Err != nil {
					return
				}
			}
		}
	}
}

// list returns what matches, each secret once: pages overlap when secrets change meanwhile.
func (c *Client) list(ctx context.Context, q store.Query) ([]store.Ref, error) {
	in := &secretsmanager.ListSecretsInput{Filters: filters(c.prefix+q.Path, q.Tags), MaxResults: aws.Int32(100)}
	var refs []store.Ref
	seen := map[string]bool{}
	for {
		out, err := call(ctx, c, c.api.ListSecrets, in)
		if err != nil {
			return nil, c.explain(err, "listing secrets")
		}
		for _, s := range out.SecretList {
			key, ok := c.selected(s, q)
			if !ok || seen[key] {
				continue
			}
			seen[key] = true
			refs = append(refs, store.Ref{Key: key})
		}
		if len(refs) > maxFound {
			return nil, store.NewError(store.Invalid, "find: more than %d secrets match; narrow path, name or tags", maxFound)
		}
		next := aws.ToString(out.NextToken)
		if next == "" {
			return refs, nil
		}
		if next == aws.ToString(in.NextToken) {
			return nil, store.NewError(store.Unavailable, "listing secrets: AWS sends the same page again and again")
		}
		in.NextToken = out.NextToken
	}
}

// selected returns the key of a secret, and whether the query selects it. The filters of AWS only
// keep answers short: they match beginnings, and do not tie a tag's value to its key.
func (c *Client) selected(s types.SecretListEntry, q store.Query) (key string, ok bool) {
	key, ok = strings.CutPrefix(aws.ToString(s.Name), c.prefix)
	if !ok || s.DeletedDate != nil || key == "" || !strings.HasPrefix(key, q.Path) || q.Name != nil && !q.Name.MatchString(key) {
		return "", false
	}
	tags := tagMap(s.Tags)
	for k, v := range q.Tags {
		if got, ok := tags[k]; !ok || got != v {
			return "", false
		}
	}
	return key, true
}

// filterable is what AWS takes as the value of a filter. A "!" in front would negate it.
var filterable = regexp.MustCompile(`^[a-zA-Z0-9 :_@/+=.-][a-zA-Z0-9 :_@/+=.!-]{0,511}$`)

// filters has AWS leave out what cannot match.
func filters(name string, tags map[string]string) []types.Filter {
	var all []types.Filter
	add := func(key types.FilterNameStringType, value string) {
		if filterable.MatchString(value) && len(all) < maxFilters {
			all = append(all, types.Filter{Key: key, Values: []string{value}})
		}
	}
	add(types.FilterNameStringTypeName, name)
	for k, v := range tags {
		add(types.FilterNameStringTypeTagKey, k)
		add(types.FilterNameStringTypeTagValue, v)
	}
	return all
}
