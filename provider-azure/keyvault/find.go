package keyvault

import (
	"context"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

const (
	// parallel is the maximum number of concurrent reads for one query.
	parallel = 16
)

// Find lists the matching secrets, and then reads several at a time. It omits those that are part of a certificate, and those deleted after
// they were listed. Any other error fails the query, also that of a disabled or expired secret, because an incomplete list would delete
// keys.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	read := func(ref provider.Ref) (provider.Value, error) { return c.Get(ctx, ref) }
	return provider.ReadListed(func() (*provider.Listing, error) { return c.list(ctx, q) }, parallel, func(some []provider.Ref) []provider.Result {
		return provider.ReadEach(some, parallel, read)
	})
}

// list returns each matching secret once.
func (c *Client) list(ctx context.Context, q provider.Query) (*provider.Listing, error) {
	found := &provider.Listing{}
	for all, err := range c.pages(ctx) {
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			name, _, ok := parseID(s.ID)
			if !ok {
				return nil, provider.NewError(provider.Unavailable, "listing secrets: the response of Key Vault has a secret without a valid name")
			}
			if deref(s.Managed) || !q.Selects(name, tagsOf(s.Tags)) {
				continue
			}
			if _, err := found.Add(name); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// pages yields the pages of the list of all secrets.
func (c *vault) pages(ctx context.Context) iter.Seq2[[]*azsecrets.SecretProperties, error] {
	const what = "listing secrets"
	of := func(p azsecrets.ListSecretPropertiesResponse) azsecrets.SecretPropertiesListResult {
		return p.SecretPropertiesListResult
	}
	return pagesOf(ctx, c.config, c.api.NewListSecretPropertiesPager(nil), of, what, func(err error) error { return azureconfig.ExplainList(ctx, err, what) })
}

// pagesOf yields the pages of a list, and at the end an error, if there is one. A page without a list, and one that comes again, are
// Unavailable. what describes the list.
func pagesOf[T any](
	ctx context.Context, config *azureconfig.Config, pager *runtime.Pager[T], of func(T) azsecrets.SecretPropertiesListResult, what string, explain func(error) error,
) iter.Seq2[[]*azsecrets.SecretProperties, error] {
	return func(yield func([]*azsecrets.SecretProperties, error) bool) {
		for links := map[string]bool{}; pager.More(); {
			err := config.Ready(ctx)
			var next T
			if err == nil {
				next, err = pager.NextPage(ctx)
			}
			page := of(next)
			switch link := deref(page.NextLink); {
			case err != nil:
				err = explain(err)
			case page.Value == nil:
				err = provider.NewError(provider.Unavailable, "%s: spec.vaultURL: the response is not that of Key Vault; check the address", what)
			case links[link]:
				err = provider.NewError(provider.Unavailable, "%s: Key Vault repeats the same page of the list", what)
			case link != "":
				links[link] = true
			}
			if !yield(page.Value, err) || err != nil {
				return
			}
		}
	}
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
