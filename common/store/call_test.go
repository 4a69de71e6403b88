package store_test

import (
	"context"
	stderrors "errors"
	"iter"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/store"
	"github.com/direct-secrets/direct-secrets/common/store/fake"
)

// A getter is a client that can only read.
type getter func(ctx context.Context, ref store.Ref) (store.Value, error)

func (g getter) Get(ctx context.Context, ref store.Ref) (store.Value, error) { return g(ctx, ref) }

// A stub has every interface, with one function for each.
type stub struct {
	getter
	batch func(refs []store.Ref) []store.Result
	size  int
	find  iter.Seq2[store.Value, error]
	check func() error
	close func() error
}

func (s stub) GetBatch(_ context.Context, refs []store.Ref) []store.Result { return s.batch(refs) }
func (s stub) BatchSize() int                                              { return s.size }
func (s stub) Check(context.Context) error                                 { return s.check() }
func (s stub) Close() error                                                { return s.close() }
func (s stub) Find(context.Context, store.Query) iter.Seq2[store.Value, error] {
	return s.find
}

// echo answers with the key.
func echo(_ context.Context, ref store.Ref) (store.Value, error) {
	return store.Value{Key: ref.Key, Data: []byte(ref.Key), Version: "1"}, nil
}

func values(keys ...string) (results []store.Result) {
	for _, k := range keys {
		v, _ := echo(context.Background(), store.Ref{Key: k})
		results = append(results, store.Result{Value: v})
	}
	return results
}

func refs(keys ...string) (refs []store.Ref) {
	for _, k := range keys {
		refs = append(refs, store.Ref{Key: k})
	}
	return refs
}

// failed is what the provider's code may say of itself when it panics with a value of type string.
func failed(doing string) error {
	return store.NewError(store.Unavailable, "the provider's code failed while %s (string)", doing)
}

func TestCapabilities(t *testing.T) {
	cases := map[string]struct {
		reason string
		client store.Client
		want   []string
		size   int
	}{
		"Get":       {"A client that only reads can only read, one secret a call.", getter(echo), []string{"Read"}, 1},
		"All":       {"What a client implements is what it can do.", stub{size: 20}, []string{"Read", "BatchRead", "Find", "Check"}, 20},
		"NoSize":    {"A batch holds one at least.", stub{}, []string{"Read", "BatchRead", "Find", "Check"}, 1},
		"LessBatch": {"Interfaces are independent.", connect(t, fake.New(fake.Without(store.CapabilityBatch))), []string{"Read", "Find", "Check"}, 1},
		"LessFind":  {"Interfaces are independent.", connect(t, fake.New(fake.Without(store.CapabilityFind))), []string{"Read", "BatchRead", "Check"}, 20},
		"LessCheck": {"Interfaces are independent.", connect(t, fake.New(fake.Without(store.CapabilityCheck))), []string{"Read", "BatchRead", "Find"}, 20},
		"OnlyBatch": {"Interfaces are independent.", connect(t, fake.New(fake.Without(store.CapabilityFind, store.CapabilityCheck))), []string{"Read", "BatchRead"}, 20},
		"OnlyFind":  {"Interfaces are independent.", connect(t, fake.New(fake.Without(store.CapabilityBatch, store.CapabilityCheck))), []string{"Read", "Find"}, 1},
		"OnlyCheck": {"Interfaces are independent.", connect(t, fake.New(fake.Without(store.CapabilityBatch, store.CapabilityFind))), []string{"Read", "Check"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, store.Capabilities(tc.client)); diff != "" {
				t.Errorf("%s\nCapabilities(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.size, store.BatchSize(tc.client)); diff != "" {
				t.Errorf("%s\nBatchSize(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func connect(t *testing.T, b *fake.Backend) store.Client {
	t.Helper()
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGetBatch(t *testing.T) {
	gone := store.NewError(store.NotFound, "gone")
	short := store.NewError(store.Unavailable, "the provider answered for 1 of 2 secrets")
	long := store.NewError(store.Unavailable, "the provider answered for 3 of 2 secrets")
	cases := map[string]struct {
		reason string
		client store.Client
		want   []store.Result
	}{
		"Batcher": {
			reason: "A client that can batch is asked once.",
			client: stub{batch: func(refs []store.Ref) []store.Result { return values(refs[0].Key, refs[1].Key) }},
			want:   values("a", "b"),
		},
		"Fallback": {
			reason: "A client that cannot is asked for one after another; one that fails does not fail the others.",
			client: getter(func(ctx context.Context, ref store.Ref) (store.Value, error) {
				if ref.Key == "a" {
					return store.Value{}, gone
				}
				return echo(ctx, ref)
			}),
			want: append([]store.Result{{Err: gone}}, values("b")...),
		},
		"FallbackPanics": {
			reason: "A panic for one secret is an error of that secret.",
			client: getter(func(ctx context.Context, ref store.Ref) (store.Value, error) {
				if ref.Key == "a" {
					panic(secret)
				}
				return echo(ctx, ref)
			}),
			want: append([]store.Result{{Err: failed("reading")}}, values("b")...),
		},
		"EntryFails": {
			reason: "Errors of entries are passed on.",
			client: stub{batch: func([]store.Ref) []store.Result {
				return append(values("a"), store.Result{Err: gone})
			}},
			want: append(values("a"), store.Result{Err: gone}),
		},
		"TooFew": {
			reason: "Results that cannot be told apart prove nothing, not even for those that are there.",
			client: stub{batch: func([]store.Ref) []store.Result { return values("a") }},
			want:   []store.Result{{Err: short}, {Err: short}},
		},
		"TooMany": {
			reason: "Nor do results that nobody asked for.",
			client: stub{batch: func([]store.Ref) []store.Result { return values("a", "b", "c") }},
			want:   []store.Result{{Err: long}, {Err: long}},
		},
		"Panics": {
			reason: "A panic proves nothing, and its value stays hidden.",
			client: stub{batch: func([]store.Ref) []store.Result { panic(secret) }},
			want:   []store.Result{{Err: failed("reading a batch")}, {Err: failed("reading a batch")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := store.GetBatch(t.Context(), "Test", tc.client, refs("a", "b"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGet(t *testing.T) {
	cases := map[string]struct {
		reason string
		client getter
		want   store.Value
		err    error
	}{
		"Found": {
			reason: "What the client reads is returned as it is.",
			client: echo,
			want:   store.Value{Key: "a", Data: []byte("a"), Version: "1"},
		},
		"Fails": {
			reason: "So is its error, for callers look into it.",
			client: func(context.Context, store.Ref) (store.Value, error) { return store.Value{}, errBoom },
			err:    errBoom,
		},
		"Panics": {
			reason: "A panic proves nothing, and its value stays hidden.",
			client: func(context.Context, store.Ref) (store.Value, error) { panic(secret) },
			err:    failed("reading"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := store.Get(t.Context(), "Test", tc.client, store.Ref{Key: "a"})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGet(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.err, err, equateErrors()); diff != "" {
				t.Errorf("%s\nGet(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

// equateErrors compares Errors by content and others by identity.
func equateErrors() cmp.Option {
	return cmp.FilterValues(func(a, b error) bool {
		var x, y *store.Error
		return !stderrors.As(a, &x) || !stderrors.As(b, &y)
	}, cmpopts.EquateErrors())
}

func TestFind(t *testing.T) {
	listed := func(keys ...string) iter.Seq2[store.Value, error] {
		return func(yield func(store.Value, error) bool) {
			for _, r := range values(keys...) {
				if !yield(r.Value, nil) {
					return
				}
			}
		}
	}
	cases := map[string]struct {
		reason string
		client store.Client
		want   []store.Result
	}{
		"Finder": {
			reason: "All that the client finds is passed on.",
			client: stub{find: listed("a", "b")},
			want:   values("a", "b"),
		},
		"Nothing": {
			reason: "Nothing found is an answer.",
			client: stub{find: listed()},
		},
		"Unsupported": {
			reason: "A client that cannot find says so, never with an empty list.",
			client: getter(echo),
			want:   []store.Result{{Err: stderrors.ErrUnsupported}},
		},
		"Fails": {
			reason: "An error ends the list, also where the client goes on.",
			client: stub{find: func(yield func(store.Value, error) bool) {
				_ = yield(values("a")[0].Value, nil) && yield(store.Value{}, errBoom) && yield(values("b")[0].Value, nil)
			}},
			want: append(values("a"), store.Result{Err: errBoom}),
		},
		"Panics": {
			reason: "A panic breaks the list off, which must show; its value stays hidden.",
			client: stub{find: func(yield func(store.Value, error) bool) {
				if yield(values("a")[0].Value, nil) {
					panic(secret)
				}
			}},
			want: append(values("a"), store.Result{Err: failed("finding")}),
		},
		"PanicsAtOnce": {
			reason: "A panic before the first result must not look like an empty list.",
			client: stub{find: func(func(store.Value, error) bool) { panic(secret) }},
			want:   []store.Result{{Err: failed("finding")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []store.Result
			for v, err := range store.Find(t.Context(), "Test", tc.client, store.Query{}) {
				got = append(got, store.Result{Value: v, Err: err})
			}
			if diff := cmp.Diff(tc.want, got, equateErrors()); diff != "" {
				t.Errorf("%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFindStopped(t *testing.T) {
	ended := false
	seq := func(yield func(store.Value, error) bool) {
		defer func() { ended = true }()
		for yield(store.Value{Key: "a"}, nil) {
			continue
		}
	}
	for _, err := range store.Find(t.Context(), "Test", stub{find: seq}, store.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if !ended {
		t.Error("the client's list goes on after the caller stopped")
	}
}

func TestFindCallerPanics(t *testing.T) {
	// Only what the provider's code does is caught. A defect of the caller must not vanish.
	defer func() {
		if recover() == nil {
			t.Error("a panic of the caller's loop was swallowed")
		}
	}()
	seq := func(yield func(store.Value, error) bool) { yield(store.Value{Key: "a"}, nil) }
	for _, err := range store.Find(t.Context(), "Test", stub{find: seq}, store.Query{}) {
		t.Log(err)
		panic("caller")
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		client store.Client
		want   error
	}{
		"OK":      {"A client that works says so.", stub{check: func() error { return nil }}, nil},
		"Fails":   {"One that does not says why.", stub{check: func() error { return errBoom }}, errBoom},
		"Unknown": {"One that cannot tell is taken to work.", getter(echo), nil},
		"Panics":  {"A panic proves nothing, and its value stays hidden.", stub{check: func() error { panic(secret) }}, failed("checking")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := store.Check(t.Context(), "Test", tc.client)
			if diff := cmp.Diff(tc.want, err, equateErrors()); diff != "" {
				t.Errorf("%s\nCheck(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClose(t *testing.T) {
	if err := store.Close(getter(echo)); err != nil {
		t.Errorf("a client that holds nothing is closed without error, got %v", err)
	}
	if err := store.Close(stub{close: func() error { return errBoom }}); !errors.Is(err, errBoom) {
		t.Errorf("Close(...): error %v, want %v", err, errBoom)
	}
}

func TestMetrics(t *testing.T) {
	const kind = "TestMetrics"
	gone := func(context.Context, store.Ref) (store.Value, error) {
		return store.Value{}, store.NewError(store.NotFound, "gone")
	}
	panics := func(context.Context, store.Ref) (store.Value, error) { panic(secret) }
	before := callsOf(t, kind)
	for _, g := range []getter{echo, echo, gone, panics} {
		_, _ = store.Get(t.Context(), kind, g, store.Ref{Key: "shop/db"})
	}
	_ = store.GetBatch(t.Context(), kind, stub{batch: func([]store.Ref) []store.Result {
		return append(values("a"), store.Result{Err: store.NewError(store.NotFound, "gone")}, store.Result{Err: errBoom})
	}}, refs("a", "b", "c"))

	want := map[string]float64{
		"Get ok": 2, "Get NotFound": 1, "Get Unavailable": 1,
		"GetBatch Unavailable": 1, // the worst of its entries
	}
	got := callsOf(t, kind)
	for name, n := range before {
		got[name] -= n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directsecrets_provider_calls_total: -want, +got:\n%s", diff)
	}
}

// callsOf returns the counters of a kind, by call and result. No metric may show a key.
func callsOf(t *testing.T, kind string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
				if strings.Contains(l.GetValue(), "shop/db") {
					t.Errorf("%s has a label %s with a key", f.GetName(), l.GetName())
				}
			}
			if f.GetName() == "directsecrets_provider_calls_total" && labels["kind"] == kind {
				counts[labels["call"]+" "+labels["result"]] = m.GetCounter().GetValue()
			}
		}
	}
	return counts
}
