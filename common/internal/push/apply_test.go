package push_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// concurrentWriter is a Writer that runs a hook before each write, to simulate another writer.
type concurrentWriter struct {
	provider.Writer
	before func()
}

func (m *concurrentWriter) Observe(ctx context.Context, t provider.Target) (provider.Observed, error) {
	return m.Writer.Observe(ctx, t)
}

func (m *concurrentWriter) Create(ctx context.Context, t provider.Target, data []byte, mark string) (provider.Written, error) {
	m.before()
	return m.Writer.Create(ctx, t, data, mark)
}

func (m *concurrentWriter) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	m.before()
	return m.Writer.Update(ctx, t, seen, data)
}

// TestChangedSourceKeepsNewerValue pushes a value computed from an old version of its Secret, while another process writes the value of
// the current version.
func TestChangedSourceKeepsNewerValue(t *testing.T) {
	cases := map[string]struct {
		reason string
		// exists is the value in the store at the start. meanwhile is the value that another process writes before our
		// first write.
		exists, meanwhile string
		// now is the value of the Secret after the other process has written.
		now  string
		late bool
		want string
		old  bool
	}{
		"Newer":       {"A newer value in the store is kept.", "zero", "two", "two", false, "two", true},
		"NewerMade":   {"A newer value is kept also if the other process created the secret.", "", "two", "two", false, "two", true},
		"Foreign":     {"A value of another writer is replaced while the Secret is unchanged.", "zero", "theirs", "one", false, "one", false},
		"ForeignMade": {"A secret that another writer created is replaced, too.", "", "theirs", "one", false, "one", false},
		"NewerLost":   {"A newer value that our write replaced is restored.", "zero", "two", "two", true, "two", true},
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
			w, err := b.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			source := "one"
			m := &concurrentWriter{Writer: w}
			m.before = func() {
				m.before = func() {}
				b.Put("db", []byte(tc.meanwhile))
				source = tc.now
			}
			p := push.Pusher{Store: fake.Link("FakeStore", m), Policies: push.Policies{Mark: "me", Features: w.Features()}}
			p.Current = func(context.Context, time.Duration) error {
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
			if diff := gocmp.Diff([]any{tc.want, tc.old}, []any{string(v.Data), errors.Is(o.Err, push.ErrOld)}); diff != "" {
				t.Errorf("\n%s\nerror %v; what the store holds, and whether the push is too old: -want, +got:\n%s", tc.reason, o.Err, diff)
			}
		})
	}
}

// TestChangedSourceWritesNothing checks that nothing is written when the source of a push changes before the first write.
func TestChangedSourceWritesNothing(t *testing.T) {
	b := fake.New()
	b.Put("db", []byte("two"))
	w, err := b.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := push.Pusher{
		Store: fake.Link("FakeStore", w), Policies: push.Policies{Mark: "me", Features: w.Features()},
		Current: func(context.Context, time.Duration) error { return push.ErrOld },
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

// pushing are the uses of other objects.
type pushing struct {
	uses []push.Use
	err  error
	// handed is the mark to which the secret was handed over; nil if it is not recorded.
	handed *string
	claims []push.Claim
}

func (p pushing) InUse(context.Context, push.Removal) ([]push.Use, push.Behind, error) {
	return p.uses, push.Behind{}, p.err
}

func (p pushing) Claims(string, string) []push.Claim { return p.claims }

func (p pushing) HandedOver(mark string) {
	if p.handed != nil {
		*p.handed = mark
	}
}

// shared are the uses of a secret that another object pushes, too.
var shared = []push.Use{{Successor: "other"}}

// TestDeletedObjectHandsOver deletes an object whose remote secret another object also pushes.
func TestDeletedObjectHandsOver(t *testing.T) {
	failing := func(c provider.Class) *fake.Fault {
		return &fake.Fault{Call: fake.CallMark, Err: provider.NewError(c, "boom")}
	}
	cases := map[string]struct {
		reason string
		fault  *fake.Fault
		// useErr is the error of the lookup of other objects.
		useErr error
		// mark is that of the secret afterwards, and handed is the mark that the controller is told.
		mark, handed string
		class        provider.Class
		// entries is the number of status entries that the object keeps, and released the number that it leaves behind.
		entries, released int
	}{
		"Taken":       {"The object clears its own mark. The other object sets its mark with its own login.", nil, nil, "", "other", "", 0, 0},
		"Unavailable": {"A failed change of the mark is retried.", failing(provider.Unavailable), nil, "me", "", provider.Unavailable, 1, 0},
		"Denied":      {"Missing permission to change marks does not keep the object from being deleted.", failing(provider.Denied), nil, "me", "", "", 0, 1},
		"Gone":        {"A deleted object takes nothing over.", nil, provider.NewError(provider.Conflict, "gone"), "me", "", provider.Conflict, 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			w, err := b.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p := push.Pusher{Store: fake.Link("FakeStore", w), Policies: push.Policies{Mark: "me", Deletes: true, Features: w.Features()}}
			made := p.Apply(t.Context(), provider.Target{Key: "db"}, []push.Value{{Data: []byte("one")}}, nil)
			if tc.fault != nil {
				b.Inject(*tc.fault)
			}
			handed := ""
			p.Others = pushing{uses: shared, err: tc.useErr, handed: &handed}
			o := p.Apply(t.Context(), provider.Target{Key: "db"}, nil, made.Entries)
			if diff := gocmp.Diff([]any{tc.mark, tc.handed, tc.entries, tc.released}, []any{b.Mark("db"), handed, len(o.Entries), len(o.Released)}); diff != "" {
				t.Errorf("%s\nerror %v; mark, mark handed over, entries and number of released entries: -want, +got:\n%s", tc.reason, o.Err, diff)
			}
			if (o.Err == nil) != (tc.class == "") || o.Err != nil && provider.ClassOf(o.Err) != tc.class {
				t.Errorf("%s\nerror %v, want one of class %q", tc.reason, o.Err, tc.class)
			}
		})
	}
}

// TestSuccession compares a secret whose owner has cleared its mark.
func TestSuccession(t *testing.T) {
	denied := provider.NewError(provider.Denied, "no")
	cases := map[string]struct {
		reason   string
		policies push.Policies
		owner    string // that the entry records
		id       string // that the entry records; empty for the secret's
		denied   bool
		mark     string
		created  bool
		// ownerless is true if the outcome reports that the secret has no owner.
		ownerless bool
	}{
		"User":      {"An object that recorded the owner marks the secret with its own login.", push.Policies{Deletes: true}, "a", "", false, "b", true, false},
		"Observes":  {"So does one that found the value there.", push.Policies{Deletes: true, Update: v1alpha1.UpdateIfNotExists}, "a", "", false, "b", true, false},
		"Denied":    {"A login that is not allowed to set a mark owns nothing, which is reported once.", push.Policies{Deletes: true}, "a", "", true, "", false, true},
		"Keeps":     {"An object that never deletes anything takes nothing over.", push.Policies{}, "a", "", false, "", false, false},
		"Refuse":    {"Refuse keeps an object from taking over.", push.Policies{Deletes: true, Adoption: v1alpha1.AdoptionRefuse}, "a", "", false, "", false, false},
		"Adopted":   {"A secret that had no owner is not ours.", push.Policies{Deletes: true}, "", "", false, "", false, false},
		"Recreated": {"Neither is another secret of the same name.", push.Policies{Deletes: true}, "a", "former", false, "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			b.Put("db", []byte("v"))
			w, err := b.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seen, err := w.Observe(t.Context(), provider.Target{Key: "db"})
			if err != nil {
				t.Fatal(err)
			}
			if tc.denied {
				b.Inject(fake.Fault{Call: fake.CallMark, Err: denied})
			}
			p := push.Pusher{Store: fake.Link("FakeStore", w), Policies: tc.policies}
			p.Mark, p.Features = "b", w.Features()
			e := v1alpha1.PushEntryStatus{RemoteKey: "db", Version: seen.Version, ID: cmp.Or(tc.id, seen.ID), Owner: tc.owner, Source: "source"}
			o := p.Apply(t.Context(), provider.Target{Key: "db"}, []push.Value{{Data: []byte("v"), Source: "source"}}, []v1alpha1.PushEntryStatus{e})
			if o.Err != nil || len(o.Entries) != 1 {
				t.Fatalf("%s\nerror %v, entries %+v", tc.reason, o.Err, o.Entries)
			}
			if diff := gocmp.Diff([]any{tc.mark, tc.created, tc.ownerless}, []any{b.Mark("db"), o.Entries[0].Created, len(o.Ownerless) > 0}); diff != "" {
				t.Errorf("%s\nmark, whether the entry counts as created, and whether it is reported: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWantedDoesNotWait writes a property of a secret from which another one is removed later. It must not wait for that.
func TestWantedDoesNotWait(t *testing.T) {
	b := fake.New()
	w, err := b.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := provider.Target{Key: "db"}
	p := push.Pusher{Store: fake.Link("FakeStore", w), Policies: push.Policies{Deletes: true, Mark: "me", Features: w.Features()}}
	made := p.Apply(t.Context(), db, []push.Value{{Property: "a", Data: []byte("1")}, {Property: "b", Data: []byte("1")}}, nil)
	p.Others, p.Later = pushing{err: provider.NewError(provider.Unavailable, "no")}, true
	o := p.Apply(t.Context(), db, []push.Value{{Property: "a", Data: []byte("2")}}, made.Entries)
	seen, err := w.Observe(t.Context(), db)
	if diff := gocmp.Diff(`{"a":"2","b":"1"}`, string(seen.Data)); diff != "" || o.Err != nil || err != nil {
		t.Errorf("errors %v, %v; value: -want, +got:\n%s", o.Err, err, diff)
	}
}

// TestChainOfOwners deletes objects one after another that pushed properties of one secret. They keep what another program has
// added, and leave nothing that they created without a report.
func TestChainOfOwners(t *testing.T) {
	type step struct {
		mark string
		want []string // The properties that the object wants.
		uses []push.Use
	}
	cases := map[string]struct {
		reason string
		theirs string
		steps  []step
		left   string
	}{
		"Adopted": {
			"A property that an object has adopted stays, also if it took the secret over.", `{"a":"v","p":"v","q":"v"}`,
			[]step{{"B", []string{"p"}, nil}, {"A", nil, []push.Use{{Property: "p", Successor: "B"}}}, {"B", []string{"p"}, nil}, {"B", nil, nil}}, `{"p":"v","q":"v"}`,
		},
		"Used": {
			"A property whose user takes nothing over stays, which is reported.", "",
			[]step{{"B", []string{"a"}, nil}, {"A", nil, []push.Use{{Property: "a"}}}, {"B", nil, nil}}, `{"a":"v"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			w, err := b.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			db, known, released := provider.Target{Key: "db"}, map[string][]v1alpha1.PushEntryStatus{}, 0
			apply := func(s step) {
				var want []push.Value
				for _, p := range s.want {
					want = append(want, push.Value{Property: p, Data: []byte("v")})
				}
				p := push.Pusher{Store: fake.Link("FakeStore", w), Others: pushing{uses: s.uses}, Policies: push.Policies{Deletes: true, Mark: s.mark, Features: w.Features()}}
				o := p.Apply(t.Context(), db, want, known[s.mark])
				if o.Err != nil {
					t.Fatal(o.Err)
				}
				known[s.mark], released = o.Entries, released+len(o.Released)
			}
			apply(step{"A", []string{"a"}, nil})
			if tc.theirs != "" {
				seen, err := w.Observe(t.Context(), db)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Update(t.Context(), db, seen, []byte(tc.theirs)); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range tc.steps {
				apply(s)
			}
			seen, err := w.Observe(t.Context(), db)
			if diff := gocmp.Diff(tc.left, string(seen.Data)); diff != "" || err != nil || tc.theirs == "" && released == 0 {
				t.Errorf("%s\nerror %v, %d reported; what is left: -want, +got:\n%s", tc.reason, err, released, diff)
			}
		})
	}
}

// TestLiveCheckBeforeUpdate checks that a push checks its object live, unless the secret is as the object last wrote
// it.
func TestLiveCheckBeforeUpdate(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before changes the store after the object has pushed to it.
		before func(b *fake.Backend)
		first  bool
		want   bool
	}{
		"AsLeft":  {reason: "No other writer has written, so a recent check is enough.", before: func(*fake.Backend) {}},
		"Changed": {reason: "Another writer may know a newer value.", before: func(b *fake.Backend) { b.Put("db", []byte("newer")) }, want: true},
		"Gone":    {reason: "The secret may have been deleted together with the object.", before: func(b *fake.Backend) { b.Delete("db") }, want: true},
		"Remade":  {reason: "A secret created again under the same name is a different one.", before: func(b *fake.Backend) { b.Delete("db"); b.Put("db", []byte("else")) }, want: true},
		"First":   {reason: "The object has no record of the secret.", before: func(*fake.Backend) {}, first: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			w, err := b.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p := push.Pusher{Store: fake.Link("FakeStore", w), Policies: push.Policies{Mark: "me", Features: w.Features()}}
			known := p.Apply(t.Context(), provider.Target{Key: "db"}, []push.Value{{Data: []byte("one")}}, nil).Entries
			tc.before(b)
			if tc.first {
				known = nil
			}
			var ages []time.Duration
			p.Current = func(_ context.Context, age time.Duration) error {
				ages = append(ages, age)
				return nil
			}
			if o := p.Apply(t.Context(), provider.Target{Key: "db"}, []push.Value{{Data: []byte("two")}}, known); o.Err != nil {
				t.Fatal(o.Err)
			}
			if len(ages) == 0 || (ages[0] == 0) != tc.want {
				t.Errorf("%s: asked for what is at most %v old", tc.reason, ages)
			}
		})
	}
}

// TestOwn takes over a secret that exists, while calls fail.
func TestOwn(t *testing.T) {
	cases := map[string]struct {
		reason, exists string
		fault          *fake.Fault
		want           []bool // for each attempt: whether the value counts as created
		mark           string
	}{
		"Same":      {"A secret in sync gets the mark.", "v", nil, []bool{true}, "me"},
		"Replaced":  {"A secret gets value and mark.", "x", nil, []bool{true}, "me"},
		"Unmarked":  {"Without the mark it does not count as created; the next attempt marks it.", "v", &fake.Fault{Call: fake.CallMark, Err: provider.NewError(provider.Unavailable, "no"), Times: 1}, []bool{false, true}, "me"},
		"Forbidden": {"A missing permission is reported, and nothing counts as created.", "x", &fake.Fault{Call: fake.CallMark, Err: provider.NewError(provider.Denied, "no")}, []bool{false, false}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			b.Put("db", []byte(tc.exists))
			recovers := func() {}
			if tc.fault != nil {
				recovers = b.Inject(*tc.fault)
			}
			p, at := dryPusher(t, b, push.Policies{Adoption: v1alpha1.AdoptionOwn, Deletes: true}), provider.Target{Key: "db"}
			var known []v1alpha1.PushEntryStatus
			for i, created := range tc.want {
				o := p.Apply(t.Context(), at, []push.Value{{Data: []byte("v")}}, known)
				known = o.Entries
				if got := len(known) == 1 && known[0].Created; got != created || (o.Err == nil) != created {
					t.Errorf("%s: attempt %d: counts as created: %v, error %v", tc.reason, i, got, o.Err)
				}
			}
			if diff := gocmp.Diff(tc.mark, b.Mark("db")); diff != "" {
				t.Errorf("%s: mark: -want, +got:\n%s", tc.reason, diff)
			}
			recovers()
			p.Apply(t.Context(), at, nil, known)
			if _, exists := b.Value("db"); exists != (tc.mark == "") {
				t.Errorf("%s: after its removal from the spec, the secret exists: %v", tc.reason, exists)
			}
		})
	}
}

// unanswered is a Writer whose first answer to an update is lost.
type unanswered struct {
	provider.Writer

	answers bool
}

func (u *unanswered) Update(ctx context.Context, t provider.Target, seen provider.Observed, data []byte) (provider.Written, error) {
	w, err := u.Writer.Update(ctx, t, seen, data)
	if !u.answers {
		u.answers = true
		return provider.Written{}, provider.NewError(provider.Unavailable, "the answer is lost")
	}
	return w, err
}

// TestLostAnswer adds a property to a secret that the object owns, and the answer is lost. The secret is deleted with the object.
func TestLostAnswer(t *testing.T) {
	b := fake.New()
	w, err := b.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := push.Pusher{Store: fake.Link("FakeStore", &unanswered{Writer: w}), Policies: push.Policies{Mark: "me", Deletes: true, Features: w.Features()}}
	both := []push.Value{{Property: "a", Data: []byte("1")}, {Property: "b", Data: []byte("2")}}
	var known []v1alpha1.PushEntryStatus
	for _, want := range [][]push.Value{both[:1], both, both, nil} {
		if p.Unrecorded = nil; len(known) > 1 {
			p.Unrecorded = both
		}
		known = p.Apply(t.Context(), provider.Target{Key: "db"}, want, known).Entries
	}
	if is, there := b.Value("db"); there {
		t.Errorf("%s is left", is)
	}
}

// TestLiveCheckBeforeProperty adds a property to a secret that is as the object has found it. The object may have been deleted meanwhile:
// nothing that it owns held it.
func TestLiveCheckBeforeProperty(t *testing.T) {
	b := fake.New()
	b.Put("db", []byte(`{"a":"1"}`))
	w, err := b.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := push.Pusher{Store: fake.Link("FakeStore", w), Policies: push.Policies{Mark: "me", Features: w.Features()}}
	want := []push.Value{{Property: "a", Data: []byte("1")}, {Property: "b", Data: []byte("2")}}
	known := p.Apply(t.Context(), provider.Target{Key: "db"}, want[:1], nil).Entries
	p.Current = func(_ context.Context, age time.Duration) error {
		if age > 0 {
			t.Errorf("asked for what is at most %s old", age)
		}
		return nil
	}
	if o := p.Apply(t.Context(), provider.Target{Key: "db"}, want, known); o.Err != nil || !o.Wrote {
		t.Errorf("error %v, written: %t", o.Err, o.Wrote)
	}
}
