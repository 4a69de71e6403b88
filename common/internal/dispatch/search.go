package dispatch

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Limits of the results of one search.
const (
	// maxFound limits the number of secrets.
	//limit:reads Results of a `find` | An error that names the limit.
	maxFound = 10_000
	// maxFoundBytes limits the bytes in memory. A Secret holds a quarter of it.
	//limit:reads Values of the results of a `find` | unit=bytes | An error that names the limit.
	maxFoundBytes = maxRequest
)

// search makes one search.
func (l *Loader) search(ctx context.Context, c *provider.Link, batch []*entry) []provider.Answer {
	found, err := find(ctx, c, l.tenant, batch[0].read.Search)
	return []provider.Answer{{Found: found, Err: err}}
}

// find returns all matching secrets, or only an error. While it runs, the secrets that it has found count for the
// tenant.
func find(ctx context.Context, c *provider.Link, tenant *quota.Tenant, s provider.Search) ([]provider.Value, error) {
	q, err := s.Query()
	if err != nil {
		return nil, err
	}
	var found []provider.Value
	size, held := 0, tenant.Holder(nil)
	defer held.Release()
	for v, err := range c.Find(ctx, q) {
		if err != nil {
			return nil, err
		}
		size += v.Size()
		switch {
		case len(found) >= maxFound:
			return nil, provider.NewError(provider.Invalid, "find: more than %d secrets match; narrow path, name or tags", maxFound)
		case size > maxFoundBytes:
			return nil, provider.NewError(provider.Invalid, "find: the matching secrets have more than %d MiB in total; narrow path, name or tags", maxFoundBytes>>20)
		case held.Grow(ctx, int64(size), maxFoundBytes) != nil:
			return nil, provider.ErrNoRoom
		}
		found = append(found, v)
	}
	return found, nil
}
