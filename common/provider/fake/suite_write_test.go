package fake_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

type goodWriter interface {
	good
	provider.Writer
}

// A brokenWriter works like a good one, except for the functions that a test replaces.
type brokenWriter struct {
	goodWriter
	features *provider.Features
	observe  func(ctx context.Context, t provider.Target) (provider.Observed, error)
	create   func(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error)
	update   func(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error)
	mark     func(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error
	remove   func(ctx context.Context, t provider.Target, seen provider.Observed) error
}

func (b brokenWriter) Features() provider.Features {
	if b.features != nil {
		return *b.features
	}
	return b.goodWriter.Features()
}

func (b brokenWriter) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	if b.observe != nil {
		return b.observe(ctx, t)
	}
	return b.goodWriter.Observe(ctx, t)
}

func (b brokenWriter) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	if b.create != nil {
		return b.create(ctx, t, data, mark)
	}
	return b.goodWriter.Create(ctx, t, data, mark)
}

func (b brokenWriter) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	if b.update != nil {
		return b.update(ctx, t, seen, data)
	}
	return b.goodWriter.Update(ctx, t, seen, data)
}

func (b brokenWriter) Mark(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
	if b.mark != nil {
		return b.mark(ctx, t, seen, mark)
	}
	return b.goodWriter.Mark(ctx, t, seen, mark)
}

func (b brokenWriter) Delete(ctx context.Context, t provider.Target, seen provider.Observed) error {
	if b.remove != nil {
		return b.remove(ctx, t, seen)
	}
	return b.goodWriter.Delete(ctx, t, seen)
}

// observeAgain observes the secret again, so that the following call sees no change.
func observeAgain(ctx context.Context, g goodWriter, t provider.Target, seen provider.Observed) provider.Observed {
	if o, err := g.Observe(ctx, t); err == nil {
		o.Drift = seen.Drift
		return o
	}
	return seen
}

var writeDefects = map[string]struct {
	reason string
	spoil  func(g goodWriter) brokenWriter
	want   []string
}{
	"Overwrites": {
		reason: "A Create that overwrites would take over the secrets of others.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, create: func(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
				if o, err := g.Observe(ctx, t); err == nil {
					return g.Update(ctx, t, o, data)
				}
				return g.Create(ctx, t, data, mark)
			}}
		},
		want: []string{"write/create-exists", "write/create-race"},
	},
	"NoMark": {
		reason: "A secret without its mark would never be deleted.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, create: func(ctx context.Context, t provider.Target, data []byte, _ string) (provider.Written, error) {
				return g.Create(ctx, t, data, "")
			}}
		},
		want: []string{"write/create", "write/create-again", "write/update"},
	},
	"MarkStays": {
		reason: "A secret that cannot be taken over is never deleted.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, mark: func(context.Context, provider.Target, provider.Observed, string) error { return nil }}
		},
		want: []string{"write/mark", "write/mark-moved"},
	},
	"MarksBlindly": {
		reason: "A secret that others have changed or taken over in the meantime must not be taken over.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, mark: func(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
				return g.Mark(ctx, t, observeAgain(ctx, g, t, seen), mark)
			}}
		},
		want: []string{"write/mark-moved"},
	},
	"MarksEverything": {
		reason: "A mark on the secret of another writer would allow its deletion.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, observe: func(ctx context.Context, t provider.Target) (provider.Observed, error) {
				o, err := g.Observe(ctx, t)
				if err == nil {
					o.Mark = "0b9c9f0e-6a0c-4b7e-9d43-8f5f6f6a7b10"
				}
				return o, err
			}}
		},
		want: []string{"write/create-exists", "write/unmarked"},
	},
	"LastWins": {
		reason: "The value of another writer is lost.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, update: func(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
				return g.Update(ctx, t, observeAgain(ctx, g, t, seen), data)
			}}
		},
		want: []string{"write/update-moved", "write/update-race"},
	},
	"Revives": {
		reason: "An update creates a deleted secret again.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, update: func(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
				if _, err := g.Observe(ctx, t); provider.IsNotFound(err) {
					return g.Create(ctx, t, data, seen.Mark)
				}
				return g.Update(ctx, t, seen, data)
			}}
		},
		want: []string{"write/update-gone"},
	},
	"AlwaysWrites": {
		reason: "An update without a change must not create a version.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, update: func(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
				if data == nil {
					data = seen.Data
				}
				if _, err := g.Update(ctx, t, seen, append([]byte(" "), data...)); err != nil {
					return provider.Written{}, err
				}
				return g.Update(ctx, t, observeAgain(ctx, g, t, seen), data)
			}}
		},
		want: []string{"write/update-same", "write/metadata"},
	},
	"DeletesAnything": {
		reason: "A secret that another writer has changed is deleted.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, remove: func(ctx context.Context, t provider.Target, seen provider.Observed) error {
				return g.Delete(ctx, t, observeAgain(ctx, g, t, seen))
			}}
		},
		want: []string{"write/delete-moved"},
	},
	"DeletesNothing": {
		reason: "A deletion does nothing, and returns no error.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, remove: func(context.Context, provider.Target, provider.Observed) error { return nil }}
		},
		want: []string{"write/create-again", "write/delete", "write/delete-moved", "write/failure", "write/hang"},
	},
	"NoSettings": {
		reason: "Metadata is accepted and ignored.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, observe: func(ctx context.Context, t provider.Target) (provider.Observed, error) {
				t.Metadata = nil
				return g.Observe(ctx, t)
			}}
		},
		want: []string{"write/metadata", "write/metadata-unknown"},
	},
	"Cuts": {
		reason: "A value that is too large is cut.",
		spoil: func(g goodWriter) brokenWriter {
			cut := func(data []byte) []byte { return data[:min(len(data), 50<<10)] }
			return brokenWriter{
				goodWriter: g,
				create: func(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
					return g.Create(ctx, t, cut(data), mark)
				},
				update: func(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
					return g.Update(ctx, t, seen, cut(data))
				},
			}
		},
		want: []string{"write/values", "write/too-large"},
	},
}

func breaksWriter(connect func(context.Context) (provider.Client, error), f func(goodWriter) brokenWriter) func(context.Context) (provider.Client, error) {
	return func(ctx context.Context) (provider.Client, error) {
		c, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		return f(c.(goodWriter)), nil
	}
}

func TestSuiteCatchesWriters(t *testing.T) {
	for name, tc := range writeDefects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := conformance.Fake(fake.New())
			h.EndTimeout = 300 * time.Millisecond
			h.Connect = breaksWriter(h.Connect, tc.spoil)
			caught := failing(t, h, tc.want)
			if diff := cmp.Diff(tc.want, caught); diff != "" {
				t.Errorf("%s\nchecks that fail: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEveryWriteCheckCanFail uses a writer whose calls all return wrong results. It must fail every write check.
func TestEveryWriteCheckCanFail(t *testing.T) {
	wrong := func(g goodWriter) brokenWriter {
		bad := provider.NewError(provider.Denied, "c4n4ry")
		return brokenWriter{
			goodWriter: g,
			observe:    func(context.Context, provider.Target) (provider.Observed, error) { return provider.Observed{}, bad },
			create: func(context.Context, provider.Target, []byte, string) (provider.Written, error) {
				return provider.Written{}, bad
			},
			update: func(context.Context, provider.Target, provider.Observed, []byte) (provider.Written, error) {
				return provider.Written{}, bad
			},
			remove: func(context.Context, provider.Target, provider.Observed) error { return bad },
		}
	}
	h := conformance.Fake(fake.New())
	h.Connect = breaksWriter(h.Connect, wrong)
	checks, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range checks {
		if len(c.Name) < 6 || c.Name[:6] != "write/" {
			continue
		}
		n++
		if c.Run(t.Context()) == nil {
			t.Errorf("%s passes with a writer whose results are all wrong", c.Name)
		}
	}
	if n == 0 {
		t.Error("there are no checks of writes")
	}
}
