package pushsecret

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestRemovalsComeLast takes entries out of a spec while others are added. What is taken out goes only once all that is
// wanted is written.
func TestRemovalsComeLast(t *testing.T) {
	const mine = "me"
	type remotes map[string]string
	want := func(property, data string) push.Value {
		return push.Value{Property: property, Data: []byte(data), Source: "source"}
	}
	cases := map[string]struct {
		reason string
		// has is what the object has created: whole secrets, or properties of JSON objects.
		has  remotes
		jobs map[string][]push.Value
		// out are the properties that are taken out, by key.
		out   map[string]string
		fault *fake.Fault
		then  remotes
		left  []string
		// writes are the calls that write, in order.
		writes []fake.Call
	}{
		"Renamed": {
			"A new key is written before the old one is removed.", remotes{"a": "1"},
			map[string][]push.Value{"b": {want("", "1")}}, map[string]string{"a": ""}, nil,
			remotes{"b": "1"}, nil, []fake.Call{fake.CallCreate, fake.CallDelete},
		},
		"RenamedDenied": {
			"If the new one cannot be written then the old one stays.", remotes{"a": "1"},
			map[string][]push.Value{"b": {want("", "1")}}, map[string]string{"a": ""},
			&fake.Fault{Call: fake.CallCreate, Err: provider.NewError(provider.Denied, "no")},
			remotes{"a": "1"}, []string{"a"}, []fake.Call{fake.CallCreate},
		},
		"Unrelated": {
			"Whichever of those that are wanted fails.", remotes{"a": "1"},
			map[string][]push.Value{"b": {want("", "1")}, "c": {want("", "1")}}, map[string]string{"a": ""},
			&fake.Fault{Call: fake.CallCreate, Key: "b", Err: provider.NewError(provider.Invalid, "no")},
			remotes{"a": "1", "c": "1"}, []string{"a"}, []fake.Call{fake.CallCreate, fake.CallCreate},
		},
		"Property": {
			"A property is replaced by another with one write.", remotes{"a": `{"x":"1"}`},
			map[string][]push.Value{"a": {want("y", "1")}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"y":"1"}`}, nil, []fake.Call{fake.CallUpdate},
		},
		"PropertyInvalid": {
			"It stays if the other one cannot be written.", remotes{"a": `{"x":"1"}`},
			map[string][]push.Value{"a": {want("y", "\xff"), want("z", "1")}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"x":"1","z":"1"}`}, []string{"x"}, []fake.Call{fake.CallUpdate},
		},
		"PropertyElsewhere": {
			"Also if the other one is in another secret.", remotes{"a": `{"x":"1","y":"2"}`},
			map[string][]push.Value{"a": {want("y", "3")}, "b": {want("x", "1")}}, map[string]string{"a": "x"},
			&fake.Fault{Call: fake.CallCreate, Err: provider.NewError(provider.Denied, "no")},
			remotes{"a": `{"x":"1","y":"3"}`}, []string{"x"}, []fake.Call{fake.CallUpdate, fake.CallCreate},
		},
		"PropertyMoved": {
			"Once that is written it goes, though the secret was written meanwhile.", remotes{"a": `{"x":"1","y":"2"}`},
			map[string][]push.Value{"a": {want("y", "3")}, "b": {want("x", "1")}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"y":"3"}`, "b": `{"x":"1"}`}, nil, []fake.Call{fake.CallUpdate, fake.CallCreate, fake.CallUpdate},
		},
		"WholeFails": {
			"Properties are remembered where the whole secret is wanted and cannot be written.", remotes{"a": `{"x":"1"}`},
			map[string][]push.Value{"a": {{Err: provider.NewError(provider.NotFound, "no such key")}}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"x":"1"}`}, []string{"x"}, nil,
		},
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
			made := map[string]provider.Written{}
			for key, data := range tc.has {
				if made[key], err = w.Create(t.Context(), provider.Target{Key: key}, []byte(data), mine); err != nil {
					t.Fatal(err)
				}
			}
			b.Reset()
			if tc.fault != nil {
				b.Inject(*tc.fault)
			}
			var jobs []job
			for _, key := range []string{"a", "b", "c"} {
				j := job{target: provider.Target{Key: key}, want: tc.jobs[key]}
				if property, out := tc.out[key]; out {
					j.known = []v1alpha1.PushEntryStatus{{RemoteKey: key, Property: property, Source: "source", Version: made[key].Version, ID: made[key].ID, Created: true}}
				}
				if len(j.want)+len(j.known) > 0 {
					jobs = append(jobs, j)
				}
			}
			loader := dispatch.NewLoader("FakeStore", func(context.Context) (provider.Client, error) { return c, nil }, dispatch.Options{})
			defer loader.Retire()
			r := &runner{places: &places{}, incomplete: incomplete, timeout: time.Minute}
			res := r.carryOut(t.Context(), loader, task{to: &destination{store: &fakev1.FakeStore{}}, jobs: jobs, pusher: push.Pusher{Kind: "FakeStore", Policies: push.Policies{Deletes: true, Mark: mine}}})
			got := remotes{}
			for _, key := range []string{"a", "b", "c"} {
				if v, err := c.Get(t.Context(), provider.Ref{Key: key}); err == nil {
					got[key] = string(v.Data)
				}
			}
			var left []string
			for _, e := range res.entries {
				if p, out := tc.out[e.RemoteKey]; out && p == e.Property && e.Created && e.Source != "" {
					left = append(left, e.RemoteKey)
					if p != "" {
						left[len(left)-1] = p
					}
				}
			}
			var writes []fake.Call
			for _, r := range b.Calls(fake.CallCreate, fake.CallUpdate, fake.CallDelete) {
				writes = append(writes, r.Call)
			}
			if diff := cmp.Diff([]any{tc.then, tc.left, tc.writes}, []any{got, left, writes}); diff != "" {
				t.Errorf("\n%s\nerror %v; remote secrets, entries to remove later, and calls: -want, +got:\n%s", tc.reason, res.err, diff)
			}
		})
	}
}

// TestKeptCallsNobody carries out a job that only keeps what is removed with the object. The store need not even answer.
func TestKeptCallsNobody(t *testing.T) {
	b := fake.New()
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	b.Inject(fake.Fault{Call: fake.CallObserve, Err: provider.NewError(provider.Unavailable, "down")})
	kept := []v1alpha1.PushEntryStatus{{RemoteKey: "kept", Version: "v1", Created: true}}
	loader := dispatch.NewLoader("FakeStore", func(context.Context) (provider.Client, error) { return c, nil }, dispatch.Options{})
	defer loader.Retire()
	r := &runner{places: &places{}, incomplete: incomplete, timeout: time.Minute}
	res := r.carryOut(t.Context(), loader, task{
		to: &destination{store: &fakev1.FakeStore{}}, jobs: []job{{target: provider.Target{Key: "kept"}, kept: kept}},
		pusher: push.Pusher{Kind: "FakeStore", Policies: push.Policies{Deletes: true, Mark: "me"}},
	})
	if diff := cmp.Diff(kept, res.entries); diff != "" || res.err != nil {
		t.Errorf("error %v; entries: -want, +got:\n%s", res.err, diff)
	}
	if n := b.Count(fake.CallObserve); n > 0 {
		t.Errorf("%d calls for what is kept", n)
	}
}

// TestTurnsOfOnePlace has a removal wait for pushes through stores with other specs that lead to the same place.
func TestTurnsOfOnePlace(t *testing.T) {
	here := func(prefix string) provider.Identity { return provider.Identity{Place: "here", Prefix: prefix} }
	cases := map[string]struct {
		reason       string
		address, key string
		lead         provider.Identity
		waits        bool
	}{
		"Spec":      {"One spec leads to one place.", "a", "x/db", provider.Identity{}, true},
		"Place":     {"So does another one whose client says so.", "b", "x/db", here(""), true},
		"Prefix":    {"Whatever it puts before the key.", "b", "db", here("x/"), true},
		"Key":       {"Another key is another secret.", "b", "db", here(""), false},
		"Elsewhere": {"So is one of another place.", "b", "x/db", provider.Identity{Place: "there"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &runner{timeout: time.Second}
				leave, err := r.turn(t.Context(), &task{backend: backend{address: tc.address}, lead: tc.lead}, job{target: provider.Target{Key: tc.key}})
				if err != nil {
					t.Fatal(err)
				}
				removal := func() error {
					gone, err := r.turn(t.Context(), &task{backend: backend{address: "a"}, lead: here(""), pusher: push.Pusher{Policies: push.Policies{Deletes: true}}}, job{
						target: provider.Target{Key: "x/db"}, known: []v1alpha1.PushEntryStatus{{RemoteKey: "x/db"}},
					})
					if err == nil {
						gone()
					}
					return err
				}
				if err := removal(); (err != nil) != tc.waits {
					t.Errorf("%s\nerror %v, want one: %t", tc.reason, err, tc.waits)
				}
				leave()
				if err := removal(); err != nil || len(r.turns.busy) > 0 {
					t.Errorf("%s\nafterwards: error %v, %d places are still known", tc.reason, err, len(r.turns.busy))
				}
			})
		})
	}
}

// slow is a Writer that takes its time to say that there is nothing.
type slow struct {
	provider.Writer

	takes time.Duration
}

func (s slow) Observe(ctx context.Context, _ provider.Target) (provider.Observed, error) {
	select {
	case <-time.After(s.takes):
		return provider.Observed{}, provider.NewError(provider.NotFound, "there is none")
	case <-ctx.Done():
		return provider.Observed{}, ctx.Err()
	}
}

// TestWaitForTurn has a removal wait for a push. It has all its time afterwards, and does not wait for ever.
func TestWaitForTurn(t *testing.T) {
	cases := map[string]struct {
		reason string
		busy   time.Duration
		class  provider.Class
	}{
		"Ends":  {"The time that a push of somebody else takes is not that of the call.", 40 * time.Second, ""},
		"Stays": {"A push that does not end is no reason to wait for ever.", 2 * time.Minute, provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &runner{timeout: time.Minute}
				at := site{"b", "db"}
				leave, err := r.turns.enter(t.Context(), at, false)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tc.busy, leave)
				known := []v1alpha1.PushEntryStatus{{RemoteKey: at.key, Created: true}}
				o := r.apply(t.Context(), &task{
					backend: backend{address: at.address},
					pusher:  push.Pusher{Kind: "FakeStore", Writer: slow{takes: 40 * time.Second}, Policies: push.Policies{Deletes: true}},
				}, job{target: provider.Target{Key: at.key}, known: known})
				if (o.Err == nil) != (tc.class == "") || o.Err != nil && provider.ClassOf(o.Err) != tc.class {
					t.Errorf("%s\nerror %v, want one of class %q", tc.reason, o.Err, tc.class)
				}
				time.Sleep(tc.busy)
			})
		})
	}
}
