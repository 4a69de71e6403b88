package provider

import (
	"slices"

	"golang.org/x/sync/errgroup"
)

// MaxFound is the maximum number of secrets that a query can select.
//
//limit:reads Secrets that a `find` lists before it reads them | An error that names the limit.
const MaxFound = 10_000

// A Listing holds the secrets that a query selects, before their values are read. The zero value is empty.
type Listing struct {
	// Refs name the secrets, in the order of Add.
	Refs []Ref

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
	l.Refs = append(l.Refs, Ref{Key: key})
	if len(l.Refs) > MaxFound {
		return false, NewError(Invalid, "find: more than %d secrets match; narrow path, name or tags", MaxFound)
	}
	return true, nil
}

// Emit reads what a list has found, size at a time, and yields the values up to the first error. It omits secrets that were deleted
// after they were listed.
func Emit[T any](found []T, size int, read func([]T) []Result, yield func(Value, error) bool) {
	for some := range slices.Chunk(found, size) {
		for _, r := range read(some) {
			if IsNotFound(r.Err) {
				continue
			}
			if !yield(r.Value, r.Err) || r.Err != nil {
				return
			}
		}
	}
}

// ReadEach reads each of several secrets, at most limit at the same time. The results are in the order of the secrets.
func ReadEach[T any](secrets []T, limit int, read func(T) (Value, error)) []Result {
	results := make([]Result, len(secrets))
	var g errgroup.Group
	g.SetLimit(limit)
	for i, s := range secrets {
		g.Go(func() error {
			results[i].Value, results[i].Err = read(s)
			return nil
		})
	}
	_ = g.Wait() // Each result has its own error.
	return results
}
