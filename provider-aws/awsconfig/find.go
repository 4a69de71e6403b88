package awsconfig

import (
	"context"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// MaxFound is the maximum number of secrets that a query can select.
const MaxFound = 10000

// NoList returns the error for an answer without the requested list. AWS sends an empty list if nothing
// matches, so the answer does not come from AWS.
func NoList(what string) error {
	return provider.NewError(provider.Unavailable, "%s: the response is not from AWS; check spec.endpoint", what)
}

// A Listing holds the keys that a query selects, before their values are read. The zero value is empty.
type Listing struct {
	refs []provider.Ref
	seen map[string]bool
}

// Add adds a key and reports whether it is new. Pages can repeat a key if secrets change while they are
// fetched. It returns an error for more than MaxFound keys.
func (l *Listing) Add(key string) (added bool, err error) {
	if l.seen[key] {
		return false, nil
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[key] = true
	l.refs = append(l.refs, provider.Ref{Key: key})
	if len(l.refs) > MaxFound {
		return false, provider.NewError(provider.Invalid, "find: more than %d secrets match; narrow path, name or tags", MaxFound)
	}
	return true, nil
}

// Emit reads the values in batches and yields them up to the first error.
func (l *Listing) Emit(ctx context.Context, b provider.Batcher, yield func(provider.Value, error) bool) {
	for some := range slices.Chunk(l.refs, b.BatchSize()) {
		for _, r := range b.GetBatch(ctx, some) {
			if provider.IsNotFound(r.Err) {
				continue // The secret was deleted after it was listed.
			}
			if !yield(r.Value, r.Err) || r.Err != nil {
				return
			}
		}
	}
}
