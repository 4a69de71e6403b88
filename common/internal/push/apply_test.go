package push_test

import (
	"context"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// meddler is a Writer in front of which somebody else writes.
type meddler struct {
	provider.Writer
	before func()
}

func (m *meddler) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	return m.Writer.Observe(ctx, t)
}

func (m *meddler) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	m.before()
	return m.Writer.Create(ctx, t, data, mark)
}

func (m *meddler) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	m.before()
	return m.Writer.Update(ctx, t, seen, data)
}

// TestOldSource has a push rest on what its Secret held before, while another process writes what it holds now.
func TestOldSource(t *testing.T) {
	cases := map[string]struct {
		reason string
		// exists is what the store holds at first, and meanwhile what another process writes before the first write.
		exists, meanwhile string
		// now is what the Secret holds when the other process has written.
		now  string
		late bool
		want string
		old  bool
	}{
		"Newer":       {"What is newer stays.", "zero", "two", "two", false, "two", true},
		"NewerMade":   {"Also if the other process has created it.", "", "two", "two", false, "two", true},
		"Foreign":     {"What somebody else wrote is replaced while the Secret is as it was.", "zero", "theirs", "one", false, "one", false},
		"ForeignMade": {"Also what somebody else created.", "", "theirs", "one", false, "one", false},
		"NewerLost":   {"What was covered is brought back.", "zero", "two", "two", true, "two", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var options []fake.Option
			if tc.late {
				options = append(options, fake.Late())
			}
			b := fake.New(options...)
			if tc.exists != "" {
				b.Put("db", []byte(tc.exists))
			}
			c, err := b.Connect(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			w, err := provider.AsWriter(c)
			if err != nil {
				t.Fatal(err)
			}
			source := "one"
			m := &meddler{Writer: w}
			m.before = func() {
				m.before = func() {}
				b.Put("db", []byte(tc.meanwhile))
				source = tc.now
			}
			p := push.Pusher{Kind: "FakeStore", Writer: m, Policies: push.Policies{Mark: "me", Features: w.Features()}}
			p.Current = func(context.Context, bool) error {
				if source != "one" {
					return push.ErrOld
				}
				return nil
			}
			o := p.Apply(t.Context(), provider.Target{Key: "db"}, []push.Value{{Data: []byte("one")}}, nil)
			v, err := c.Get(t.Context(), provider.Ref{Key: "db"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.want, tc.old}, []any{string(v.Data), errors.Is(o.Err, push.ErrOld)}); diff != "" {
				t.Errorf("\n%s\nerror %v; what the store holds, and whether the push is too old: -want, +got:\n%s", tc.reason, o.Err, diff)
			}
		})
	}
}

// TestOldSourceWritesNothing has the source of a push change before its first write.
func TestOldSourceWritesNothing(t *testing.T) {
	b := fake.New()
	b.Put("db", []byte("two"))
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	w, err := provider.AsWriter(c)
	if err != nil {
		t.Fatal(err)
	}
	p := push.Pusher{
		Kind: "FakeStore", Writer: w, Policies: push.Policies{Mark: "me", Features: w.Features()},
		Current: func(context.Context, bool) error { return push.ErrOld },
	}
	for _, key := range []string{"db", "new"} {
		if o := p.Apply(t.Context(), provider.Target{Key: key}, []push.Value{{Data: []byte("one")}}, nil); !errors.Is(o.Err, push.ErrOld) {
			t.Errorf("%s: error %v", key, o.Err)
		}
	}
	if o := p.Apply(t.Context(), provider.Target{Key: "db"}, []push.Value{{Data: []byte("two")}}, nil); o.Err != nil {
		t.Errorf("what is in sync: error %v", o.Err)
	}
	if n := b.Writes(); n > 0 {
		t.Errorf("%d writes", n)
	}
}
