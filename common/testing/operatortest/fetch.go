package operatortest

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A CallsHarness is one store without earlier requests.
type CallsHarness struct {
	// Keys are the keys of a hundred existing secrets.
	Keys []string
	// Connect creates a client of the store.
	Connect func(ctx context.Context) (provider.Client, error)
	// Calls returns the number of calls to the server since Connect, by their names.
	Calls func() map[string]int
}

// Calls are the expected numbers of calls, by the names of the server's calls.
type Calls struct {
	// Login are the calls of one login; nil if each request is signed.
	Login map[string]int
	// One are the calls for reading one secret.
	One map[string]int
	// Hundred are the calls for reading a hundred secrets.
	Hundred map[string]int
}

// CallsPerSync counts the calls for objects that are due at the same time, through the operator's dispatcher. It
// calls start for each case.
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
		objects func(keys []string) [][]string // They are the keys of each object.
		rounds  int
		want    map[string]int // It applies to each round.
	}{
		"Properties": {"Ten properties of one secret need one read.", func(keys []string) [][]string { return [][]string{repeat(keys)[:10]} }, 1, want.One},
		"Shared":     {"A hundred objects with one secret need one read.", func(keys []string) [][]string { return each(repeat(keys)) }, 1, want.One},
		"Hundred":    {"A hundred secrets need the minimum number of calls.", each, 1, want.Hundred},
		"Again":      {"A login is reused.", each, 3, want.Hundred},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			if len(h.Keys) != many {
				t.Fatalf("the harness has %d keys, want %d", len(h.Keys), many)
			}
			// With so many due objects the loader waits for full batches, so that the duration of the following
			// requests does not matter.
			busy := dispatch.NewBusy(func() int { return many }, 1)
			l := dispatch.NewLoader(func(ctx context.Context, tenant *quota.Tenant) (*provider.Link, error) {
				c, err := h.Connect(ctx)
				return provider.NewLink(kind, c, tenant), err
			}, dispatch.Options{Busy: busy})
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

// read reads the keys of all objects at the same time. Each holds its answer until all have one, since objects hold
// their answers while they write Secrets.
func read(t *testing.T, l *dispatch.Loader, objects [][]string) {
	t.Helper()
	var wg, answered sync.WaitGroup
	answered.Add(len(objects))
	for i, keys := range objects {
		var reads []provider.Read
		for _, k := range keys {
			reads = append(reads, provider.Read{Ref: provider.Ref{Key: k}})
		}
		wg.Go(func() {
			got, release, err := l.Read(t.Context(), reads, true, time.Time{})
			defer release()
			answered.Done()
			answered.Wait()
			answer := got[reads[0]]
			if err != nil || answer.Err != nil || len(answer.Value.Data) == 0 {
				t.Errorf("object %d of %d got no value: %v, %v", i, len(objects), err, answer.Err)
			}
		})
	}
	wg.Wait()
}
