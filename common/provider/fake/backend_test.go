package fake_test

import (
	"context"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

func connected(t *testing.T, b *fake.Backend) good {
	t.Helper()
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return c.(good)
}

func TestVersions(t *testing.T) {
	b := fake.New()
	b.Put("a", []byte("1"))
	b.Put("a", []byte("2"), fake.Version("stable"))
	b.Put("a", []byte("3"))
	b.Put("a", []byte("4"), fake.Version("stable"))
	if diff := cmp.Diff([]string{"v1", "v2", "stable"}, b.Versions("a")); diff != "" {
		t.Errorf("Versions(...): -want, +got:\n%s", diff)
	}
	b.Delete("a")
	if got := b.Put("a", []byte("5")); got != "v3" {
		t.Errorf("the version after a deletion is %s, want v3, because v1 and v2 were other values", got)
	}
}

func TestRecords(t *testing.T) {
	b := fake.New()
	c := connected(t, b)
	ab := []provider.Ref{{Key: "a"}, {Key: "b", Version: "v1"}}
	_, _ = c.Get(t.Context(), ab[0])
	_ = c.GetBatch(t.Context(), ab)
	for v, err := range c.Find(t.Context(), provider.Query{Path: "x"}) {
		t.Errorf("Find(...) in an empty backend: %v, %v", v, err)
	}
	_ = c.Check(t.Context())
	_ = provider.Close(c)

	want := []fake.Record{
		{Call: fake.CallConnect},
		{Call: fake.CallGet, Refs: ab[:1]},
		{Call: fake.CallGetBatch, Refs: ab},
		{Call: fake.CallFind, Query: provider.Query{Path: "x"}},
		{Call: fake.CallCheck},
		{Call: fake.CallClose},
	}
	if diff := cmp.Diff(want, b.Calls(), cmpopts.IgnoreFields(fake.Record{}, "Time")); diff != "" {
		t.Errorf("Calls(): -want, +got:\n%s", diff)
	}
	counts := map[string]int{
		"reads": b.Reads(), "of a": b.ReadsOf("a"), "of b": b.ReadsOf("b"),
		"connects": b.Connects(), "closes": b.Closes(), "all": b.Count(), "checks": b.Count(fake.CallCheck),
	}
	if diff := cmp.Diff(map[string]int{"reads": 3, "of a": 2, "of b": 1, "connects": 1, "closes": 1, "all": 6, "checks": 1}, counts); diff != "" {
		t.Errorf("counters: -want, +got:\n%s", diff)
	}
	b.Reset()
	if got := b.Count(); got != 0 {
		t.Errorf("%d calls after Reset", got)
	}
}

func TestWaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fake.New().Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait(...): error %v, want %v", err, context.Canceled)
	}
}
