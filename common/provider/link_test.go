package provider_test

import (
	"bytes"
	"context"
	"io"
	"iter"
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
