package fake

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// ambient is the password of the operator's own identity. No Secret has it by accident, because it is not text.
const ambient = "\xff\x00ambient"

// A conn is shared by all parts of one client.
type conn struct {
	b        *Backend
	password string
}

// newClient combines the parts that the backend supports. Capabilities are found by type assertion, so each
// combination needs its own type.
func newClient(c *conn) provider.Client {
	r, b, f, ch := reader{c}, batcher{c}, finder{c}, checker{c}
	lacks := c.b.lacks
	if len(lacks) == 0 {
		return struct {
			reader
			batcher
			finder
			checker
			writer
		}{r, b, f, ch, writer{c}}
	}
	switch [3]bool{!lacks[provider.CapabilityBatch], !lacks[provider.CapabilityFind], !lacks[provider.CapabilityCheck]} {
	case [3]bool{true, true, true}:
		return struct {
			reader
			batcher
			finder
			checker
		}{r, b, f, ch}
	case [3]bool{true, true, false}:
		return struct {
			reader
			batcher
			finder
		}{r, b, f}
	case [3]bool{true, false, true}:
		return struct {
			reader
			batcher
			checker
		}{r, b, ch}
	case [3]bool{false, true, true}:
		return struct {
			reader
			finder
			checker
		}{r, f, ch}
	case [3]bool{true, false, false}:
		return struct {
			reader
			batcher
		}{r, b}
	case [3]bool{false, true, false}:
		return struct {
			reader
			finder
		}{r, f}
	case [3]bool{false, false, true}:
		return struct {
			reader
			checker
		}{r, ch}
	}
	return r
}

type reader struct{ c *conn }

// Get reads one secret.
func (r reader) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	if err := r.c.begin(ctx, Record{Call: CallGet, Refs: []provider.Ref{ref}}); err != nil {
		return provider.Value{}, err
	}
	res := r.c.b.entry(ctx, CallGet, ref)
	return res.Value, res.Err
}

// Identity implements provider.Identifier. It is not recorded as a call.
func (r reader) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: fmt.Sprintf("fake %p", r.c.b)}, nil
}

// Full is a prefix with which each key can be spelled, too.
const Full = "full:"

func nameOf(key string) string { return strings.TrimPrefix(key, Full) }

// Name implements provider.Namer. It is not recorded as a call, and fails only by a Fault of its own.
func (r reader) Name(_ context.Context, key string) (provider.Name, error) {
	if in := r.c.b.Take(func(f Fault) bool { return f.Call == CallName && f.Key == key }); in != nil {
		return provider.Name{}, in.Fault.Err
	}
	return provider.Name{Key: nameOf(key)}, nil
}

// Close records the call.
func (r reader) Close() error {
	r.c.b.Record(Record{Call: CallClose, Time: time.Now()})
	return nil
}

type batcher struct{ c *conn }

// GetBatch reads many secrets in one call.
func (b batcher) GetBatch(ctx context.Context, refs []provider.Ref) []provider.Result {
	results := make([]provider.Result, len(refs))
	err := b.c.begin(ctx, Record{Call: CallGetBatch, Refs: append([]provider.Ref(nil), refs...)})
	if err == nil && len(refs) > b.BatchSize() {
		err = provider.NewError(provider.Invalid, "a batch of %d is over the limit of %d", len(refs), b.BatchSize())
	}
	for i, ref := range refs {
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i] = b.c.b.entry(ctx, CallGetBatch, ref)
	}
	return results
}

// BatchSize returns the batch size of the backend.
func (b batcher) BatchSize() int { return b.c.b.batchSize }

type finder struct{ c *conn }

// Find yields the matching secrets, sorted by key.
func (f finder) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		if err := f.c.begin(ctx, Record{Call: CallFind, Query: q}); err != nil {
			yield(provider.Value{}, err)
			return
		}
		for _, key := range f.c.b.list(q) {
			res := f.c.b.entry(ctx, CallFind, provider.Ref{Key: key})
			if provider.IsNotFound(res.Err) {
				continue // It was deleted after it was listed.
			}
			if !yield(res.Value, res.Err) || res.Err != nil {
				return
			}
		}
	}
}

type checker struct{ c *conn }

// Check checks the password.
func (c checker) Check(ctx context.Context) error {
	return c.c.begin(ctx, Record{Call: CallCheck})
}

// begin records a call, applies the faults of the whole call, and checks the password.
func (c *conn) begin(ctx context.Context, r Record) error {
	if err := c.b.begin(ctx, r); err != nil {
		return err
	}
	return c.b.admit(c.password)
}

func matches(q provider.Query, key string, tags map[string]string) bool {
	if !strings.HasPrefix(key, q.Path) || q.Name != nil && !q.Name.MatchString(key) {
		return false
	}
	for k, v := range q.Tags {
		if got, ok := tags[k]; !ok || got != v {
			return false
		}
	}
	return true
}
