package operatortest

import (
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A CallsHarness is one store, of which nothing has been asked yet.
type CallsHarness struct {
	// Keys of a hundred secrets that exist.
	Keys []string
	// Connect makes a client of the store.
	Connect dispatch.Connect[provider.Client]
	// Calls returns how often the server was called since Connect, by the names of its calls.
	Calls func() map[string]int
}

// Calls are how many calls are right, by the names of the server's calls.
type Calls struct {
	// Login is what it takes to log in, once; nil where requests are signed one by one.
	Login map[string]int
	// One is what it takes to read one secret.
	One map[string]int
	// Hundred is what it takes to read a hundred secrets.
	Hundred map[string]int
}

// CallsPerSync counts the calls of objects that are due together, through the layer by which the
// operator reads. start is called for each case.
func CallsPerSync(t *testing.T, kind string, start func(t testing.TB) CallsHarness, want Calls) {
	t.Helper()
	const many = 100
	each := func(keys []string) (objects [][]string) {
		for _, k := range keys {
			objects = append(objects, []string{k})
		}
		return objects
	}
	repeat := func(keys []string) (same []string) {
		for range many {
			same = append(same, keys[0])
		}
		return same
	}
	cases := map[string]struct {
		reason  string
		objects func(keys []string) [][]string // the keys that each object asks for
		rounds  int
		want    map[string]int // in each round
	}{
		"Properties": {"Ten properties of one secret are one read.", func(keys []string) [][]string { return [][]string{repeat(keys)[:10]} }, 1, want.One},
		"Shared":     {"A hundred objects over one secret are one read.", func(keys []string) [][]string { return each(repeat(keys)) }, 1, want.One},
		"Hundred":    {"A hundred secrets fill as few calls as there can be.", each, 1, want.Hundred},
		"Again":      {"Who has logged in does not do so again.", each, 3, want.Hundred},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			if len(h.Keys) != many {
				t.Fatalf("the harness has %d keys, want %d", len(h.Keys), many)
			}
			busy := &dispatch.Busy{}
			// As many objects as this are due make the loader wait for full batches, so that the time which
			// the requests below take does not count.
			busy.Watch(func() int { return many }, 1)
			l := dispatch.NewLoader(kind, h.Connect, dispatch.Options{Busy: busy})
			defer l.Retire()
			calls := maps.Clone(want.Login)
			if calls == nil {
				calls = map[string]int{}
			}
			for range tc.rounds {
				read(t, l, tc.objects(h.Keys))
				for call, n := range tc.want {
					calls[call] += n
				}
			}
			if diff := cmp.Diff(calls, h.Calls()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// read asks for the keys of all objects at once, and waits until each has its secrets.
func read(t *testing.T, l *dispatch.Loader, objects [][]string) {
	t.Helper()
	var answered sync.WaitGroup
	var tickets []*dispatch.Ticket
	answered.Add(len(objects))
	for _, keys := range objects {
		var reads []provider.Read
		for _, k := range keys {
			reads = append(reads, provider.Read{Ref: provider.Ref{Key: k}})
		}
		tickets = append(tickets, l.Request(reads, dispatch.New, answered.Done))
	}
	answered.Wait()
	for i, ticket := range tickets {
		got, ok := ticket.Take()
		answer := got[provider.Read{Ref: provider.Ref{Key: objects[i][0]}}]
		if !ok || answer.Err != nil || len(answer.Value.Data) == 0 {
			t.Errorf("object %d of %d got no value: %v", i, len(objects), answer.Err)
		}
	}
}
