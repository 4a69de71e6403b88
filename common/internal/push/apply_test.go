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

// sharing is another object that uses all of a remote secret.
type sharing struct{ err error }

func (sharing) InUse(context.Context, string, string) ([]push.Use, error) {
	return []push.Use{{Heir: "other"}}, nil
}

func (s sharing) Bequeath(context.Context, string, []push.Bequest, string) error { return s.err }

// TestTakenOver has an object go whose remote secret another one takes over.
func TestTakenOver(t *testing.T) {
	failing := func(c provider.Class) *fake.Fault {
		return &fake.Fault{Call: fake.CallMark, Err: provider.NewError(c, "boom")}
	}
	cases := map[string]struct {
		reason string
		fault  *fake.Fault
		gone   error
		mark   string
		class  provider.Class
		// entries and released are how many the object still has, and how many it leaves behind.
		entries, released int
	}{
		"Taken":       {"It has the mark of the other one.", nil, nil, "other", "", 0, 0},
		"Unavailable": {"A mark that cannot be written now is written later.", failing(provider.Unavailable), nil, "me", provider.Unavailable, 1, 0},
		"Denied":      {"An object is not held since it may not change marks.", failing(provider.Denied), nil, "me", "", 0, 1},
		"Gone":        {"Nothing is given to an object that is gone.", nil, provider.NewError(provider.Conflict, "gone"), "me", provider.Conflict, 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			c, err := b.Connect(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			w, err := provider.AsWriter(c)
			if err != nil {
				t.Fatal(err)
			}
			p := push.Pusher{Kind: "FakeStore", Writer: w, Policies: push.Policies{Mark: "me", Deletes: true, Features: w.Features()}}
			made := p.Apply(t.Context(), provider.Target{Key: "db"}, []push.Value{{Data: []byte("one")}}, nil)
			if tc.fault != nil {
				b.Inject(*tc.fault)
			}
			p.Others = sharing{tc.gone}
			o := p.Apply(t.Context(), provider.Target{Key: "db"}, nil, made.Entries)
			if diff := cmp.Diff([]any{tc.mark, tc.entries, tc.released}, []any{b.Mark("db"), len(o.Entries), len(o.Released)}); diff != "" {
				t.Errorf("%s\nerror %v; mark, entries and what is left behind: -want, +got:\n%s", tc.reason, o.Err, diff)
			}
			if (o.Err == nil) != (tc.class == "") || o.Err != nil && provider.ClassOf(o.Err) != tc.class {
				t.Errorf("%s\nerror %v, want one of class %q", tc.reason, o.Err, tc.class)
			}
		})
	}
}
