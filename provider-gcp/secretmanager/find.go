package secretmanager

import (
	"context"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/grpc/codes"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

const (
	// pageSize is the requested number of secrets per page. Google can return fewer.
	pageSize = 1000
	// parallel is the maximum number of concurrent reads for one query.
	parallel = 16
)

// Find lists the matching secrets, and then reads several at a time. It omits secrets without a value: those
// without a version, those whose latest version is destroyed, and those deleted after they were listed. Any
// other error fails the query, also that of a disabled version, because an incomplete list would delete keys.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	read := func(ref provider.Ref) (provider.Value, error) { return c.Get(ctx, ref) }
	return provider.ReadListed(func() (*provider.Listing, error) { return c.list(ctx, q) }, parallel, func(some []provider.Ref) []provider.Result {
		return provider.ReadEach(some, parallel, read)
	})
}

// list returns each matching secret once. Pages can repeat a secret if secrets change while they are fetched.
func (c *Client) list(ctx context.Context, q provider.Query) (*provider.Listing, error) {
	in := &pb.ListSecretsRequest{Parent: c.parent, PageSize: pageSize, Filter: filter(q)}
	found := &provider.Listing{}
	return found, found.Pages("listing secrets", func(token string) (string, error) {
		in.PageToken = token
		out, err := gcpconfig.Call(ctx, c.config, c.api.ListSecrets, in, params("parent", c.parent))
		if err != nil {
			return "", c.explainList(err, "listing secrets")
		}
		for _, s := range out.GetSecrets() {
			id, err := c.listed(s)
			if err == nil && q.Selects(id, s.GetLabels()) {
				_, err = found.Add(id)
			}
			if err != nil {
				return "", err
			}
		}
		return out.GetNextPageToken(), nil
	})
}

// explainList explains the error of a list. A NotFound means that the project or the location does not exist,
// because the list of a project can be empty.
func (c *Client) explainList(err error, what string) error {
	none := gcpconfig.Meaning{Class: provider.Invalid, Text: "spec.projectID, spec.location: Google has no " + c.parent}
	return gcpconfig.Meanings{codes.NotFound.String(): none, gcpconfig.Missing: none}.Explain(err, what)
}

// listed returns the id of a secret in a list.
func (c *Client) listed(s *pb.Secret) (string, error) {
	_, id, ok := strings.Cut(s.GetName(), secretsPart)
	if !ok || !secretID.MatchString(id) {
		return "", provider.NewError(provider.Unavailable, "listing secrets: the response of Google has a secret without a valid name")
	}
	return id, nil
}

var (
	plainKey  = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	plainText = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,254}$`)
	operator  = regexp.MustCompile(`^(?i:and|or|not)$`)
)

// filter returns a filter with which Google omits secrets that cannot match, by
// https://cloud.google.com/secret-manager/docs/filtering. Terms that would need quotes are left to Query.Selects.
func filter(q provider.Query) string {
	var terms []string
	add := func(field, value string) {
		if plainText.MatchString(value) && !operator.MatchString(value) {
			terms = append(terms, field+value)
		}
	}
	add("name:", q.Path)
	for _, k := range slices.Sorted(maps.Keys(q.Tags)) {
		if plainKey.MatchString(k) {
			add("labels."+k+"=", q.Tags[k])
		}
	}
	return strings.Join(terms, " AND ")
}
