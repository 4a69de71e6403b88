package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// searching returns a search for all secrets below a path.
func searching(path string) provider.Read {
	return provider.Read{Search: provider.NewSearch(path, "", nil)}
}

// askSearches requests searches by their paths.
func askSearches(l *Loader, u Urgency, paths ...string) *asked {
	var reads []provider.Read
	for _, p := range paths {
		reads = append(reads, searching(p))
	}
	return askReads(l, u, reads...)
}

// found returns the result of each search by its path: the found keys and values, or the class of the error.
func (a *asked) found(t *testing.T) map[string]string {
	t.Helper()
	results, ok := a.take()
	if !ok {
		return nil
	}
	out := map[string]string{}
	for read, a := range results {
		if a.Err != nil {
			if a.Found != nil {
				t.Errorf("%q: %d secrets with an error", read.Search.Path, len(a.Found))
			}
			out[read.Search.Path] = string(provider.ClassOf(a.Err))
			continue
		}
		var keys []string
		for _, v := range a.Found {
			keys = append(keys, v.Key+"="+string(v.Data))
		}
		out[read.Search.Path] = strings.Join(keys, " ")
	}
	return out
}

// lookup is a search that reached the provider.
type lookup struct {
	At   time.Duration
	Path string
}

// lookups returns the searches that reached a backend. Searches at the same time are ordered by their paths.
func lookups(b *fake.Backend, start time.Time) (out []lookup) {
	for _, r := range b.Calls(fake.CallFind) {
		out = append(out, lookup{r.Time.Sub(start), r.Query.Path})
	}
	slices.SortStableFunc(out, func(a, b lookup) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// shelved returns a backend with two secrets below each of the paths a to h.
func shelved(opts ...fake.Option) *fake.Backend {
	b := fake.New(opts...)
	for _, p := range "abcdefgh" {
		for _, n := range "12" {
			b.Put(string([]rune{p, n}), []byte{byte(n)})
		}
	}
	return b
}

func TestSearches(t *testing.T) {
	// req is a request for searches at a time after the start.
	type req struct {
		at      time.Duration
		urgency Urgency
		paths   []string
	}
	type args struct {
		requests []req
		latency  time.Duration
		opts     Options
	}
	paths := func(s string) []string { return strings.Split(s, "") }
	const s = time.Second
	cases := map[string]struct {
		reason string
		args   args
		want   []lookup
	}{
		"Single": {
			"A search does not wait for others: it is a call of its own.",
			args{requests: []req{{paths: paths("a")}}},
			[]lookup{{0, "a"}},
		},
		"Twice": {
			"A search that is named twice is made once.",
			args{requests: []req{{paths: paths("aa")}}},
			[]lookup{{0, "a"}},
		},
		"Coalesced": {
			"A request for a search under way joins it, whatever its urgency.",
			args{latency: s, requests: []req{{paths: paths("a")}, {at: 500 * ms, paths: paths("a")}, {at: 900 * ms, urgency: New, paths: paths("a")}}},
			[]lookup{{0, "a"}},
		},
		"Shared": {
			"A held answer is shared for a second.",
			args{latency: 100 * ms, requests: []req{{paths: paths("a")}, {at: 600 * ms, paths: paths("a")}}},
			[]lookup{{0, "a"}},
		},
		"Aged": {
			"An older answer is not shared.",
			args{latency: 100 * ms, requests: []req{{paths: paths("a")}, {at: 1200 * ms, paths: paths("a")}}},
			[]lookup{{0, "a"}, {1200 * ms, "a"}},
		},
		"FreshStartsAgain": {
			"A Fresh request does not join a search that has started before.",
			args{latency: s, requests: []req{{paths: paths("a")}, {at: 500 * ms, urgency: Fresh, paths: paths("a")}}},
			[]lookup{{0, "a"}, {500 * ms, "a"}},
		},
		"FreshNotShared": {
			"A Fresh request does not share a held answer.",
			args{latency: 100 * ms, requests: []req{{paths: paths("a")}, {at: 200 * ms, urgency: Fresh, paths: paths("a")}}},
			[]lookup{{0, "a"}, {200 * ms, "a"}},
		},
		"TwoFresh": {
			"Two Fresh requests share a search that was not sent yet.",
			args{latency: s, requests: []req{
				{paths: paths("ab")}, {at: 100 * ms, urgency: Fresh, paths: paths("a")}, {at: 200 * ms, urgency: Fresh, paths: paths("a")},
			}},
			[]lookup{{0, "a"}, {0, "b"}, {s, "a"}},
		},
		"AtMostTwo": {
			"At most two searches are under way; the end of each allows the next.",
			args{latency: s, requests: []req{{paths: paths("abcde")}}},
			[]lookup{{0, "a"}, {0, "b"}, {s, "c"}, {s, "d"}, {2 * s, "e"}},
		},
		"UrgentFirst": {
			"New requests overtake periodic ones.",
			args{latency: s, requests: []req{{paths: paths("abcdef")}, {at: 10 * ms, urgency: New, paths: paths("gh")}}},
			[]lookup{{0, "a"}, {0, "b"}, {s, "g"}, {s, "h"}, {2 * s, "c"}, {2 * s, "d"}, {3 * s, "e"}, {3 * s, "f"}},
		},
		"Promoted": {
			"A periodic search becomes urgent when an urgent request joins it, and is made once.",
			args{latency: s, requests: []req{{paths: paths("abcdef")}, {at: 10 * ms, urgency: New, paths: paths("f")}}},
			[]lookup{{0, "a"}, {0, "b"}, {s, "c"}, {s, "f"}, {2 * s, "d"}, {2 * s, "e"}},
		},
		"PromotedKeepsItsAge": {
			"A search that became urgent comes before later urgent ones.",
			args{latency: s, requests: []req{{paths: paths("abc")}, {at: 10 * ms, urgency: New, paths: paths("de")}, {at: 20 * ms, urgency: New, paths: paths("c")}}},
			[]lookup{{0, "a"}, {0, "b"}, {s, "c"}, {s, "d"}, {2 * s, "e"}},
		},
		"MaxCalls": {
			"The limit of reads does not apply to searches.",
			args{latency: s, opts: Options{MaxCalls: 1}, requests: []req{{paths: paths("abc")}}},
			[]lookup{{0, "a"}, {0, "b"}, {s, "c"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shelved()
				if tc.args.latency > 0 {
					b.Inject(fake.Fault{Call: fake.CallFind, Latency: tc.args.latency})
				}
				l := connected(t, connectTo(b), tc.args.opts)
				start := time.Now()
				var all []*asked
				for _, r := range tc.args.requests {
					time.Sleep(time.Until(start.Add(r.at)))
					synctest.Wait()
					all = append(all, askSearches(l, r.urgency, r.paths...))
				}
				time.Sleep(time.Until(start.Add(time.Minute)))
				synctest.Wait()
				for i, a := range all {
					want := map[string]string{}
					for _, p := range tc.args.requests[i].paths {
						want[p] = fmt.Sprintf("%s1=1 %s2=2", p, p)
					}
					got := a.found(t)
					time.Sleep(2 * s) // The waiting searches are made now.
					synctest.Wait()
					if diff := gocmp.Diff(want, got); diff != "" {
						t.Errorf("\n%s\nrequest %d: -want, +got:\n%s", tc.reason, i, diff)
					}
					if n := a.done.Load(); n != 1 {
						t.Errorf("\n%s\nrequest %d: done was called %d times, want once", tc.reason, i, n)
					}
				}
				if diff := gocmp.Diff(tc.want, lookups(b, start)); diff != "" {
					t.Errorf("\n%s\nsearches: -want, +got:\n%s", tc.reason, diff)
				}
				idle(t, l)
			})
		})
	}
}

// idle checks that a Loader holds nothing in the end.
func idle(t *testing.T, l *Loader) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.calls[false] + l.calls[true] + l.lent + len(l.entries) + len(l.waiting); n != 0 {
		t.Errorf("calls %d, searches %d, lent %d, entries %d, waiting %d: all must be 0 in the end",
			l.calls[false], l.calls[true], l.lent, len(l.entries), len(l.waiting))
	}
	if n := l.tenant.Used(); n != 0 {
		t.Errorf("%d bytes count for the store in the end", n)
	}
}

// TestSearchFailures searches a, and then b.
func TestSearchFailures(t *testing.T) {
	type want struct {
		First string
		At    time.Duration
		Later string
	}
	const s = time.Second
	cases := map[string]struct {
		reason  string
		fault   fake.Fault
		backend []fake.Option
		want    want
	}{
		"Denied":   {"An error of the search is its answer.", fake.Fault{Call: fake.CallFind, Times: 1, Err: provider.NewError(provider.Denied, "no")}, nil, want{"Denied", 0, "b1=1 b2=2"}},
		"Unknown":  {"An error without a class is Unavailable.", fake.Fault{Call: fake.CallFind, Times: 1, Err: errBoom}, nil, want{"Unavailable", 0, "b1=1 b2=2"}},
		"Midway":   {"A list that ends early has no results.", fake.Fault{Call: fake.CallFind, Key: "a2", Times: 1, Err: provider.NewError(provider.Unavailable, "no")}, nil, want{"Unavailable", 0, "b1=1 b2=2"}},
		"Lacking":  {"A list with a missing entry is incomplete.", fake.Fault{Call: fake.CallFind, Key: "a2", Times: 1, Drop: true}, nil, want{"Unavailable", 0, "b1=1 b2=2"}},
		"NotFound": {"A missing path is NotFound; the caller decides what that means.", fake.Fault{Call: fake.CallFind, Times: 1, Err: provider.NewError(provider.NotFound, "no")}, nil, want{"NotFound", 0, "b1=1 b2=2"}},
		"Hang":     {"A search that hangs ends after two minutes, and later ones work.", fake.Fault{Call: fake.CallFind, Times: 1, Hang: true}, nil, want{"Unavailable", 120 * s, "b1=1 b2=2"}},
		"HangsMidway": {
			"A search that hangs after its first results ends after two minutes.",
			fake.Fault{Call: fake.CallFind, Key: "a2", Times: 1, Hang: true}, nil, want{"Unavailable", 120 * s, "b1=1 b2=2"},
		},
		"Slow":         {"A search can take longer than a read.", fake.Fault{Call: fake.CallFind, Times: 1, Latency: 119 * s}, nil, want{"a1=1 a2=2", 119 * s, "b1=1 b2=2"}},
		"Panic":        {"A panic of the provider is an error of its search.", fake.Fault{Call: fake.CallFind, Times: 1, Panic: "boom"}, nil, want{"Unavailable", 0, "b1=1 b2=2"}},
		"PanicMidway":  {"A panic in the middle of the list is an error of its search.", fake.Fault{Call: fake.CallFind, Key: "a2", Times: 1, Panic: "boom"}, nil, want{"Unavailable", 0, "b1=1 b2=2"}},
		"Unsupported":  {"A client without search returns an error, never an empty list.", fake.Fault{Call: fake.CallClose}, []fake.Option{fake.Without(provider.CapabilityFind)}, want{"Invalid", 0, "Invalid"}},
		"ConnectFails": {"All searches that wait for a connection fail with it, and the next search connects again.", fake.Fault{Call: fake.CallConnect, Times: 1, Err: provider.NewError(provider.Denied, "no")}, nil, want{"Denied", 0, "b1=1 b2=2"}},
		"ConnectHangs": {"A connection that hangs ends at the timeout of a call.", fake.Fault{Call: fake.CallConnect, Times: 1, Hang: true}, nil, want{"Unavailable", 30 * s, "b1=1 b2=2"}},
		"Deleted":      {"A secret that is deleted during the search is not in the result.", fake.Fault{Call: fake.CallFind, Key: "a1", Times: 1, Err: provider.NewError(provider.NotFound, "deleted meanwhile")}, nil, want{"a2=2", 0, "b1=1 b2=2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shelved(tc.backend...)
				b.Inject(tc.fault)
				l := NewLoader(connectTo(b), Options{})
				start := time.Now()
				first := askSearches(l, New, "a")
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				later := askSearches(l, New, "b")
				time.Sleep(s)
				synctest.Wait()
				if first.done.Load() != 1 || later.done.Load() != 1 {
					t.Fatalf("\n%s\ndone was called %d and %d times, want once each", tc.reason, first.done.Load(), later.done.Load())
				}
				got := want{first.found(t)["a"], first.at.Load().Sub(start), later.found(t)["b"]}
				if diff := gocmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
				idle(t, l)
			})
		})
	}
}

// TestSearchBadRegexp checks that an invalid expression fails without a call to the provider.
func TestSearchBadRegexp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shelved()
		l := connected(t, connectTo(b), Options{})
		read := provider.Read{Search: provider.NewSearch("a", "(", nil)}
		a := askReads(l, New, read)
		synctest.Wait()
		results, ok := a.take()
		if !ok || results[read].Err == nil || provider.ClassOf(results[read].Err) != provider.Invalid || b.Count(fake.CallFind) != 0 {
			t.Errorf("Take(): %v, %t after %d searches; want an error of class Invalid and no search", results, ok, b.Count(fake.CallFind))
		}
	})
}

// TestSearchAsks checks that path, name and tags reach the provider.
func TestSearchAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := fake.New()
		b.Put("shop/db", []byte("1"), fake.Tags(map[string]string{"team": "shop", "env": "prod"}))
		b.Put("shop/db2", []byte("2"), fake.Tags(map[string]string{"team": "shop"}))
		b.Put("shop/web", []byte("3"), fake.Tags(map[string]string{"team": "shop", "env": "prod"}))
		b.Put("other/db", []byte("4"), fake.Tags(map[string]string{"team": "shop", "env": "prod"}))
		l := connected(t, connectTo(b), Options{})
		read := provider.Read{Search: provider.NewSearch("shop/", "db", map[string]string{"team": "shop", "env": "prod"})}
		a := askReads(l, New, read, provider.Read{Ref: provider.Ref{Key: "shop/web"}})
		time.Sleep(time.Second)
		synctest.Wait()
		got, _ := a.take()
		want := map[provider.Read]provider.Answer{
			read:                                 {Found: []provider.Value{{Key: "shop/db", Data: []byte("1"), Version: "v1"}}},
			{Ref: provider.Ref{Key: "shop/web"}}: {Value: provider.Value{Key: "shop/web", Data: []byte("3"), Version: "v1"}},
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if n := a.done.Load(); n != 1 {
			t.Errorf("done was called %d times, want once, after the last read and search", n)
		}
	})
}

// A shelf is a client whose searches return secrets of one size until the caller stops.
type shelf struct {
	n, size int
	emitted atomic.Int32
	stuck
}

func (s *shelf) Find(context.Context, provider.Query) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		if s.release != nil {
			s.begun.Add(1)
			<-s.release
		}
		data := make([]byte, s.size)
		for i := range s.n {
			s.emitted.Add(1)
			if !yield(provider.Value{Key: fmt.Sprintf("k%d", i), Data: data}, nil) {
				return
			}
		}
	}
}

func TestSearchBounds(t *testing.T) {
	type want struct {
		Class        provider.Class
		Found        int
		Emitted      int32
		ErrorMessage string
	}
	const secrets, bytes = "more than 10000 secrets match; narrow path, name or tags", "more than 4 MiB in total; narrow path, name or tags"
	cases := map[string]struct {
		reason  string
		n, size int
		want    want
	}{
		"Many":      {"A search returns up to 10,000 secrets.", 10_000, 1, want{Found: 10_000, Emitted: 10_000}},
		"TooMany":   {"More secrets are an error: a part of them would look complete.", 10_001, 1, want{Class: provider.Invalid, Emitted: 10_001, ErrorMessage: secrets}},
		"Endless":   {"An endless list is read only up to the limit.", 1_000_000, 0, want{Class: provider.Invalid, Emitted: 10_001, ErrorMessage: secrets}},
		"Large":     {"A search returns up to 4 MiB.", 4, 1 << 20, want{Found: 4, Emitted: 4}},
		"TooLarge":  {"More bytes are an error, and are not held.", 100, 1<<20 + 1, want{Class: provider.Invalid, Emitted: 4, ErrorMessage: bytes}},
		"OneLarge":  {"A single secret above the limit is an error.", 1, 4<<20 + 1, want{Class: provider.Invalid, Emitted: 1, ErrorMessage: bytes}},
		"EmptyList": {"An empty list is an answer.", 0, 0, want{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &shelf{n: tc.n, size: tc.size}
				l := connected(t, connects(c), Options{})
				a := askSearches(l, New, "a")
				synctest.Wait()
				results, ok := a.take()
				r := results[searching("a")]
				if !ok {
					t.Fatal("Take(): no answer")
				}
				got := want{Found: len(r.Found), Emitted: c.emitted.Load()}
				if r.Err != nil {
					got.Class = provider.ClassOf(r.Err)
				}
				if r.Err != nil && strings.Contains(r.Err.Error(), tc.want.ErrorMessage) {
					got.ErrorMessage = tc.want.ErrorMessage
				}
				if diff := gocmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s\nerror: %v", tc.reason, diff, r.Err)
				}
			})
		})
	}
}

// TestSearchIgnoresContext uses a provider whose code ignores its context.
func TestSearchIgnoresContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &shelf{n: 1, stuck: stuck{release: make(chan struct{})}}
		l := connected(t, connects(c), Options{SearchTimeout: time.Second})
		a, b := askSearches(l, New, "a", "b"), askSearches(l, New, "c")
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := gocmp.Diff(map[string]string{"a": "Unavailable", "b": "Unavailable"}, a.found(t)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if n := c.begun.Load(); n != 3 {
			t.Errorf("%d searches started, want 3: those that have timed out must not count", n)
		}
		close(c.release)
		synctest.Wait()
		if diff := gocmp.Diff(map[string]string{"c": "k0="}, b.found(t)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if n := a.done.Load() + b.done.Load(); n != 2 {
			t.Errorf("done was called %d times, want 2: a late answer is dropped", n)
		}
		idle(t, l)
	})
}

// TestSearchesKeepFreeSlots lets the maximum number of searches hang.
func TestSearchesKeepFreeSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shelved()
		b.Inject(fake.Fault{Call: fake.CallFind, Hang: true})
		l := connected(t, connectTo(b), Options{MaxCalls: 1})
		hung := askSearches(l, New, "a", "b", "c")
		read := ask(l, Periodic, "a1")
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := gocmp.Diff(same("1", "a1"), read.values()); diff != "" {
			t.Errorf("a read next to searches that hang: -want, +got:\n%s", diff)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if diff := gocmp.Diff(same("Unavailable", "a", "b", "c"), hung.found(t)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// TestSearchThrottled uses a provider that throttles its first call, a search or a read. After that it makes further
// requests one by one: a search for each letter, a read for each key.
func TestSearchThrottled(t *testing.T) {
	type args struct {
		first string
		err   error
		// next are the later requests, a second apart.
		next []string
	}
	type want struct {
		Outcomes []string
		// AnsweredAt is when each request was answered.
		AnsweredAt []time.Duration
		// Calls is the number of all calls that reached the provider.
		Calls int
	}
	const s = time.Second
	ask := func(l *Loader, what string) *asked {
		if len(what) == 1 {
			return askSearches(l, New, what)
		}
		return ask(l, New, what)
	}
	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"SearchThenSearch": {
			"A throttled search delays the next ones until the provider accepts calls again.",
			args{"a", throttled(10 * s), []string{"b", "c"}},
			want{[]string{"Throttled", "b1=1 b2=2", "c1=1 c2=2"}, []time.Duration{0, 10 * s, 10*s + 114*ms}, 3},
		},
		"SearchThenRead": {
			"A throttled search delays reads, too.",
			args{"a", throttled(10 * s), []string{"b1"}},
			want{[]string{"Throttled", "1"}, []time.Duration{0, 10 * s}, 2},
		},
		"ReadThenSearch": {
			"A throttled read delays searches.",
			args{"a1", throttled(10 * s), []string{"b"}},
			want{[]string{"Throttled", "b1=1 b2=2"}, []time.Duration{2 * ms, 10 * s}, 2},
		},
		"Rate": {
			"Without a time to wait, only the rate delays calls.",
			args{"a", throttled(0), []string{"b"}},
			want{[]string{"Throttled", "b1=1 b2=2"}, []time.Duration{0, s}, 2},
		},
		"HeldBack": {
			"After 30 s a delayed request fails with the reason, without a call.",
			args{"a", throttled(time.Hour), []string{"b", "c1", "d"}},
			want{[]string{"Throttled", "Throttled", "Throttled", "Throttled"}, []time.Duration{0, 31 * s, 32 * s, 33 * s}, 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shelved()
				for _, c := range []fake.Call{fake.CallFind, fake.CallGetBatch} {
					if (c == fake.CallFind) == (len(tc.args.first) == 1) {
						b.Inject(fake.Fault{Call: c, Times: 1, Err: tc.args.err})
					}
				}
				l := connected(t, connectTo(b), Options{})
				start := time.Now()
				all := []*asked{ask(l, tc.args.first)}
				for i, what := range tc.args.next {
					time.Sleep(time.Until(start.Add(time.Duration(i+1) * s)))
					synctest.Wait()
					all = append(all, ask(l, what))
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()

				var got want
				for i, a := range all {
					if n := a.done.Load(); n != 1 {
						t.Fatalf("\n%s\nrequest %d: done was called %d times, want once", tc.reason, i, n)
					}
					got.AnsweredAt = append(got.AnsweredAt, a.at.Load().Sub(start))
					outcomes := a.values()
					if len(append([]string{tc.args.first}, tc.args.next...)[i]) == 1 {
						outcomes = a.found(t)
					}
					for _, o := range outcomes {
						got.Outcomes = append(got.Outcomes, o)
					}
				}
				got.Calls = b.Reads()
				near := gocmp.Comparer(func(a, b time.Duration) bool { return max(a-b, b-a) <= 3*ms })
				if diff := gocmp.Diff(tc.want, got, near); diff != "" {
					t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
				}
				idle(t, l)
			})
		})
	}
}

func TestRetireDuringSearch(t *testing.T) {
	cases := map[string]struct {
		reason  string
		paths   []string
		checkAt time.Duration
		want    int
	}{
		"During":  {"A client is not closed during a search.", []string{"a"}, 900 * ms, 0},
		"After":   {"A client is closed after its last search.", []string{"a"}, 1100 * ms, 1},
		"Waiting": {"A search that waits still uses the client.", []string{"a", "b", "c"}, 1900 * ms, 0},
		"Last":    {"A client is closed after the last of several searches.", []string{"a", "b", "c"}, 2100 * ms, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shelved()
				b.Inject(fake.Fault{Call: fake.CallFind, Latency: time.Second})
				l := connected(t, connectTo(b), Options{})
				start := time.Now()
				a := askSearches(l, New, tc.paths...)
				time.Sleep(100 * ms)
				synctest.Wait()
				l.Retire()
				time.Sleep(time.Until(start.Add(tc.checkAt)))
				synctest.Wait()
				if got := b.Closes(); got != tc.want {
					t.Errorf("\n%s\nclosed %d times, want %d", tc.reason, got, tc.want)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if b.Closes() != 1 || b.Connects() != 1 {
					t.Errorf("in the end connected %d and closed %d times, want once each", b.Connects(), b.Closes())
				}
				for p, got := range a.found(t) {
					if want := fmt.Sprintf("%s1=1 %s2=2", p, p); got != want {
						t.Errorf("\n%s\n%q: %q, want %q", tc.reason, p, got, want)
					}
				}
			})
		})
	}
}

func TestDropSearch(t *testing.T) {
	cases := map[string]struct {
		reason string
		drop   time.Duration
		want   int32
	}{
		"Before": {"A request has no results that is dropped before the search was sent.", 100 * ms, 0},
		"During": {"A request has no results that is dropped during the search.", 1500 * ms, 0},
		"After":  {"A request that is dropped afterwards had its results.", 3 * time.Second, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := shelved()
				b.Inject(fake.Fault{Call: fake.CallFind, Latency: time.Second})
				l := connected(t, connectTo(b), Options{})
				room := askSearches(l, New, "a", "b")
				dropped, other := askSearches(l, New, "c"), askSearches(l, New, "c", "d")
				time.Sleep(tc.drop)
				synctest.Wait()
				dropped.drop()
				dropped.drop()
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := dropped.done.Load(); got != tc.want {
					t.Errorf("\n%s\ndone was called %d times, want %d", tc.reason, got, tc.want)
				}
				if diff := gocmp.Diff(map[string]string{"c": "c1=1 c2=2", "d": "d1=1 d2=2"}, other.found(t)); diff != "" {
					t.Errorf("another request for the same search: -want, +got:\n%s", diff)
				}
				room.drop()
				idle(t, l)
			})
		})
	}
}

// TestDroppedSearchIsForgotten drops the only request for a search: no request must hold its results.
func TestDroppedSearchIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := shelved()
		b.Inject(fake.Fault{Call: fake.CallFind, Latency: time.Second})
		l := connected(t, connectTo(b), Options{})
		a := askSearches(l, New, "a")
		time.Sleep(500 * ms)
		a.drop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if a.done.Load() != 0 || a.results != nil {
			t.Errorf("a Read that was dropped has returned %d results; want none", len(a.results))
		}
		idle(t, l)
	})
}
