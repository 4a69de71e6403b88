package keyvault

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"
	"golang.org/x/sync/errgroup"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

const (
	// maxFound is the maximum number of secrets that a query can select.
	maxFound = 10000
	// parallel is the maximum number of concurrent reads for one query.
	parallel = 16
)

// Find lists the matching secrets, and then reads several at a time. It omits those that are part of a certificate, and those deleted after
// they were listed. Any other error fails the query, also that of a disabled or expired secret, because an incomplete list would delete
// keys.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		keys, err := c.list(ctx, q)
		if err != nil {
			yield(provider.Value{}, err)
			return
		}
		for some := range slices.Chunk(keys, parallel) {
			for _, r := range c.readAll(ctx, some) {
				if provider.IsNotFound(r.Err) {
					continue
				}
				if !yield(r.Value, r.Err) || r.Err != nil {
					return
				}
			}
		}
	}
}

// readAll reads secrets concurrently.
func (c *Client) readAll(ctx context.Context, keys []string) []provider.Result {
	results := make([]provider.Result, len(keys))
	var g errgroup.Group
	for i, key := range keys {
		g.Go(func() error {
			results[i].Value, results[i].Err = c.Get(ctx, provider.Ref{Key: key})
			return nil
		})
	}
	_ = g.Wait() // Each result carries its own error.
	return results
}

// list returns each matching secret once. Pages can repeat a secret if secrets change while they are fetched.
func (c *Client) list(ctx context.Context, q provider.Query) ([]string, error) {
	var keys []string
	seen, links := map[string]bool{}, map[string]bool{}
	for page, err := range c.pages(ctx) {
		if err != nil {
			return nil, err
		}
		for _, s := range page.Value {
			name, _, ok := parseID(s.ID)
			if !ok {
				return nil, provider.NewError(provider.Unavailable, "listing secrets: the response of Key Vault has a secret without a valid name")
			}
			if !seen[name] && (s.Managed == nil || !*s.Managed) && selects(q, name, s.Tags) {
				seen[name] = true
				keys = append(keys, name)
			}
		}
		if len(keys) > maxFound {
			return nil, provider.NewError(provider.Invalid, "find: more than %d secrets match; narrow path, name or tags", maxFound)
		}
		if page.NextLink == nil {
			continue
		}
		if links[*page.NextLink] {
			return nil, provider.NewError(provider.Unavailable, "listing secrets: Key Vault repeats the same page of the list")
		}
		links[*page.NextLink] = true
	}
	return keys, nil
}

// pages yields the pages of the list of all secrets. A page without a list is Unavailable.
func (c *Client) pages(ctx context.Context) iter.Seq2[azsecrets.ListSecretPropertiesResponse, error] {
	return func(yield func(azsecrets.ListSecretPropertiesResponse, error) bool) {
		pager := c.api.NewListSecretPropertiesPager(nil)
		for pager.More() {
			err := c.config.Ready(ctx)
			var page azsecrets.ListSecretPropertiesResponse
			if err == nil {
				page, err = pager.NextPage(ctx)
			}
			switch {
			case err != nil:
				err = azureconfig.ExplainList(ctx, err, "listing secrets")
			case page.Value == nil:
				err = provider.NewError(provider.Unavailable, "listing secrets: spec.vaultURL: the response is not that of Key Vault; check the address")
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// selects reports whether a query selects a secret.
func selects(q provider.Query, name string, tags map[string]*string) bool {
	if !strings.HasPrefix(name, q.Path) || q.Name != nil && !q.Name.MatchString(name) {
		return false
	}
	for k, v := range q.Tags {
		if got := tags[k]; got == nil || *got != v {
			return false
		}
	}
	return true
}

// Check reads the first page of the list. It also passes if only the permission for that call is missing, because then the login works.
func (c *Client) Check(ctx context.Context) error {
	for _, err := range c.pages(ctx) {
		if azureconfig.IsPermissionMissing(err) {
			return nil
		}
		return err
	}
	return nil
}
