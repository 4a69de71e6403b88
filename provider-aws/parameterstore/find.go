package parameterstore

import (
	"context"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	// byPathSize and describeSize are the maximum page sizes of GetParametersByPath and DescribeParameters.
	byPathSize, describeSize = 10, 50

	whatList = "listing parameters"
)

// Find reads a hierarchy together with its values. Without a hierarchy, or if the query has tags, it lists the
// matching names first and then reads them in batches.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		s := c.scopeOf(q)
		if s.hierarchy != "" && len(q.Tags) == 0 {
			c.findByPath(ctx, s, yield)
			return
		}
		provider.ReadListed(func() (*provider.Listing, error) { return c.list(ctx, s) }, c.BatchSize(), func(some []provider.Ref) []provider.Result { return c.GetBatch(ctx, some) })(yield)
	}
}

// A scope is a query in terms of the AWS API.
type scope struct {
	provider.Query

	// prefix is that of the store. Keys do not include it.
	prefix string
	// hierarchy is the path under which all names are, at any level. It is empty if the query selects names in
	// another way.
	hierarchy string
	// begins is the common prefix of all names.
	begins string
}

// scopeOf treats a path that starts with a slash as a hierarchy, as AWS does: /a/b selects /a/b/c, but neither
// /a/b itself nor /a/bc. A store's prefix is a hierarchy only if it also ends with a slash.
func (c *Client) scopeOf(q provider.Query) scope {
	s := scope{Query: q, prefix: c.config.Prefix, begins: c.config.Prefix + q.Path}
	if strings.HasPrefix(s.begins, "/") && (q.Path != "" || strings.HasSuffix(s.prefix, "/")) {
		s.begins = strings.TrimSuffix(s.begins, "/") + "/"
		s.hierarchy = s.begins
	}
	return s
}

// key returns the key of a name, and whether the query selects it, tags aside. It checks everything again: the
// filters of AWS only shorten the answers.
func (s *scope) key(name string) (key string, ok bool) {
	key, ok = strings.CutPrefix(name, s.prefix)
	return key, ok && key != "" && strings.HasPrefix(name, s.begins) && (s.Name == nil || s.Name.MatchString(key))
}

// findByPath yields the values as they arrive, and nothing after an error.
func (c *Client) findByPath(ctx context.Context, s scope, yield func(provider.Value, error) bool) {
	path := s.hierarchy
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	in := &ssm.GetParametersByPathInput{
		Path: aws.String(path), Recursive: aws.Bool(true), WithDecryption: aws.Bool(true), MaxResults: aws.Int32(byPathSize),
	}
	var seen provider.Listing
	stopped := false
	err := awsconfig.Pages(&seen, whatList, func(token *string) (*string, error) {
		in.NextToken = token
		out, err := awsconfig.Call(ctx, c.config, c.api.GetParametersByPath, in)
		if err != nil {
			return nil, c.explain(err, whatList)
		}
		if out.Parameters == nil {
			return nil, awsconfig.NoList(whatList)
		}
		for i := range out.Parameters {
			key, ok := s.key(aws.ToString(out.Parameters[i].Name))
			if !ok {
				continue
			}
			added, err := seen.Add(key)
			if err != nil {
				return nil, err
			}
			if !added {
				continue
			}
			v, err := value(provider.Ref{Key: key}, &out.Parameters[i])
			if err != nil {
				return nil, err
			}
			if stopped = !yield(v, nil); stopped {
				return nil, nil
			}
		}
		return out.NextToken, nil
	})
	if err != nil {
		yield(provider.Value{}, err)
	}
}

// list returns the matching names, also by tags.
func (c *Client) list(ctx context.Context, s scope) (*provider.Listing, error) {
	filters, unfiltered := filters(s)
	in := &ssm.DescribeParametersInput{ParameterFilters: filters, MaxResults: aws.Int32(describeSize)}
	found := &provider.Listing{}
	return found, awsconfig.Pages(found, whatList, func(token *string) (*string, error) {
		in.NextToken = token
		out, err := awsconfig.Call(ctx, c.config, c.api.DescribeParameters, in)
		if err != nil {
			return nil, c.explain(err, whatList)
		}
		if out.Parameters == nil {
			return nil, awsconfig.NoList(whatList)
		}
		for _, p := range out.Parameters {
			key, ok := s.key(aws.ToString(p.Name))
			if !ok {
				continue
			}
			if ok, err := c.hasTags(ctx, aws.ToString(p.Name), unfiltered); err != nil || !ok {
				if err != nil {
					return nil, err
				}
				continue
			}
			if _, err := found.Add(key); err != nil {
				return nil, err
			}
		}
		return out.NextToken, nil
	})
}

// hasTags compares the tags that AWS cannot filter by. It costs one call.
func (c *Client) hasTags(ctx context.Context, name string, tags map[string]string) (bool, error) {
	if len(tags) == 0 {
		return true, nil
	}
	has, err := c.tags(ctx, name)
	if err != nil {
		return false, c.explain(err, "metadata of "+c.about(provider.Ref{Key: name}))
	}
	return provider.Query{Tags: tags}.Selects("", has), nil
}

// filters returns filters with which AWS omits names that cannot match, and the tags that hasTags must compare.
// The tag filters of AWS are exact, but it cannot filter by a tag without a value.
func filters(s scope) (all []types.ParameterStringFilter, unfiltered map[string]string) {
	add := func(key, option, value string) {
		all = append(all, types.ParameterStringFilter{Key: aws.String(key), Option: aws.String(option), Values: []string{value}})
	}
	literal := ""
	if s.Name != nil {
		literal, _ = s.Name.LiteralPrefix()
	}
	switch {
	case s.hierarchy != "" && s.hierarchy != "/" && plainName.MatchString(s.hierarchy):
		add("Path", "Recursive", strings.TrimSuffix(s.hierarchy, "/"))
	case plainName.MatchString(s.begins):
		add("Name", "BeginsWith", s.begins)
	case plainName.MatchString(literal):
		add("Name", "Contains", literal)
	}
	unfiltered = map[string]string{}
	for k, v := range s.Tags {
		if v == "" {
			unfiltered[k] = v
			continue
		}
		add("tag:"+k, "Equals", v)
	}
	return all, unfiltered
}
