package provider_test

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

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A getter is a client that can only read.
type getter func(ctx context.Context, ref provider.Ref) (provider.Value, error)

func (g getter) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	return g(ctx, ref)
}

// A stub implements every interface, with one function for each.
type stub struct {
	getter
	batch func(refs []provider.Ref) []provider.Result
	size  int
	find  iter.Seq2[provider.Value, error]
	check func() error
	close func() error
}

func (s stub) GetBatch(_ context.Context, refs []provider.Ref) []provider.Result {
	return s.batch(refs)
}
func (s stub) BatchSize() int              { return s.size }
func (s stub) Check(context.Context) error { return s.check() }
func (s stub) Close() error                { return s.close() }
func (s stub) Find(context.Context, provider.Query) iter.Seq2[provider.Value, error] {
	return s.find
}

// echo returns the key as the value.
func echo(_ context.Context, ref provider.Ref) (provider.Value, error) {
	return provider.Value{Key: ref.Key, Data: []byte(ref.Key), Version: "1"}, nil
}

func values(keys ...string) (results []provider.Result) {
	for _, k := range keys {
		v, _ := echo(context.Background(), provider.Ref{Key: k})
		results = append(results, provider.Result{Value: v})
	}
	return results
}

func refs(keys ...string) (refs []provider.Ref) {
	for _, k := range keys {
		refs = append(refs, provider.Ref{Key: k})
	}
	return refs
}

// failed returns the error for provider code that panics with a string.
func failed(doing string) error {
	return provider.NewError(provider.Unavailable, "the provider's code failed while %s (string)", doing)
}

func TestCapabilities(t *testing.T) {
	cases := map[string]struct {
		reason string
		client provider.Client
		want   []string
		size   int
	}{
		"Get":       {"A client with only Get reads one secret per call.", getter(echo), []string{"Read"}, 1},
		"All":       {"Each implemented interface is a capability.", stub{size: 20}, []string{"Read", "BatchRead", "Find", "Check"}, 20},
		"NoSize":    {"A batch has at least one secret.", stub{}, []string{"Read", "BatchRead", "Find", "Check"}, 1},
		"LessBatch": {"Interfaces are independent.", connect(t, fake.New(fake.Without(provider.CapabilityBatch))), []string{"Read", "Find", "Check"}, 1},
		"LessFind":  {"Interfaces are independent.", connect(t, fake.New(fake.Without(provider.CapabilityFind))), []string{"Read", "BatchRead", "Check"}, 20},
		"LessCheck": {"Interfaces are independent.", connect(t, fake.New(fake.Without(provider.CapabilityCheck))), []string{"Read", "BatchRead", "Find"}, 20},
		"OnlyBatch": {"Interfaces are independent.", connect(t, fake.New(fake.Without(provider.CapabilityFind, provider.CapabilityCheck))), []string{"Read", "BatchRead"}, 20},
		"OnlyFind":  {"Interfaces are independent.", connect(t, fake.New(fake.Without(provider.CapabilityBatch, provider.CapabilityCheck))), []string{"Read", "Find"}, 1},
		"OnlyCheck": {"Interfaces are independent.", connect(t, fake.New(fake.Without(provider.CapabilityBatch, provider.CapabilityFind))), []string{"Read", "Check"}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provider.Capabilities(tc.client)); diff != "" {
				t.Errorf("%s\nCapabilities(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.size, fake.Link("Test", tc.client).BatchSize()); diff != "" {
				t.Errorf("%s\nBatchSize(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func connect(t *testing.T, b *fake.Backend) provider.Client {
	t.Helper()
	c, err := b.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGetBatch(t *testing.T) {
	notFound := provider.NewError(provider.NotFound, "gone")
	short := provider.NewError(provider.Unavailable, "the provider returned 1 of 2 secrets")
	long := provider.NewError(provider.Unavailable, "the provider returned 3 of 2 secrets")
	cases := map[string]struct {
		reason string
		client provider.Client
		want   []provider.Result
	}{
		"Batcher": {
			reason: "A Batcher gets one call.",
			client: stub{batch: func(refs []provider.Ref) []provider.Result { return values(refs[0].Key, refs[1].Key) }},
			want:   values("a", "b"),
		},
		"Fallback": {
			reason: "Other clients get one call for each secret, and one error does not affect the others.",
			client: getter(func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
				if ref.Key == "a" {
					return provider.Value{}, notFound
				}
				return echo(ctx, ref)
			}),
			want: append([]provider.Result{{Err: notFound}}, values("b")...),
		},
		"FallbackPanics": {
			reason: "A panic for one secret is an error of that secret.",
			client: getter(func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
				if ref.Key == "a" {
					panic(secret)
				}
				return echo(ctx, ref)
			}),
			want: append([]provider.Result{{Err: failed("reading")}}, values("b")...),
		},
		"EntryFails": {
			reason: "Errors of entries are passed on.",
			client: stub{batch: func([]provider.Ref) []provider.Result {
				return append(values("a"), provider.Result{Err: notFound})
			}},
			want: append(values("a"), provider.Result{Err: notFound}),
		},
		"TooFew": {
			reason: "Missing results make all results Unavailable, because they cannot be assigned.",
			client: stub{batch: func([]provider.Ref) []provider.Result { return values("a") }},
			want:   []provider.Result{{Err: short}, {Err: short}},
		},
		"TooMany": {
			reason: "Extra results make all results Unavailable, because they cannot be assigned.",
			client: stub{batch: func([]provider.Ref) []provider.Result { return values("a", "b", "c") }},
			want:   []provider.Result{{Err: long}, {Err: long}},
		},
		"Panics": {
			reason: "A panic is Unavailable, and its value is not shown.",
			client: stub{batch: func([]provider.Ref) []provider.Result { panic(secret) }},
			want:   []provider.Result{{Err: failed("reading a batch")}, {Err: failed("reading a batch")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fake.Link("Test", tc.client).GetBatch(t.Context(), refs("a", "b"))
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
		want   provider.Value
		err    error
	}{
		"Found": {
			reason: "The client's result is returned unchanged.",
			client: echo,
			want:   provider.Value{Key: "a", Data: []byte("a"), Version: "1"},
		},
		"Fails": {
			reason: "The client's error is returned unchanged, so that callers can inspect it.",
			client: func(context.Context, provider.Ref) (provider.Value, error) { return provider.Value{}, errBoom },
			err:    errBoom,
		},
		"Panics": {
			reason: "A panic is Unavailable, and its value is not shown.",
			client: func(context.Context, provider.Ref) (provider.Value, error) { panic(secret) },
			err:    failed("reading"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := fake.Link("Test", tc.client).Get(t.Context(), provider.Ref{Key: "a"})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGet(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.err, err, equateErrors()); diff != "" {
				t.Errorf("%s\nGet(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

// equateErrors compares Errors by content and other errors by identity.
func equateErrors() cmp.Option {
	return cmp.FilterValues(func(a, b error) bool {
		var x, y *provider.Error
		return !stderrors.As(a, &x) || !stderrors.As(b, &y)
	}, cmpopts.EquateErrors())
}

func TestFind(t *testing.T) {
	listed := func(keys ...string) iter.Seq2[provider.Value, error] {
		return func(yield func(provider.Value, error) bool) {
			for _, r := range values(keys...) {
				if !yield(r.Value, nil) {
					return
				}
			}
		}
	}
	cases := map[string]struct {
		reason string
		client provider.Client
		want   []provider.Result
	}{
		"Finder": {
			reason: "All found secrets are returned.",
			client: stub{find: listed("a", "b")},
			want:   values("a", "b"),
		},
		"Nothing": {
			reason: "An empty list is an answer.",
			client: stub{find: listed()},
		},
		"Unsupported": {
			reason: "A client that is not a Finder returns an error, never an empty list.",
			client: getter(echo),
			want:   []provider.Result{{Err: stderrors.ErrUnsupported}},
		},
		"Fails": {
			reason: "An error ends the list, even if the client continues.",
			client: stub{find: func(yield func(provider.Value, error) bool) {
				_ = yield(values("a")[0].Value, nil) && yield(provider.Value{}, errBoom) && yield(values("b")[0].Value, nil)
			}},
			want: append(values("a"), provider.Result{Err: errBoom}),
		},
		"Panics": {
			reason: "A panic ends the list with an error, and its value is not shown.",
			client: stub{find: func(yield func(provider.Value, error) bool) {
				if yield(values("a")[0].Value, nil) {
					panic(secret)
				}
			}},
			want: append(values("a"), provider.Result{Err: failed("finding")}),
		},
		"PanicsAtOnce": {
			reason: "A panic before the first result is an error, not an empty list.",
			client: stub{find: func(func(provider.Value, error) bool) { panic(secret) }},
			want:   []provider.Result{{Err: failed("finding")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []provider.Result
			for v, err := range fake.Link("Test", tc.client).Find(t.Context(), provider.Query{}) {
				got = append(got, provider.Result{Value: v, Err: err})
			}
			if diff := cmp.Diff(tc.want, got, equateErrors()); diff != "" {
				t.Errorf("%s\nFind(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFindStopped(t *testing.T) {
	ended := false
	seq := func(yield func(provider.Value, error) bool) {
		defer func() { ended = true }()
		for yield(provider.Value{Key: "a"}, nil) {
			continue
		}
	}
	for _, err := range fake.Link("Test", stub{find: seq}).Find(t.Context(), provider.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if !ended {
		t.Error("the client's list continues after the caller has stopped")
	}
}

func TestFindCallerPanics(t *testing.T) {
	// Only panics of the provider's code are recovered. A bug of the caller must be visible.
	defer func() {
		if recover() == nil {
			t.Error("a panic of the caller's loop was recovered")
		}
	}()
	seq := func(yield func(provider.Value, error) bool) { yield(provider.Value{Key: "a"}, nil) }
	for _, err := range fake.Link("Test", stub{find: seq}).Find(t.Context(), provider.Query{}) {
		t.Log(err)
		panic("caller")
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		client provider.Client
		want   error
	}{
		"OK":      {"A client that works has no error.", stub{check: func() error { return nil }}, nil},
		"Fails":   {"The error of a check is returned.", stub{check: func() error { return errBoom }}, errBoom},
		"Unknown": {"A client that is not a Checker has no error.", getter(echo), nil},
		"Panics":  {"A panic is Unavailable, and its value is not shown.", stub{check: func() error { panic(secret) }}, failed("checking")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := fake.Link("Test", tc.client).Check(t.Context())
			if diff := cmp.Diff(tc.want, err, equateErrors()); diff != "" {
				t.Errorf("%s\nCheck(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClose(t *testing.T) {
	if err := provider.Close(getter(echo)); err != nil {
		t.Errorf("Close(...) of a client without Close: error %v, want none", err)
	}
	if err := provider.Close(stub{close: func() error { return errBoom }}); !errors.Is(err, errBoom) {
		t.Errorf("Close(...): error %v, want %v", err, errBoom)
	}
}

func TestMetrics(t *testing.T) {
	const kind = "TestMetrics"
	notFound := func(context.Context, provider.Ref) (provider.Value, error) {
		return provider.Value{}, provider.NewError(provider.NotFound, "gone")
	}
	panics := func(context.Context, provider.Ref) (provider.Value, error) { panic(secret) }
	before := callsOf(t, kind)
	for _, g := range []getter{echo, echo, notFound, panics} {
		_, _ = fake.Link(kind, g).Get(t.Context(), provider.Ref{Key: "shop/db"})
	}
	_ = fake.Link(kind, stub{batch: func([]provider.Ref) []provider.Result {
		return append(values("a"), provider.Result{Err: provider.NewError(provider.NotFound, "gone")}, provider.Result{Err: errBoom})
	}}).GetBatch(t.Context(), refs("a", "b", "c"))

	want := map[string]float64{
		"Get ok": 2, "Get NotFound": 1, "Get Unavailable": 1,
		"GetBatch Unavailable": 1, // The worst of its results counts.
	}
	got := callsOf(t, kind)
	for name, n := range before {
		got[name] -= n
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directsecrets_provider_calls_total: -want, +got:\n%s", diff)
	}
}

// callsOf returns the counters of a kind, by call and result. It fails the test if a metric shows a key.
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
