package awsconfig

import (
	"context"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// MaxFound is how many secrets a query may select.
const MaxFound = 10000

// NoList is the error of an answer without the list that was asked for. AWS sends one also where nothing
// matches, so that what answers is not AWS.
func NoList(what string) error {
	return provider.NewError(provider.Unavailable, "%s: what answers is not AWS; check spec.endpoint", what)
}

// A Listing is what a query selects, before any value is read. The zero value is empty.
type Listing struct {
	refs []provider.Ref
	seen map[string]bool
}

// Add adds a key once: pages overlap when secrets change meanwhile. It returns whether it did, and an
// error when there are too many.
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

// Yield reads the values in batches, and yields them up to the first error.
func (l *Listing) Yield(ctx context.Context, b provider.Batcher, yield func(provider.Value, error) bool) {
	for some := range slices.Chunk(l.refs, b.BatchSize()) {
		for _, r := range b.GetBatch(ctx, some) {
			if provider.IsNotFound(r.Err) {
				continue // deleted since it was listed
			}
			if !yield(r.Value, r.Err) || r.Err != nil {
				return
			}
		}
	}
}
