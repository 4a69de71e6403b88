package pushsecret

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/push"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestRemovalsComeLast removes entries from a spec while others are added. Obsolete secrets must be removed only after
// all wanted values are written.
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
		// out are the properties removed from the spec, by key.
		out   map[string]string
		fault *fake.Fault
		then  remotes
		left  []string
		// writes are the expected write calls, in order.
		writes []fake.Call
		// predicted is what a dry run reports before. It cannot know that a write fails.
		predicted []string
	}{
		"Renamed": {
			"A new key is written before the old one is removed.", remotes{"a": "1"},
			map[string][]push.Value{"b": {want("", "1")}}, map[string]string{"a": ""}, nil,
			remotes{"b": "1"}, nil, []fake.Call{fake.CallCreate, fake.CallDelete}, []string{"Delete a", "Create b"},
		},
		"RenamedDenied": {
			"If the new one cannot be written, the old one stays.", remotes{"a": "1"},
			map[string][]push.Value{"b": {want("", "1")}}, map[string]string{"a": ""},
			&fake.Fault{Call: fake.CallCreate, Err: provider.NewError(provider.Denied, "no")},
			remotes{"a": "1"}, []string{"a"}, []fake.Call{fake.CallCreate}, []string{"Delete a", "Create b"},
		},
		"Unrelated": {
			"The old one stays if any wanted value fails.", remotes{"a": "1"},
			map[string][]push.Value{"b": {want("", "1")}, "c": {want("", "1")}}, map[string]string{"a": ""},
			&fake.Fault{Call: fake.CallCreate, Key: "b", Err: provider.NewError(provider.Invalid, "no")},
			remotes{"a": "1", "c": "1"}, []string{"a"}, []fake.Call{fake.CallCreate, fake.CallCreate}, []string{"Delete a", "Create b", "Create c"},
		},
		"Property": {
			"One write replaces a property by another.", remotes{"a": `{"x":"1"}`},
			map[string][]push.Value{"a": {want("y", "1")}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"y":"1"}`}, nil, []fake.Call{fake.CallUpdate}, []string{"Delete a x", "Create a y"},
		},
		"PropertyInvalid": {
			"The old property stays if the new one cannot be written.", remotes{"a": `{"x":"1"}`},
			map[string][]push.Value{"a": {want("y", "\xff"), want("z", "1")}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"x":"1","z":"1"}`}, []string{"x"}, []fake.Call{fake.CallUpdate}, []string{"Fail a y", "Create a z"},
		},
		"PropertyElsewhere": {
			"It stays also if the new one is in another secret.", remotes{"a": `{"x":"1","y":"2"}`},
			map[string][]push.Value{"a": {want("y", "3")}, "b": {want("x", "1")}}, map[string]string{"a": "x"},
			&fake.Fault{Call: fake.CallCreate, Err: provider.NewError(provider.Denied, "no")},
			remotes{"a": `{"x":"1","y":"3"}`}, []string{"x"}, []fake.Call{fake.CallUpdate, fake.CallCreate}, []string{"Delete a x", "Update a y", "Create b x"},
		},
		"PropertyMoved": {
			"After the other secret is written, the old property is removed, although the first write changed its secret.", remotes{"a": `{"x":"1","y":"2"}`},
			map[string][]push.Value{"a": {want("y", "3")}, "b": {want("x", "1")}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"y":"3"}`, "b": `{"x":"1"}`}, nil, []fake.Call{fake.CallUpdate, fake.CallCreate, fake.CallUpdate}, []string{"Delete a x", "Update a y", "Create b x"},
		},
		"WholeFails": {
			"Properties stay recorded if the whole secret is wanted and cannot be written.", remotes{"a": `{"x":"1"}`},
			map[string][]push.Value{"a": {{Err: provider.NewError(provider.NotFound, "no such key")}}}, map[string]string{"a": "x"}, nil,
			remotes{"a": `{"x":"1"}`}, []string{"x"}, nil, []string{"Fail a"},
		},
		"PropertyUnread": {
			"No property is removed while another secret cannot be read.", remotes{"a": `{"x":"1","y":"2"}`},
			map[string][]push.Value{"a": {want("y", "3")}, "b": {want("x", "1")}}, map[string]string{"a": "x"},
			&fake.Fault{Call: fake.CallObserve, Key: "b", Err: provider.NewError(provider.Denied, "no")},
			remotes{"a": `{"x":"1","y":"3"}`}, []string{"x"}, []fake.Call{fake.CallUpdate}, []string{"Update a y", "Fail b x"},
		},
		"Throttled": {
			"After a request to wait, nothing more is read or written.", remotes{"c": "1"},
			map[string][]push.Value{"a": {want("", "1")}, "b": {want("x", "1")}}, map[string]string{"c": ""},
			&fake.Fault{Call: fake.CallObserve, Key: "a", Err: provider.NewError(provider.Throttled, "wait")},
			remotes{"c": "1"}, []string{"c"}, nil, []string{"Fail a", "Fail b x"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := fake.New()
			c, err := b.Connect(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			w, err := b.Writer(t.Context())
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
			loader := loaderOf(c)
			defer loader.Retire()
			r := &runner{incomplete: incomplete, timeout: time.Minute}
			dry := taskOf(v1alpha1.PushStoreStatus{}, jobs...)
			dry.pusher.DryRun = true
			r.carryOut(t.Context(), loader, dry)
			predicted := predictedBy(dry)
			run := taskOf(v1alpha1.PushStoreStatus{}, jobs...)
			r.carryOut(t.Context(), loader, run)
			got := remotes{}
			for _, key := range []string{"a", "b", "c"} {
				if v, err := c.Get(t.Context(), provider.Ref{Key: key}); err == nil {
					got[key] = string(v.Data)
				}
			}
			var left []string
			for _, e := range run.entries {
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
			if diff := cmp.Diff([]any{tc.then, tc.left, tc.writes, tc.predicted}, []any{got, left, writes, predicted}); diff != "" {
				t.Errorf("\n%s\nerror %v; remote secrets, entries to remove later, calls, and what a dry run reported before: -want, +got:\n%s", tc.reason, run.err, diff)
			}
		})
	}
}

// taskOf returns a task of the object "me" that removes what is obsolete.
func taskOf(of v1alpha1.PushStoreStatus, jobs ...job) *task {
	o := &others{reconciler: &reconciler{opts: setup.Options{Now: func() time.Time { return noon }}}, self: newObject(), ps: &v1alpha1.PushSecret{}}
	return &task{
		to: &destination{store: &fakev1.FakeStore{}, status: of}, jobs: jobs, others: o,
		pusher: push.Pusher{Policies: push.Policies{Deletes: true, Mark: "me"}},
	}
}

// loaderOf returns the Loader of a client.
func loaderOf(c provider.Client) *dispatch.Loader {
	return dispatch.NewLoader(func(_ context.Context, tenant *quota.Tenant) (*provider.Link, error) {
		return provider.NewLink("FakeStore", c, tenant), nil
	}, dispatch.Options{})
}

// predictedBy formats the difference of a dry run as "Action key" or "Action key property".
func predictedBy(t *task) (out []string) {
	for _, e := range t.difference.Entries {
		out = append(out, strings.TrimSpace(string(e.Action)+" "+e.RemoteKey+" "+e.Property))
	}
	return out
}

// TestDifferenceTruncated cuts off a long difference, so that a status stays small.
func TestDifferenceTruncated(t *testing.T) {
	changes := map[string][]push.Change{}
	for i := range maxDifference + 1 {
		changes[fmt.Sprint("key-", i)] = []push.Change{{Action: v1alpha1.PushCreate}}
	}
	d := differenceOf(changes)
	if len(d.Entries) != maxDifference || !d.Truncated || !strings.Contains(bySpec.planned(d).Message, "create 100,") {
		t.Errorf("%d entries, truncated %v, and %q", len(d.Entries), d.Truncated, bySpec.planned(d).Message)
	}
}

// TestKeptEntriesMakeNoCall runs a job that only keeps entries that are removed with the object. It must make no call
// to the store.
func TestKeptEntriesMakeNoCall(t *testing.T) {
	b := fake.New()
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	b.Inject(fake.Fault{Call: fake.CallObserve, Err: provider.NewError(provider.Unavailable, "down")})
	kept := []v1alpha1.PushEntryStatus{{RemoteKey: "kept", Version: "v1", Created: true}}
	loader := loaderOf(c)
	defer loader.Retire()
	r := &runner{incomplete: incomplete, timeout: time.Minute}
	run := taskOf(v1alpha1.PushStoreStatus{}, job{target: provider.Target{Key: "kept"}, kept: kept})
	r.carryOut(t.Context(), loader, run)
	if diff := cmp.Diff(kept, run.entries); diff != "" || run.err != nil {
		t.Errorf("error %v; entries: -want, +got:\n%s", run.err, diff)
	}
	if n := b.Count(fake.CallObserve); n > 0 {
		t.Errorf("%d calls for entries that are only kept", n)
	}
}

// TestMove runs a push to a store that leads to another place than before. The operator reports what it created there,
// and no longer records it.
func TestMove(t *testing.T) {
	b := fake.New()
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	loader := loaderOf(c)
	defer loader.Retire()
	is, err := locate(t.Context(), &fakev1.FakeStore{}, "", fake.Link("FakeStore", c))
	if err != nil {
		t.Fatal(err)
	}
	known := []v1alpha1.PushEntryStatus{{RemoteKey: "db", Version: "v1", ID: "there", Created: true}, {RemoteKey: "db", Property: "p", Version: "v1", ID: "there"}}
	cases := map[string]struct {
		reason    string
		place     string
		elsewhere []v1alpha1.PushEntryStatus
	}{
		"Same":  {"The store leads to the same place.", is.place, nil},
		"Old":   {"A former version recorded no place.", "", nil},
		"Own":   {"The client could not tell the place before.", ownPlace(&fakev1.FakeStore{}, ""), nil},
		"Moved": {"The store leads elsewhere.", "another", known[:1]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &runner{incomplete: incomplete, timeout: time.Minute}
			run := taskOf(v1alpha1.PushStoreStatus{Place: tc.place}, job{target: provider.Target{Key: "db"}, known: known})
			r.carryOut(t.Context(), loader, run)
			if diff := cmp.Diff([]any{tc.elsewhere, 0, is.place}, []any{run.stays[otherPlace], len(run.entries), run.place}); diff != "" {
				t.Errorf("%s\nerror %v; entries elsewhere, entries left, and place: -want, +got:\n%s", tc.reason, run.err, diff)
			}
		})
	}
}

// slow is a Writer that waits before it answers that a secret does not exist.
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

// TestWaitForLock checks that a removal waits for a push up to the timeout, and then has the full timeout for its own
// calls.
func TestWaitForLock(t *testing.T) {
	cases := map[string]struct {
		reason string
		busy   time.Duration
		class  provider.Class
	}{
		"Ends":  {"The wait for another push does not count for the timeout of the call.", 40 * time.Second, ""},
		"Stays": {"The wait for a push that does not end has a limit.", 2 * time.Minute, provider.Unavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &runner{timeout: time.Minute}
				at := location{place: "b"}.site("db")
				unlock, err := r.sites.Lock(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tc.busy, unlock)
				known := []v1alpha1.PushEntryStatus{{RemoteKey: "db", Created: true}}
				run := taskOf(v1alpha1.PushStoreStatus{})
				run.location, run.pusher.Store = location{place: "b"}, fake.Link("FakeStore", slow{takes: 40 * time.Second})
				o := r.apply(t.Context(), run, job{target: provider.Target{Key: "db"}, known: known}, false)
				if (o.Err == nil) != (tc.class == "") || o.Err != nil && provider.ClassOf(o.Err) != tc.class {
					t.Errorf("%s\nerror %v, want one of class %q", tc.reason, o.Err, tc.class)
				}
				time.Sleep(tc.busy)
			})
		})
	}
}
