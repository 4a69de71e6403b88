package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

var errBoom = errors.New("boom")

// connectTo returns a Connect to a backend.
func connectTo(b *fake.Backend) Connect {
	return func(ctx context.Context, tenant *quota.Tenant) (*provider.Link, error) {
		c, err := b.Connect(ctx, "")
		return provider.NewLink("Test", c, tenant), err
	}
}

// connects returns a Connect that succeeds with a client.
func connects(c provider.Client) Connect {
	return func(_ context.Context, tenant *quota.Tenant) (*provider.Link, error) {
		return provider.NewLink("Test", c, tenant), nil
	}
}

// filled returns a backend with the keys k0 to k<n-1>, each of which has its key as its value.
func filled(n int, opts ...fake.Option) *fake.Backend {
	b := fake.New(opts...)
	for _, k := range keys(0, n) {
		b.Put(k, []byte(k))
	}
	return b
}

// keys returns k<from> to k<to-1>.
func keys(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("k%d", i))
	}
	return out
}

func readsOf(keys ...string) (reads []provider.Read) {
	for _, k := range keys {
		reads = append(reads, provider.Read{Ref: provider.Ref{Key: k}})
	}
	return reads
}

// asked is a Read under way.
type asked struct {
	// done is 1 after the Read has returned results, and at the time.
	done    atomic.Int32
	at      atomic.Pointer[time.Time]
	results map[provider.Read]provider.Answer
	release func()
	ctx     context.Context
	cancel  context.CancelFunc
}

func ask(l *Loader, u Urgency, keys ...string) *asked { return askReads(l, u, readsOf(keys...)...) }

// Urgency ranks a request.
type Urgency int

const (
	// Periodic requests come after all others.
	Periodic Urgency = iota
	// New requests are urgent.
	New
	// Fresh requests are New, and need a read that starts after them.
	Fresh
)

// askReads starts a Read, and returns after its requests have been made.
func askReads(l *Loader, u Urgency, reads ...provider.Read) *asked {
	ctx, cancel := context.WithCancel(context.Background())
	a := &asked{ctx: ctx, cancel: cancel}
	after := time.Time{}
	if u == Fresh {
		after = time.Now()
	}
	r := l.start(trace.Parent{}, reads, u != Periodic, after)
	go func() {
		results, release, err := r.wait(ctx, func() { l.release(r) })
		if a.results, a.release = results, release; err != nil {
			return
		}
		now := time.Now()
		a.at.Store(&now)
		a.done.Add(1)
	}()
	return a
}

// drop ends the Read, or releases its results.
func (a *asked) drop() {
	a.cancel()
	if a.done.Load() > 0 {
		a.release()
	}
}

// outcome returns the value of an answer, or the class of its error.
func outcome(r provider.Answer) string {
	if r.Err != nil {
		return string(provider.ClassOf(r.Err))
	}
	return string(r.Value.Data)
}

// take returns and releases the results; false if an answer is missing.
func (a *asked) take() (map[provider.Read]provider.Answer, bool) {
	if a.done.Load() == 0 {
		return nil, false
	}
	a.release()
	return a.results, true
}

// values returns the outcomes of a request by key, and releases the results; nil if an answer is missing.
func (a *asked) values() map[string]string {
	results, ok := a.take()
	if !ok {
		return nil
	}
	out := map[string]string{}
	for read, a := range results {
		out[read.Ref.Key] = outcome(a)
	}
	return out
}

// same returns a map from each key to the same value.
func same(value string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		out[k] = value
	}
	return out
}

// call is a call that reached the provider.
type call struct {
	At   time.Duration
	Keys []string
}

// calls returns the reads that reached a backend, with the time since start. Reads at the same time are ordered by
// their keys.
func calls(b *fake.Backend, start time.Time) (out []call) {
	for _, r := range b.Calls(fake.CallGet, fake.CallGetBatch) {
		c := call{At: r.Time.Sub(start)}
		for _, ref := range r.Refs {
			c.Keys = append(c.Keys, ref.Key)
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b call) int {
		if a.At != b.At {
			return cmp.Compare(a.At, b.At)
		}
		return cmp.Compare(number(a.Keys[0]), number(b.Keys[0]))
	})
	return out
}

func number(key string) (n int) {
	_, _ = fmt.Sscanf(key, "k%d", &n)
	return n
}

// stuck is a client whose calls ignore their context, and end only when the test allows it.
type stuck struct {
	release chan struct{}
	begun   atomic.Int32
	closed  atomic.Int32
}

func (s *stuck) Get(_ context.Context, ref provider.Ref) (provider.Value, error) {
	s.begun.Add(1)
	<-s.release
	return provider.Value{Key: ref.Key, Data: []byte(ref.Key)}, nil
}

func (s *stuck) Close() error {
	s.closed.Add(1)
	return nil
}

// connected returns a Loader whose client is connected.
func connected(t *testing.T, c Connect, o Options) *Loader {
	t.Helper()
	l := NewLoader(c, o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := l.Link(ctx); err != nil {
		t.Fatal(err)
	}
	return l
}
