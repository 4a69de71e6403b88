package client

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// category is that of new items. Items of this category can have any fields.
	category = "SERVER"
	// unansweredWait is how long a creation without an answer can take effect, and be missing in lists.
	unansweredWait = 30 * time.Second
)

var _ provider.Writer = &Client{}

// A newItem is the body of a request that creates an item.
type newItem struct {
	Vault    vaultID    `json:"vault"`
	Title    string     `json:"title"`
	Category string     `json:"category"`
	Tags     []string   `json:"tags"`
	Fields   []newField `json:"fields"`
}

type vaultID struct {
	ID string `json:"id"`
}

// Features returns both features. Connect has no conditional write. A creation never overwrites an item, and an update writes only the
// fields that differ, so it loses no other field. The versions of an item show whether another client wrote at the same time. 1Password
// refuses writes to a vault that overlap.
func (*Client) Features() provider.Features {
	return provider.Features{Exclusive: true, Guarded: true, Serial: true}
}

// Observe reads an item.
func (c *Client) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	s, err := settingsOf(t)
	if err != nil {
		return provider.Observed{}, err
	}
	i, contents, err := c.fresh(ctx, t.Key)
	if err != nil {
		return provider.Observed{}, err
	}
	v := valueOf(t.Key, i, contents)
	return provider.Observed{Data: v.Data, Version: v.Version, ID: idOf(i), Mark: markOf(i), Drift: s.drift(i)}, nil
}

// find reads an item. It searches the vaults, because an earlier one can have the title now. A list of Connect can lack an item that
// was created just now, so the item counts as missing only if it is not at its known place either.
func (c *Client) find(ctx context.Context, key string) (*item, error) {
	i, err := c.search(ctx, key)
	if provider.IsNotFound(err) {
		if known, e := c.known(ctx, key); known != nil || e != nil {
			return known, e
		}
	}
	return i, err
}

// fresh is find, and also reads the contents of the files.
func (c *Client) fresh(ctx context.Context, key string) (*item, map[string][]byte, error) {
	i, err := c.find(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	contents, err := c.contents(ctx, i)
	return i, contents, err
}

// Create creates an item in the first vault, with the mark as a tag. If another item with the title exists afterwards, Create deletes
// its own, and returns Conflict.
func (c *Client) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	s, err := settingsOf(t)
	if err != nil {
		return provider.Written{}, err
	}
	fields, err := newFields(t.Key, data)
	if err != nil {
		return provider.Written{}, err
	}
	if !isTitle(t.Key) {
		return provider.Written{}, provider.NewError(provider.Invalid, "item %s: does not exist, and cannot be created with this key, which is an ID or has spaces at an end; use another title", provider.Quoted(t.Key))
	}
	switch _, err := c.find(ctx, t.Key); {
	case err == nil:
		return provider.Written{}, provider.NewError(provider.Conflict, "item %s: another client created it meanwhile; retrying", provider.Quoted(t.Key))
	case !provider.IsNotFound(err):
		return provider.Written{}, err
	}
	vaults, err := c.searched(ctx)
	if err == nil {
		err = c.checkUnanswered(t.Key)
	}
	if err != nil {
		return provider.Written{}, named(t.Key, err)
	}
	in := vaults[0]
	i, err := c.api.oneItem(ctx, "creating the item", http.MethodPost, place{vault: in}, newItem{
		Vault: vaultID{in.ID}, Title: t.Key, Category: category, Tags: s.onto([]string{tag(markTag, mark)}, s.names()...), Fields: fields,
	})
	if err != nil {
		if provider.ClassOf(err) == provider.Unavailable {
			c.addUnanswered(t.Key, time.Now())
		}
		return provider.Written{}, named(t.Key, err)
	}
	own := place{vault: in, id: i.ID}
	if i.Title != t.Key { // It would not be found, and created again at each compare.
		if err = c.remove(ctx, own); err == nil {
			err = provider.NewError(provider.Invalid, "1Password stored it with another title, so it was deleted again; use another key")
		}
		return provider.Written{}, named(t.Key, err)
	}
	own.title = t.Key
	c.places.keep(t.Key, own)
	if err := c.onlyOne(ctx, t.Key, own); err != nil {
		return provider.Written{}, err
	}
	return provider.Written{Version: versionOf(i, nil), ID: idOf(i)}, nil
}

// addUnanswered records that the creation of an item was not answered, and removes those that can no longer take effect.
func (c *Client) addUnanswered(key string, now time.Time) {
	maps.DeleteFunc(c.unanswered, func(_ string, until time.Time) bool { return !now.Before(until) })
	c.unanswered[key] = now.Add(unansweredWait)
}

// checkUnanswered returns an error if an earlier creation of an item may still take effect.
func (c *Client) checkUnanswered(key string) error {
	if until := c.unanswered[key]; time.Now().Before(until) {
		return provider.NewError(provider.Unavailable, "Connect did not answer when the item was created; it is created again at %s, if it does not exist then", until.UTC().Format(time.RFC3339))
	}
	delete(c.unanswered, key)
	return nil
}

// onlyOne deletes an item that was just created if another one has its title.
func (c *Client) onlyOne(ctx context.Context, title string, own place) error {
	vaults, err := c.searched(ctx)
	if err != nil {
		return named(title, err)
	}
	for _, v := range vaults {
		items, err := c.itemsOf(ctx, v, title)
		if err != nil {
			return named(title, err)
		}
		if !slices.ContainsFunc(titled(items)[title], func(id string) bool { return id != own.id }) {
			continue
		}
		c.places.forget(title)
		if err := c.remove(ctx, own); err != nil {
			return named(title, err)
		}
		return provider.NewError(provider.Conflict, "item %s: another client created it at the same time; retrying", provider.Quoted(title))
	}
	return nil
}

// remove deletes an item, which need not exist.
func (c *Client) remove(ctx context.Context, at place) error {
	err := c.api.Call(ctx, "deleting the item", http.MethodDelete, "/v1/vaults/"+at.vault.ID+"/items/"+at.id, nil, nil)
	if provider.IsNotFound(err) {
		return nil
	}
	return err
}

// Update writes the fields and tags that differ.
func (c *Client) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	s, err := settingsOf(t)
	if err != nil {
		return provider.Written{}, err
	}
	return c.change(ctx, t, seen, func(i *item, contents map[string][]byte) ([]change, error) {
		all, err := changesOf(i, contents, data)
		if err == nil {
			err = s.checkOnto(i.Tags)
		}
		if tags := s.onto(i.Tags, s.names()...); !slices.Equal(tags, i.Tags) {
			all = append(all, change{"replace", "/tags", tags})
		}
		return all, err
	})
}

// Mark replaces the tag with the mark.
func (c *Client) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	_, err := c.change(ctx, t, seen, func(i *item, _ map[string][]byte) ([]change, error) {
		return []change{{"replace", "/tags", settings{Tags: map[string]string{markTag: mark}}.onto(i.Tags, markTag)}}, nil
	})
	return err
}

// change patches an item that is as it was seen.
func (c *Client) change(ctx context.Context, t provider.Target, seen provider.Observed, changes func(*item, map[string][]byte) ([]change, error)) (provider.Written, error) {
	i, contents, err := c.unchanged(ctx, t.Key, seen)
	if err != nil {
		return provider.Written{}, err
	}
	all, err := changes(i, contents)
	if err != nil {
		return provider.Written{}, named(t.Key, err)
	}
	if len(all) == 0 {
		return provider.Written{Version: seen.Version, ID: seen.ID}, nil
	}
	after, err := c.api.oneItem(ctx, "updating the item", http.MethodPatch, place{vault: i.Vault, id: i.ID}, all)
	if err != nil {
		return provider.Written{}, named(t.Key, err)
	}
	if after.Version > i.Version+1 { // One request is one version.
		return provider.Written{}, provider.NewError(provider.Unavailable, "item %s: another client changed it at the same time; if it wrote the same fields, its values are in the item's history", provider.Quoted(t.Key))
	}
	return provider.Written{Version: versionOf(after, contents), ID: seen.ID}, nil
}

// unchanged reads an item that must be the one that was seen.
func (c *Client) unchanged(ctx context.Context, key string, seen provider.Observed) (*item, map[string][]byte, error) {
	i, contents, err := c.fresh(ctx, key)
	if err == nil {
		err = provider.Observed{Version: versionOf(i, contents), ID: idOf(i), Mark: markOf(i)}.Unchanged(seen)
	}
	return i, contents, err
}

// Delete deletes an item, which 1Password then keeps for 30 days. It refuses one with fields or files that Observe does not return,
// because the caller cannot know that they are lost.
func (c *Client) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	i, contents, err := c.unchanged(ctx, t.Key, seen)
	if err == nil {
		err = checkHidden(t.Key, i, contents)
	}
	if err == nil {
		err = named(t.Key, c.remove(ctx, place{vault: i.Vault, id: i.ID}))
	}
	if err == nil {
		c.places.forget(t.Key)
	}
	return err
}

// checkHidden returns an error for an item with properties that are not in its value.
func checkHidden(key string, i *item, contents map[string][]byte) error {
	all := propertiesOf(i, contents)
	x := indexOf(all)
	hidden := slices.DeleteFunc(all, func(p *property) bool { return x.member(p) != "" })
	if len(hidden) > 0 {
		return provider.NewError(provider.Invalid, "item %s: is not deleted, because it has files or fields that a push does not know: %s; remove these, or set deletionPolicy: None and delete the item in 1Password", provider.Quoted(key), list(idsOf(hidden)))
	}
	return nil
}

// isTitle reports whether an item can be created with a key as its title, and is found by it.
func isTitle(key string) bool { return !remoteID.MatchString(key) && strings.TrimSpace(key) == key }
