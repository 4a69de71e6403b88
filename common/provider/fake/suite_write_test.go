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

// A brokenWriter does what a good one does, except for what the test has it do.
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

// afresh looks at the secret once more, so that nothing has moved for the call that follows.
func afresh(ctx context.Context, g goodWriter, t provider.Target, seen provider.Observed) provider.Observed {
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
		reason: "A create that overwrites is one that takes what is not its own.",
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
		reason: "Without its mark a secret is never deleted again.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, create: func(ctx context.Context, t provider.Target, data []byte, _ string) (provider.Written, error) {
				return g.Create(ctx, t, data, "")
			}}
		},
		want: []string{"write/create", "write/create-again", "write/update"},
	},
	"MarkStays": {
		reason: "What nobody takes over stays for ever.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, mark: func(context.Context, provider.Target, provider.Observed, string) error { return nil }}
		},
		want: []string{"write/mark", "write/mark-moved"},
	},
	"MarksBlindly": {
		reason: "What others made or took over meanwhile is not to be taken.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, mark: func(ctx context.Context, t provider.Target, seen provider.Observed, mark string) error {
				return g.Mark(ctx, t, afresh(ctx, g, t, seen), mark)
			}}
		},
		want: []string{"write/mark-moved"},
	},
	"MarksEverything": {
		reason: "A mark on what others made is a licence to delete it.",
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
		reason: "What another writer wrote is lost.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, update: func(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
				return g.Update(ctx, t, afresh(ctx, g, t, seen), data)
			}}
		},
		want: []string{"write/update-moved", "write/update-race"},
	},
	"Revives": {
		reason: "An update makes anew what somebody deleted.",
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
		reason: "A version a minute fills the provider's history.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, update: func(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
				if data == nil {
					data = seen.Data
				}
				if _, err := g.Update(ctx, t, seen, append([]byte(" "), data...)); err != nil {
					return provider.Written{}, err
				}
				return g.Update(ctx, t, afresh(ctx, g, t, seen), data)
			}}
		},
		want: []string{"write/update-same", "write/metadata"},
	},
	"DeletesAnything": {
		reason: "What somebody else wrote meanwhile is deleted.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, remove: func(ctx context.Context, t provider.Target, seen provider.Observed) error {
				return g.Delete(ctx, t, afresh(ctx, g, t, seen))
			}}
		},
		want: []string{"write/delete-moved"},
	},
	"DeletesNothing": {
		reason: "Nothing is deleted, without a word.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, remove: func(context.Context, provider.Target, provider.Observed) error { return nil }}
		},
		want: []string{"write/create-again", "write/delete", "write/delete-moved", "write/failure", "write/hang"},
	},
	"NoSettings": {
		reason: "Metadata is taken and forgotten.",
		spoil: func(g goodWriter) brokenWriter {
			return brokenWriter{goodWriter: g, observe: func(ctx context.Context, t provider.Target) (provider.Observed, error) {
				t.Metadata = nil
				return g.Observe(ctx, t)
			}}
		},
		want: []string{"write/metadata", "write/metadata-unknown"},
	},
	"Cuts": {
		reason: "A value that does not fit is cut.",
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
			h := fake.Harness(fake.New())
			h.Patience = 300 * time.Millisecond
			h.Connect = breaksWriter(h.Connect, tc.spoil)
			caught := failing(t, h, tc.want)
			if diff := cmp.Diff(tc.want, caught); diff != "" {
				t.Errorf("%s\nchecks that fail: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEveryWriteCheckCanFail has a writer that answers every call wrongly fail every check of writes.
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
	h := fake.Harness(fake.New())
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
			t.Errorf("%s passes with a writer that does nothing right", c.Name)
		}
	}
	if n == 0 {
		t.Error("there are no checks of writes")
	}
}
