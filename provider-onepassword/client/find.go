package client

import (
	"context"
	"iter"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Find lists the items of all vaults, and then reads several at a time. It omits items that are deleted in the meantime. Any other
// error fails the query, because an incomplete list would delete keys.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		found, err := c.list(ctx, q)
		if err != nil {
			yield(provider.Value{}, err)
			return
		}
		read := func(m match) (provider.Value, error) { return c.match(ctx, m) }
		provider.Emit(found, parallel, func(some []match) []provider.Result { return provider.ReadEach(some, parallel, read) }, yield)
	}
}

// A match is an item that a query selects.
type match struct {
	title string
	at    place
}

// list returns the items that a query selects. Of items with one title in several vaults it is the first one, as with Get.
func (c *Client) list(ctx context.Context, q provider.Query) ([]match, error) {
	vaults, err := c.searched(ctx)
	if err != nil {
		return nil, err
	}
	var found []match
	seen := map[string]bool{}
	for _, v := range vaults {
		items, err := c.itemsOf(ctx, v, "")
		if err != nil {
			return nil, err
		}
		ids := titled(items)
		for _, i := range items {
			if seen[i.Title] || !selects(q, i) {
				continue
			}
			if len(ids[i.Title]) > 1 {
				return nil, named(i.Title, ambiguous(v, ids[i.Title]))
			}
			found = append(found, match{i.Title, place{vault: v, id: i.ID}})
		}
		for title := range ids {
			seen[title] = true
		}
	}
	if len(found) > provider.MaxFound {
		return nil, provider.NewError(provider.Invalid, "find: more than %d items match; narrow path, name or tags", provider.MaxFound)
	}
	return found, nil
}

// selects reports whether a query selects an item. A tag of 1Password is a name with a value, or without one.
func selects(q provider.Query, i item) bool {
	for k, v := range q.Tags {
		if !slices.Contains(i.Tags, tag(k, v)) {
			return false
		}
	}
	return provider.Query{Path: q.Path, Name: q.Name}.Selects(i.Title, nil)
}

// match reads an item that must still have the title.
func (c *Client) match(ctx context.Context, m match) (provider.Value, error) {
	i, err := c.api.getItem(ctx, m.at)
	if err == nil && i.Title != m.title {
		err = changed(i)
	}
	if err != nil {
		return provider.Value{}, named(m.title, err)
	}
	return c.value(ctx, provider.Ref{Key: m.title}, i)
}
