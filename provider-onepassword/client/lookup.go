package client

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxKey is the maximum length of a key, in bytes.
const maxKey = 1024

// searched returns the vaults of the spec in their order.
func (c *Client) searched(ctx context.Context) ([]vault, error) {
	c.mu.Lock()
	known := c.vaults
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	all, err := c.api.listVaults(ctx)
	if err != nil {
		if provider.IsNotFound(err) || errors.Is(err, errNoVault) {
			err = c.api.Foreign("listing vaults")
		}
		return nil, err
	}
	found := make([]vault, 0, len(c.names))
	for _, name := range c.names {
		v, err := vaultOf(all, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vaults = found
	return found, nil
}

// vaultOf returns the vault with an ID, or else the only one with a name.
func vaultOf(all []vault, name string) (vault, error) {
	var ids []string
	for _, v := range all {
		if v.ID == name {
			return v, nil
		}
		if v.Name == name {
			ids = append(ids, v.ID)
		}
	}
	switch len(ids) {
	case 0:
		return vault{}, provider.NewError(provider.Invalid, "%s: there is no vault %s, or the token has no access to it; correct the name, or grant the token the vault", vaultsField, provider.Quoted(name))
	case 1:
		return vault{ID: ids[0], Name: name}, nil
	}
	slices.Sort(ids)
	return vault{}, provider.NewError(provider.Invalid, "%s: %d vaults have the name %s; write the ID of one instead: %s", vaultsField, len(ids), provider.Quoted(name), list(ids))
}

// list returns IDs for a message.
func list(ids []string) string {
	const most = 8
	if len(ids) > most {
		return strings.Join(ids[:most], ", ") + ", …"
	}
	return strings.Join(ids, ", ")
}

func (c *Client) forgetVaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vaults = nil
}

// checkKey returns an error for a key that no title can have.
func checkKey(key string) error {
	if len(key) > maxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return provider.NewError(provider.Invalid, "item %s: is not the title or ID of an item; use at most %d bytes of text without control characters", provider.Quoted(key), maxKey)
	}
	return nil
}

// item reads an item: that with the key as its ID, or else the only one with the key as its title in the first vault that has one.
func (c *Client) item(ctx context.Context, key string) (*item, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if i, err := c.known(ctx, key); i != nil || err != nil {
		return i, err
	}
	return c.search(ctx, key)
}

// known reads an item at the place where it was read last; nil if it is not known, or the item is not there any more.
func (c *Client) known(ctx context.Context, key string) (*item, error) {
	p, ok := c.places.known(key)
	if !ok {
		return nil, nil //nolint:nilnil // That an item is not known is no error.
	}
	i, err := c.getItem(ctx, p)
	switch {
	case err == nil && (i.Title == key || i.ID == key):
		return i, nil
	case err != nil && !provider.IsNotFound(err):
		return nil, named(key, err)
	}
	c.places.forget(key)
	return nil, nil //nolint:nilnil // As above.
}

// search reads an item without its known place.
func (c *Client) search(ctx context.Context, key string) (*item, error) {
	vaults, err := c.searched(ctx)
	if err != nil {
		return nil, named(key, err)
	}
	if remoteID.MatchString(key) {
		for _, v := range vaults {
			p := place{vault: v, id: key}
			if i, err := c.getItem(ctx, p); !provider.IsNotFound(err) {
				return c.located(key, p, i, err)
			}
		}
	}
	for _, v := range vaults {
		id, err := c.idOf(ctx, v, key)
		if err != nil {
			return nil, named(key, err)
		}
		if id == "" {
			continue
		}
		p := place{vault: v, id: id}
		i, err := c.getItem(ctx, p)
		if provider.IsNotFound(err) || err == nil && i.Title != key {
			return nil, changed(&item{Title: key})
		}
		return c.located(key, p, i, err)
	}
	return nil, provider.NewError(provider.NotFound, "item %s: does not exist in the vaults of the store", provider.Quoted(key))
}

// located keeps the place of an item that was read.
func (c *Client) located(key string, p place, i *item, err error) (*item, error) {
	if err != nil {
		return nil, named(key, err)
	}
	p.title = i.Title
	c.places.keep(key, p)
	return i, nil
}

var _ provider.Namer = &Client{}

// Name returns the title and the ID of an item. Without an item, a key is a title.
func (c *Client) Name(ctx context.Context, key string) (provider.Name, error) {
	if p, ok := c.places.known(key); ok && p.title != "" {
		return provider.Name{Key: p.title, ID: p.id}, nil
	}
	i, err := c.item(ctx, key)
	switch {
	case provider.IsNotFound(err):
		return provider.Name{Key: key}, nil
	case err != nil:
		return provider.Name{}, err
	}
	return provider.Name{Key: i.Title, ID: i.ID}, nil
}

// named adds the key to an error.
func named(key string, err error) error {
	return provider.Field("item "+provider.Quoted(key), err)
}

// idOf returns the ID of the only item of a vault with a title; empty if there is none.
func (c *Client) idOf(ctx context.Context, in vault, title string) (string, error) {
	items, err := c.itemsOf(ctx, in, title)
	if err != nil {
		return "", err
	}
	ids := titled(items)[title]
	switch len(ids) {
	case 0:
		return "", nil
	case 1:
		return ids[0], nil
	}
	return "", ambiguous(in, ids)
}

func ambiguous(in vault, ids []string) error {
	slices.Sort(ids)
	return provider.NewError(provider.Invalid, "%d items of vault %s have this title; rename all but one, or use the ID of one as the key: %s", len(ids), provider.Quoted(in.Name), list(ids))
}

// itemsOf lists items.
func (c *Client) itemsOf(ctx context.Context, in vault, title string) ([]item, error) {
	items, err := c.api.listItems(ctx, in, title)
	if provider.IsNotFound(err) { // A vault is listed, not an item.
		err = errNoVault
	}
	return items, c.explainVault(in, err)
}

// getItem reads an item.
func (c *Client) getItem(ctx context.Context, at place) (*item, error) {
	i, err := c.api.getItem(ctx, at)
	return i, c.explainVault(at.vault, err)
}

// explainVault names a vault that does not exist any more, which is no proof that an item does not.
func (c *Client) explainVault(in vault, err error) error {
	if !errors.Is(err, errNoVault) {
		return err
	}
	c.forgetVaults()
	return provider.NewError(provider.Unavailable, "%s: vault %s does not exist any more; retrying", vaultsField, provider.Quoted(in.Name))
}

// titled returns the IDs of items by title.
func titled(items []item) map[string][]string {
	ids := map[string][]string{}
	for _, i := range items {
		if !slices.Contains(ids[i.Title], i.ID) {
			ids[i.Title] = append(ids[i.Title], i.ID)
		}
	}
	return ids
}

// locateAll finds the places of many items with one list of each vault. Items that it does not find are looked up one by one.
func (c *Client) locateAll(ctx context.Context, refs []provider.Ref) {
	missing := map[string]bool{}
	for _, ref := range refs {
		if _, ok := c.places.known(ref.Key); !ok {
			missing[ref.Key] = true
		}
	}
	if len(missing) <= few {
		return
	}
	vaults, err := c.searched(ctx)
	if err != nil {
		return
	}
	for _, v := range vaults {
		items, err := c.itemsOf(ctx, v, "")
		if err != nil {
			return // The next vault would not be the first one that has an item.
		}
		for title, ids := range titled(items) {
			if missing[title] && len(ids) == 1 && !remoteID.MatchString(title) {
				c.places.keep(title, place{vault: v, id: ids[0], title: title})
			}
			delete(missing, title)
		}
	}
}
