package provider_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// A downloader is a client and generator each of whose calls gets one large answer. It keeps all answers open.
type downloader struct {
	open []io.Closer
}

// answer is the size of each answer of a downloader.
const answer = 128 << 10

func (d *downloader) download(ctx context.Context) error {
	body := provider.LimitAnswer(ctx, io.NopCloser(bytes.NewReader(make([]byte, answer))), provider.MaxAnswer)
	d.open = append(d.open, body)
	_, err := io.Copy(io.Discard, body)
	return err
}

func (d *downloader) Get(ctx context.Context, _ provider.Ref) (provider.Value, error) {
	return provider.Value{}, d.download(ctx)
}

func (d *downloader) GetBatch(ctx context.Context, _ []provider.Ref) []provider.Result {
	return []provider.Result{{Err: d.download(ctx)}}
}

func (d *downloader) BatchSize() int { return 20 }

func (d *downloader) Find(ctx context.Context, _ provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) { yield(provider.Value{}, d.download(ctx)) }
}

func (d *downloader) Check(ctx context.Context) error { return d.download(ctx) }

func (d *downloader) Identity(ctx context.Context) (provider.Identity, error) {
	return provider.Identity{Place: "here"}, d.download(ctx)
}

func (d *downloader) Features() provider.Features { return provider.Features{} }

func (d *downloader) Observe(ctx context.Context, _ provider.Target) (provider.Observed, error) {
	return provider.Observed{}, d.download(ctx)
}

func (d *downloader) Create(ctx context.Context, _ provider.Target, _ []byte, _ string) (provider.Written, error) {
	return provider.Written{}, d.download(ctx)
}

func (d *downloader) Update(ctx context.Context, _ provider.Target, _ provider.Observed, _ []byte) (provider.Written, error) {
	return provider.Written{}, d.download(ctx)
}

func (d *downloader) Mark(ctx context.Context, _ provider.Target, _ provider.Observed, _ string) error {
	return d.download(ctx)
}

func (d *downloader) Delete(ctx context.Context, _ provider.Target, _ provider.Observed) error {
	return d.download(ctx)
}

func (d *downloader) Generate(ctx context.Context) (provider.Generated, error) {
	return provider.Generated{Values: map[string][]byte{"k": nil}}, d.download(ctx)
}

func (d *downloader) Renew(ctx context.Context, _ string) (provider.Generated, error) {
	return provider.Generated{}, d.download(ctx)
}

func (d *downloader) Cleanup(ctx context.Context, _ string) error { return d.download(ctx) }

func (d *downloader) Linger() time.Duration { return 0 }

// TestLinkCounts makes every call of the contract. Its answer must count for the tenant.
func TestLinkCounts(t *testing.T) {
	d := &downloader{}
	tenant := (&quota.Quotas{}).Tenant("shop")
	kind := provider.KindOf(fakeStores(func(ctx context.Context, _ *v1alpha1.FakeStore, _ provider.Credentials) (provider.Client, error) {
		return d, d.download(ctx)
	}))
	var l *provider.Link
	to, seen := provider.Target{Key: "db"}, provider.Observed{}
	calls := []struct {
		name string
		call func(ctx context.Context) error
	}{
		{"Connect", func(ctx context.Context) (err error) {
			l, err = kind.Connect(ctx, &v1alpha1.FakeStore{}, nil, tenant)
			return err
		}},
		{"Aside", func(ctx context.Context) error { return d.download(provider.Aside(quota.With(ctx, tenant))) }},
		{"Get", func(ctx context.Context) error { _, err := l.Get(ctx, provider.Ref{Key: "db"}); return err }},
		{"GetBatch", func(ctx context.Context) error { return l.GetBatch(ctx, refs("db"))[0].Err }},
		{"Find", func(ctx context.Context) (last error) {
			for _, err := range l.Find(ctx, provider.Query{}) {
				last = err
			}
			return last
		}},
		{"Check", func(ctx context.Context) error { return l.Check(ctx) }},
		{"Identify", func(ctx context.Context) error { _, err := l.Identify(ctx); return err }},
		{"Observe", func(ctx context.Context) error { _, err := l.Observe(ctx, to); return err }},
		{"Create", func(ctx context.Context) error { _, err := l.Create(ctx, to, nil, ""); return err }},
		{"Update", func(ctx context.Context) error { _, err := l.Update(ctx, to, seen, nil); return err }},
		{"Mark", func(ctx context.Context) error { return l.Mark(ctx, to, seen, "") }},
		{"Delete", func(ctx context.Context) error { return l.Delete(ctx, to, seen) }},
		{"Generate", func(ctx context.Context) error { _, err := l.Generate(ctx); return err }},
		{"Renew", func(ctx context.Context) error { _, err := l.Renew(ctx, ""); return err }},
		{"Cleanup", func(ctx context.Context) error { return l.Cleanup(ctx, "") }},
	}
	for _, tc := range calls {
		if err := tc.call(t.Context()); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(int64(2*(answer-quota.Uncounted)), tenant.Used()); diff != "" || len(d.open) != 1 {
			t.Errorf("%s: %d answers; bytes that count: -want, +got:\n%s", tc.name, len(d.open), diff)
		}
		for _, body := range d.open {
			if err := body.Close(); err != nil {
				t.Error(err)
			}
		}
		d.open = nil
	}
}

// A shelf is a Writer with one large secret.
type shelf struct{ downloader }

func (s *shelf) Observe(ctx context.Context, _ provider.Target) (provider.Observed, error) {
	err := s.download(ctx)
	for _, body := range s.open {
		_ = body.Close() // It is closed like after a complete read.
	}
	return provider.Observed{Data: make([]byte, answer)}, err
}

// TestObserve observes a large secret. It counts until its context ends.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := (&quota.Quotas{}).Tenant("shop")
		s := &shelf{}
		l := provider.NewLink("Test", s, tenant)
		ctx, done := context.WithCancel(t.Context())
		if _, err := l.Observe(ctx, provider.Target{Key: "db"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(int64(answer), tenant.Used()); diff != "" {
			t.Errorf("bytes that count: -want, +got:\n%s", diff)
		}
		done()
		synctest.Wait()
		if n := tenant.Used(); n != 0 {
			t.Errorf("%d bytes count after the end", n)
		}
	})
}

// A loser is a Writer whose writes to the secret fail.
type loser struct {
	shelf

	err      error
	features provider.Features
	// writes is called in each write.
	writes func()
}

func (l *loser) Features() provider.Features { return l.features }

func (l *loser) Create(context.Context, provider.Target, []byte, string) (provider.Written, error) {
	l.writes()
	return provider.Written{}, l.err
}

func (l *loser) Update(context.Context, provider.Target, provider.Observed, []byte) (provider.Written, error) {
	return provider.Written{}, l.err
}
func (l *loser) Mark(context.Context, provider.Target, provider.Observed, string) error { return l.err }
func (l *loser) Delete(context.Context, provider.Target, provider.Observed) error       { return l.err }

// TestWriteErrors has secrets that are not as they were seen.
func TestWriteErrors(t *testing.T) {
	type outcome map[string]string
	changed, deleted := `Conflict: "db": another client changed it meanwhile; retrying`, `Conflict: "db": another client deleted it meanwhile; retrying`
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   outcome
	}{
		"Changed": {"The error names the key.", provider.ErrChanged, outcome{"Create": changed, "Update": changed, "Mark": changed, "Delete": changed}},
		"Deleted": {"A write to a secret that exists no more is repeated, and one that does not exist is deleted.", provider.NewError(provider.NotFound, "no"), outcome{"Create": deleted, "Update": deleted, "Mark": deleted, "Delete": ""}},
		"Denied":  {"Other errors stay.", provider.NewError(provider.Denied, "no"), outcome{"Create": "Denied: no", "Update": "Denied: no", "Mark": "Denied: no", "Delete": "Denied: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			l, to, seen := provider.NewLink("Test", &loser{err: tc.err, writes: func() {}}, (&quota.Quotas{}).Tenant("shop")), provider.Target{Key: "db"}, provider.Observed{}
			_, created := l.Create(t.Context(), to, nil, "")
			_, updated := l.Update(t.Context(), to, seen, nil)
			got := outcome{}
			for call, err := range map[string]error{"Create": created, "Update": updated, "Mark": l.Mark(t.Context(), to, seen, ""), "Delete": l.Delete(t.Context(), to, seen)} {
				if got[call] = ""; err != nil {
					got[call] = string(provider.ClassOf(err)) + ": " + err.Error()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWritesOverlap starts two writes at the same time.
func TestWritesOverlap(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		keys     [2]string
		features provider.Features
		want     int32
	}{
		"One":    {"Writes to one secret do not overlap.", [2]string{"a", "a"}, provider.Features{}, 1},
		"Two":    {"Writes to two secrets do.", [2]string{"a", "b"}, provider.Features{}, 2},
		"Serial": {"They do not if the service refuses it.", [2]string{"a", "b"}, provider.Features{Serial: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int32
				l := provider.NewLink("Test", &loser{features: tc.features, writes: func() {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second) // Time passes at once here.
					now.Add(-1)
				}}, (&quota.Quotas{}).Tenant("shop"))
				var g sync.WaitGroup
				for _, key := range tc.keys {
					g.Go(func() { _, _ = l.Create(t.Context(), provider.Target{Key: key}, nil, "") })
				}
				g.Wait()
				if got := most.Load(); got != tc.want {
					t.Errorf("%s: %d at the same time, want %d", tc.reason, got, tc.want)
				}
			})
		})
	}
}
