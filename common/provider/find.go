package provider

import (
	"iter"
	"slices"
	"strings"

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

// Pages adds what the pages of a list yield. fetch gets the token of a page, which is empty for the first one, and returns that of the
// next one, which is empty after the last. what is what is listed, for errors.
func (l *Listing) Pages(what string, fetch func(token string) (next string, err error)) error {
	fetched := map[string]bool{}
	for token := ""; ; {
		next, err := fetch(token)
		if err != nil || next == "" {
			return err
		}
		if token = next; fetched[token] {
			return NewError(Unavailable, "%s: the service repeats a page of the list; retrying", what)
		}
		fetched[token] = true
	}
}

// Selects reports whether a query selects a secret. Filters of services are often less exact, and only shorten their answers.
func (q Query) Selects(key string, tags map[string]string) bool {
	for name, value := range q.Tags {
		if is, ok := tags[name]; !ok || is != value {
			return false
		}
	}
	return strings.HasPrefix(key, q.Path) && (q.Name == nil || q.Name.MatchString(key))
}

// ReadListed yields the secrets of a list, which are read size at a time, up to the first error.
func ReadListed(list func() (*Listing, error), size int, read func([]Ref) []Result) iter.Seq2[Value, error] {
	return func(yield func(Value, error) bool) {
		found, err := list()
		if err != nil {
			yield(Value{}, err)
			return
		}
		Emit(found.Refs, size, read, yield)
	}
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
