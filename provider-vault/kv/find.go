package kv

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/sync/errgroup"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

const (
	// maxFound is the maximum number of secrets that a query can select.
	maxFound = 10_000
	// maxListed is the maximum number of names that a query can list.
	maxListed = 100_000
	// parallel is the maximum number of concurrent requests of one query.
	parallel = 8
)

// Find lists the folder of the query and those below it, and then reads the matching secrets. Vault can neither
// list folders recursively nor read several secrets in one call.
func (c *Client) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		if len(q.Tags) > 0 && c.engine.version() == (kv1{}).version() {
			yield(provider.Value{}, provider.NewError(provider.Invalid, "find: KV v1 has no custom metadata; remove tags"))
			return
		}
		keys, err := c.list(ctx, q)
		if err != nil {
			yield(provider.Value{}, err)
			return
		}
		for some := range slices.Chunk(keys, 4*parallel) {
			values, err := c.readAll(ctx, some, q.Tags)
			if err != nil {
				yield(provider.Value{}, err)
				return
			}
			for _, v := range values {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// readAll reads the secrets that have the tags. It omits secrets that were deleted after the list, and those
// that are listed only because Vault still stores older versions.
func (c *Client) readAll(ctx context.Context, keys []string, tags map[string]string) ([]provider.Value, error) {
	found := make([]*provider.Value, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, key := range keys {
		g.Go(func() error {
			v, err := c.Get(ctx, provider.Ref{Key: key, Metadata: len(tags) > 0})
			if provider.IsNotFound(err) {
				return nil
			}
			if err == nil && (provider.Query{Tags: tags}).Selects(key, v.Metadata) {
				v.Metadata = nil
				found[i] = &v
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var values []provider.Value
	for _, v := range found {
		if v != nil {
			values = append(values, *v)
		}
	}
	return values, nil
}

// list returns the sorted keys in the folder of the query, and below it, that match its name.
func (c *Client) list(ctx context.Context, q provider.Query) ([]string, error) {
	folder := strings.TrimSuffix(q.Path, "/")
	if why := c.unfit(folder); folder != "" && why != "" {
		return nil, provider.NewError(provider.Invalid, "find: path %q %s; write it as folder/folder", session.Shortened(q.Path), why)
	}
	if folder != "" {
		folder += "/"
	}
	var keys []string
	listed := 0
	for folders := []string{folder}; len(folders) > 0; {
		entries, err := c.listAll(ctx, folders)
		if err != nil {
			return nil, err
		}
		folders = nil
		if listed += len(entries); listed > maxListed {
			return nil, provider.NewError(provider.Invalid, "find: more than %d secrets and folders to search; narrow path", maxListed)
		}
		for _, e := range entries {
			selected := q.Name == nil || q.Name.MatchString(e)
			why := c.unfit(strings.TrimSuffix(e, "/"))
			switch {
			case why != "" && selected:
				return nil, provider.NewError(provider.Invalid, "find: the name %q cannot be read, because it %s; rename it at Vault, or narrow path or name", session.Shortened(e), why)
			case why != "": // The rule does not ask for it.
			case strings.HasSuffix(e, "/"):
				folders = append(folders, e)
			case selected:
				keys = append(keys, e)
			}
		}
		if len(keys) > maxFound {
			return nil, provider.NewError(provider.Invalid, "find: more than %d secrets match; narrow path or name", maxFound)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// listAll returns the contents of folders as complete keys. Folders end in a slash.
func (c *Client) listAll(ctx context.Context, folders []string) ([]string, error) {
	var mu sync.Mutex
	var all []string
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, f := range folders {
		g.Go(func() error {
			names, err := c.listOne(ctx, f)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, names...)
			return err
		})
	}
	return all, g.Wait()
}

func (c *Client) listOne(ctx context.Context, folder string) ([]string, error) {
	what := "listing the folder " + strings.TrimSuffix(folder, "/")
	if folder == "" {
		what = "listing secrets"
	}
	path := c.engine.list(c.mount, folder)
	a, err := c.read(ctx, path, url.Values{"list": {"true"}})
	var r *session.Refusal
	switch {
	case errors.As(err, &r) && r.Status == http.StatusNotFound:
		// Vault has no empty folders: it answers with 404 if there is none.
		if err := c.missing(ctx, r, what); !provider.IsNotFound(err) {
			return nil, err
		}
		return nil, nil
	case r != nil && r.Status == http.StatusForbidden && !r.Foreign:
		return nil, provider.NewError(provider.Denied, "%s: access denied; allow list on %q in a policy", what, session.Shortened(path))
	case err != nil:
		return nil, session.Explain(err, what)
	}
	list, err := session.Data[struct {
		Keys *[]string `json:"keys"`
	}](a)
	if err != nil || list.Keys == nil {
		return nil, provider.NewError(provider.Unavailable, "%s: the response of Vault has no list", what)
	}
	keys := make([]string, 0, len(*list.Keys))
	for _, name := range *list.Keys {
		if strings.TrimSuffix(name, "/") == "" {
			return nil, provider.NewError(provider.Unavailable, "%s: the response of Vault has an empty name", what)
		}
		keys = append(keys, folder+name)
	}
	return keys, nil
}
