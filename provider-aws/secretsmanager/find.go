package secretsmanager

import (
	"context"
	"iter"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

// maxFilters is the maximum number of filter values in a ListSecrets call.
const maxFilters = 10

// Find lists the matching secrets, and then reads them in batches. It ignores secrets that are scheduled for
// deletion.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return provider.ReadListed(func() (*provider.Listing, error) { return c.list(ctx, q) }, c.BatchSize(), func(some []provider.Ref) []provider.Result { return c.GetBatch(ctx, some) })
}

func (c *Client) list(ctx context.Context, q provider.Query) (*provider.Listing, error) {
	const what = "listing secrets"
	in := &secretsmanager.ListSecretsInput{Filters: filters(c.config.Prefix+q.Path, q.Tags), MaxResults: aws.Int32(100)}
	found := &provider.Listing{}
	return found, awsconfig.Pages(found, what, func(token *string) (*string, error) {
		in.NextToken = token
		out, err := awsconfig.Call(ctx, c.config, c.api.ListSecrets, in)
		if err != nil {
			return nil, c.explain(err, what)
		}
		if out.SecretList == nil {
			return nil, awsconfig.NoList(what)
		}
		for _, s := range out.SecretList {
			if key, ok := c.selected(s, q); ok {
				if _, err := found.Add(key); err != nil {
					return nil, err
				}
			}
		}
		return out.NextToken, nil
	})
}

// selected returns the key of a secret, and whether the query selects it. The filters of AWS only shorten the
// answers: they match prefixes, and do not relate a tag's value to its key.
func (c *Client) selected(s types.SecretListEntry, q provider.Query) (key string, ok bool) {
	key, ok = strings.CutPrefix(aws.ToString(s.Name), c.config.Prefix)
	return key, ok && s.DeletedDate == nil && key != "" && q.Selects(key, tagMap(s.Tags))
}

// maxFilter is the maximum length of a filter value.
const maxFilter = 512

// filterable matches the filter values that AWS accepts. A leading "!" would negate the filter.
var filterable = regexp.MustCompile(`^[a-zA-Z0-9 :_@/+=.-][a-zA-Z0-9 :_@/+=.!-]*$`)

// filters returns filters with which AWS omits secrets that cannot match.
func filters(name string, tags map[string]string) []types.Filter {
	var all []types.Filter
	add := func(key types.FilterNameStringType, value string) {
		if len(value) <= maxFilter && filterable.MatchString(value) && len(all) < maxFilters {
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
