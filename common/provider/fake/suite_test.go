package fake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// good is a client of the fake with every interface.
type good interface {
	provider.Batcher
	provider.Finder
	provider.Checker
}

// A broken client works like a good one, except for the functions that a test replaces.
type broken struct {
	good
	get   func(ctx context.Context, ref provider.Ref) (provider.Value, error)
	batch func(ctx context.Context, refs []provider.Ref) []provider.Result
	find  func(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error]
	check func(ctx context.Context) error
}

func (b broken) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	if b.get != nil {
		return b.get(ctx, ref)
	}
	return b.good.Get(ctx, ref)
}

func (b broken) GetBatch(ctx context.Context, refs []provider.Ref) []provider.Result {
	if b.batch != nil {
		return b.batch(ctx, refs)
	}
	return b.good.GetBatch(ctx, refs)
}

func (b broken) Find(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
	if b.find != nil {
		return b.find(ctx, q)
	}
	return b.good.Find(ctx, q)
}

func (b broken) Check(ctx context.Context) error {
	if b.check != nil {
		return b.check(ctx)
	}
	return b.good.Check(ctx)
}

// getting changes the result of Get and GetBatch.
func getting(f func(ref provider.Ref, v provider.Value, err error) (provider.Value, error)) func(good) broken {
	return func(g good) broken {
		b := broken{good: g}
		b.get = func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
			v, err := g.Get(ctx, ref)
			return f(ref, v, err)
		}
		b.batch = func(ctx context.Context, refs []provider.Ref) []provider.Result {
			results := g.GetBatch(ctx, refs)
			for i, r := range results {
				results[i].Value, results[i].Err = f(refs[i], r.Value, r.Err)
			}
			return results
		}
		return b
	}
}

// asking makes Get and GetBatch read another key.
func asking(other func(key string) string) func(good) broken {
	return func(g good) broken {
		return broken{
			good: g,
			get: func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
				key := ref.Key
				ref.Key = other(key)
				v, err := g.Get(ctx, ref)
				v.Key = key
				return v, err
			},
			batch: func(ctx context.Context, refs []provider.Ref) []provider.Result {
				others := slices.Clone(refs)
				for i := range others {
					others[i].Key = other(others[i].Key)
				}
				results := g.GetBatch(ctx, others)
				for i := range results {
					results[i].Value.Key = refs[i].Key
				}
				return results
			},
		}
	}
}

func cutAt(chars string) func(key string) string {
	return func(key string) string {
		if i := strings.IndexAny(key, chars); i >= 0 {
			return key[:i]
		}
		return key
	}
}

func keep(good func(rune) bool) func(key string) string {
	return func(key string) string {
		return strings.Map(func(r rune) rune {
			if good(r) && r != utf8.RuneError {
				return r
			}
			return -1
		}, key)
	}
}

func replaced(pairs ...string) func(key string) string { return strings.NewReplacer(pairs...).Replace }

// batching changes the answer to GetBatch.
func batching(f func(refs []provider.Ref, results []provider.Result) []provider.Result) func(good) broken {
	return func(g good) broken {
		return broken{good: g, batch: func(ctx context.Context, refs []provider.Ref) []provider.Result {
			return f(refs, g.GetBatch(ctx, refs))
		}}
	}
}

type results = iter.Seq2[provider.Value, error]

// values changes the values of Get and GetBatch.
func values(f func(v *provider.Value)) func(good) broken {
	return getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) { f(&v); return v, err })
}

// readErrors changes the errors of Get and GetBatch.
func readErrors(f func(ref provider.Ref, err error) error) func(good) broken {
	return getting(func(ref provider.Ref, v provider.Value, err error) (provider.Value, error) {
		if err != nil {
			err = f(ref, err)
		}
		return v, err
	})
}

// lost turns errors of a class into NotFound.
func lost(c provider.Class) func(good) broken {
	return readErrors(func(ref provider.Ref, err error) error {
		if provider.ClassOf(err) == c {
			return provider.NewError(provider.NotFound, "secret %q does not exist", ref.Key)
		}
		return err
	})
}

// querying changes the query of Find.
func querying(f func(q *provider.Query)) func(good) broken {
	return func(g good) broken {
		return broken{good: g, find: func(ctx context.Context, q provider.Query) results { f(&q); return g.Find(ctx, q) }}
	}
}

// finding replaces the results of Find.
func finding(f func(found results, yield func(provider.Value, error) bool)) func(good) broken {
	return func(g good) broken {
		return broken{good: g, find: func(ctx context.Context, q provider.Query) results {
			found := g.Find(ctx, q)
			return func(yield func(provider.Value, error) bool) { f(found, yield) }
		}}
	}
}

// checking replaces Check.
func checking(f func(ctx context.Context, g good) error) func(good) broken {
	return func(g good) broken {
		return broken{good: g, check: func(ctx context.Context) error { return f(ctx, g) }}
	}
}

// defects are possible errors of a client, with the checks that must fail.
var defects = map[string]struct {
	reason string
	spoil  func(good) broken
	want   []string
}{
	"DeniedIsNotFound": {
		"A denied read that is reported as missing would delete keys.", lost(provider.Denied),
		[]string{"read/failure", "read/failure-of-missing", "read/failure-of-one", "read/wrong-credentials", "batch/mixed", "batch/failure", "batch/wrong-credentials"},
	},
	"ThrottledIsNotFound": {
		"A throttled read that is reported as missing would delete keys.", lost(provider.Throttled), []string{"read/failure", "batch/failure", "batch/failure-of-one"},
	},
	"UnavailableIsNotFound": {
		"An unavailable provider, a dropped entry or an ended context that is reported as missing would delete keys.", lost(provider.Unavailable),
		[]string{"read/failure", "read/hang", "batch/failure", "batch/dropped", "batch/hang"},
	},
	"ClassLost": {
		"Errors without a class cannot be distinguished by the operator.", readErrors(func(provider.Ref, error) error { return errors.New("boom") }),
		[]string{"read/missing", "read/missing-version", "read/deleted", "read/failure", "batch/mixed"},
	},
	"ErrorShowsValue": {
		"The message of an Error is shown to users, so it must not contain a value.",
		readErrors(func(_ provider.Ref, err error) error {
			return provider.NewError(provider.ClassOf(err), "cannot use %s", `{"c4n4ry":"a"}`)
		}),
		[]string{"read/missing", "batch/mixed"},
	},
	"Trimmed": {
		"A value must not be trimmed.", values(func(v *provider.Value) { v.Data = []byte(strings.TrimSpace(string(v.Data))) }), []string{"read/text"},
	},
	"TextOnly": {
		"Binary secrets are not UTF-8.", values(func(v *provider.Value) { v.Data = []byte(strings.ToValidUTF8(string(v.Data), "?")) }), []string{"read/binary"},
	},
	"Truncated": {"Large values must be complete.", values(func(v *provider.Value) { v.Data = v.Data[:min(len(v.Data), 4096)] }), []string{"read/large"}},
	"NoVersion": {
		"status.sources needs the version that was read.", values(func(v *provider.Value) { v.Version = "" }), []string{"read/version", "batch/version"},
	},
	"OtherKey": {
		"A value must have the provider's key.", values(func(v *provider.Value) { v.Key = strings.TrimPrefix(v.Key, "/fake/") }),
		[]string{"read/json", "batch/single"},
	},
	"NoMetadata": {"Requested metadata must be returned.", values(func(v *provider.Value) { v.Metadata = nil }), []string{"read/metadata", "batch/metadata"}},
	"NilMetadata": {
		"Empty metadata is an answer, and must differ from metadata that was not requested.",
		values(func(v *provider.Value) {
			if len(v.Metadata) == 0 {
				v.Metadata = nil
			}
		}),
		[]string{"read/metadata"},
	},
	"VersionIgnored": {
		"A client that always reads the current version ignores the requested version.",
		func(g good) broken {
			return broken{good: g, get: func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
				ref.Version = ""
				return g.Get(ctx, ref)
			}}
		},
		[]string{"read/version", "read/missing-version"},
	},
	"CachedForEver": {
		"A client that caches values never sees a change, a deletion or a failure.",
		func(g good) broken {
			kept := map[provider.Ref]provider.Value{}
			return broken{good: g, get: func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
				if v, ok := kept[ref]; ok {
					return v, nil
				}
				v, err := g.Get(ctx, ref)
				if err == nil {
					kept[ref] = v
				}
				return v, err
			}}
		},
		// The cached bytes are those of the caller, so overwriting them shows at once.
		[]string{"read/json", "read/version", "read/deleted"},
	},
	"ContextIgnored": {
		"A call that continues after its context has ended blocks a worker.",
		func(g good) broken {
			return broken{
				good: g,
				get: func(_ context.Context, ref provider.Ref) (provider.Value, error) {
					return g.Get(context.Background(), ref)
				},
				batch: func(_ context.Context, refs []provider.Ref) []provider.Result {
					return g.GetBatch(context.Background(), refs)
				},
				find:  func(_ context.Context, q provider.Query) results { return g.Find(context.Background(), q) },
				check: func(context.Context) error { return g.Check(context.Background()) },
			}
		},
		[]string{"read/hang", "batch/hang", "find/hang", "check/hang"},
	},
	"KeyCleaned": {
		"A path that is cleaned can lead to another secret.", asking(path.Clean),
		[]string{"names/dot", "names/dot-dot", "names/double-slash", "names/leading-slash", "names/trailing-slash"},
	},
	"KeyDecoded": {
		"A key that is put into a URL without escaping is decoded.",
		asking(func(key string) string {
			if k, err := url.PathUnescape(key); err == nil {
				return k
			}
			return key
		}),
		[]string{"names/encoded", "names/encoded-slash", "names/encoded-nul"},
	},
	"KeyCut": {
		"A key that is put into a URL without escaping ends where the path ends.", asking(cutAt("?#;\x00")),
		[]string{"names/query", "names/fragment", "names/parameter", "names/nul"},
	},
	"KeyWithoutSpace": {
		"Removed white space makes two keys equal.", asking(keep(func(r rune) bool { return !unicode.IsSpace(r) })),
		[]string{"names/space", "names/space-before", "names/space-after", "names/newline"},
	},
	"KeyPrintable": {
		"Other removed characters make two keys equal.", asking(keep(unicode.IsPrint)),
		[]string{"names/control", "names/not-utf8", "names/invisible", "names/newline"},
	},
	"KeyASCII": {
		"Letters that are not ASCII must be kept.", asking(keep(func(r rune) bool { return r < utf8.RuneSelf })),
		[]string{"names/unicode", "names/full-width", "names/composed", "names/decomposed"},
	},
	"KeyNormalised": {
		"Unicode normalisation makes several keys equal.", asking(replaced("ｖ", "v", "i\u0301", "\u00ed")),
		[]string{"names/full-width", "names/decomposed", "names/composed"},
	},
	"KeyLowerCase": {"Ignored case makes two keys equal.", asking(strings.ToLower), []string{"names/upper-case"}},
	"KeyForWindows": {
		"Backslashes must be kept.", asking(func(key string) string { return path.Clean(strings.ReplaceAll(key, `\`, "/")) }), []string{"names/backslash"},
	},
	"KeyIsPattern": {"A key is not a pattern.", asking(replaced("v*", "victim")), []string{"names/wildcard"}},
	"KeyShortened": {
		"A long key must not be cut.", asking(func(key string) string { return key[:min(len(key), len("/fake/names-long/")+200)] }), []string{"names/long"},
	},
	"OddIsUnavailable": {
		"A key that cannot exist must not be Unavailable, because a retry does not help.",
		getting(func(ref provider.Ref, v provider.Value, err error) (provider.Value, error) {
			if strings.Contains(ref.Key, "%") {
				return provider.Value{}, provider.NewError(provider.Unavailable, "cannot ask for that")
			}
			return v, err
		}),
		[]string{"names/encoded", "names/encoded-slash"},
	},
	"EntryDropped": {
		"Results must have the order of the refs.", batching(func(_ []provider.Ref, results []provider.Result) []provider.Result { return results[1:] }),
		[]string{"batch/single", "batch/full", "batch/mixed"},
	},
	"Reordered": {
		"A result in the wrong place is the secret of another ref.",
		batching(func(_ []provider.Ref, results []provider.Result) []provider.Result {
			slices.SortStableFunc(results, func(a, b provider.Result) int { return strings.Compare(a.Value.Key, b.Value.Key) })
			return results
		}),
		[]string{"batch/order", "batch/full", "batch/mixed"},
	},
	"RefsReordered": {
		"The caller owns the refs, so a client must not change them.",
		func(g good) broken {
			return broken{good: g, batch: func(ctx context.Context, refs []provider.Ref) []provider.Result {
				slices.SortFunc(refs, func(a, b provider.Ref) int { return strings.Compare(a.Key, b.Key) })
				return g.GetBatch(ctx, refs)
			}}
		},
		[]string{"batch/order", "batch/full"},
	},
	"LackingIsNotFound": {
		"A missing entry of an answer does not mean that the secret is missing.",
		batching(func(refs []provider.Ref, results []provider.Result) []provider.Result {
			for i, r := range results {
				if r.Err != nil && strings.Contains(r.Err.Error(), "lacks") {
					results[i].Err = provider.NewError(provider.NotFound, "secret %q does not exist", refs[i].Key)
				}
			}
			return results
		}),
		[]string{"batch/dropped"},
	},
	"OneFailsAll": {
		"One denied entry must not affect the others.",
		batching(func(_ []provider.Ref, results []provider.Result) []provider.Result {
			for _, r := range results {
				if r.Err != nil {
					return slices.Repeat([]provider.Result{{Err: r.Err}}, len(results))
				}
			}
			return results
		}),
		[]string{"batch/mixed", "batch/failure-of-one", "batch/version"},
	},
	"ShortListOnError": {
		"A list that ends without its error would be taken as complete.",
		finding(func(found results, yield func(provider.Value, error) bool) {
			for v, err := range found {
				if err != nil || !yield(v, nil) {
					return
				}
			}
		}),
		[]string{"find/failure", "find/failure-midway", "find/dropped", "find/hang", "find/wrong-credentials"},
	},
	"GoesOnAfterError": {
		"Results after an error would be taken as part of the list.",
		finding(func(found results, yield func(provider.Value, error) bool) {
			for v, err := range found {
				if !yield(v, err) {
					return
				}
				if err != nil {
					yield(provider.Value{Key: "/fake/more"}, nil)
				}
			}
		}),
		[]string{"find/failure", "find/failure-midway"},
	},
	"FirstPageOnly": {
		"The first page of a provider is not the whole list.",
		finding(func(found results, yield func(provider.Value, error) bool) {
			n := 0
			for v, err := range found {
				if n++; n > 100 || !yield(v, err) {
					return
				}
			}
		}),
		[]string{"find/many", "find/failure-midway"},
	},
	"Twice": {
		"Overlapping pages yield secrets twice.",
		finding(func(found results, yield func(provider.Value, error) bool) {
			for v, err := range found {
				if !yield(v, err) || err == nil && !yield(v, err) {
					return
				}
			}
		}),
		[]string{"find/name", "find/many"},
	},
	"NoStop": {
		"A list that cannot be stopped panics in the caller's loop.",
		finding(func(found results, yield func(provider.Value, error) bool) {
			stopped := false
			for v, err := range found {
				stopped = stopped || !yield(v, err)
			}
			if stopped {
				yield(provider.Value{}, nil)
			}
		}),
		[]string{"find/stop"},
	},
	"NameIgnored": {
		"The name of a query must not be ignored.", querying(func(q *provider.Query) { q.Name = nil }), []string{"find/name", "find/nothing", "find/combined"},
	},
	"TagsIgnored": {"The tags of a query must not be ignored.", querying(func(q *provider.Query) { q.Tags = nil }), []string{"find/tags", "find/combined"}},
	"AnyTag": {
		"All tags must match.",
		querying(func(q *provider.Query) {
			for _, k := range slices.Sorted(maps.Keys(q.Tags))[:min(len(q.Tags), 1)] {
				q.Tags = map[string]string{k: q.Tags[k]}
			}
		}),
		[]string{"find/tags"},
	},
	"PathIgnored": {"The path of a query must not be ignored.", querying(func(q *provider.Query) { q.Path = "" }), []string{"find/path"}},
	"PathIsText": {
		"A path must end at a separator.", querying(func(q *provider.Query) { q.Path = strings.TrimSuffix(q.Path, "/") }), []string{"find/path"},
	},
	"ChecksNothing": {
		"A check without a call proves nothing.", checking(func(ctx context.Context, _ good) error { return ctx.Err() }),
		[]string{"check/denied", "check/unavailable"},
	},
	"AllDenied": {
		"An unavailable provider is not a failed login.",
		checking(func(ctx context.Context, g good) error {
			if err := g.Check(ctx); err != nil {
				return provider.NewError(provider.Denied, "cannot log in")
			}
			return nil
		}),
		[]string{"check/unavailable", "check/hang"},
	},
}

func TestSuiteCatches(t *testing.T) {
	for name, tc := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := conformance.Fake(fake.New())
			h.EndTimeout = 300 * time.Millisecond
			h.Connect, h.ConnectDenied = breaks(h.Connect, tc.spoil), breaks(h.ConnectDenied, tc.spoil)
			caught := failing(t, h, tc.want)
			if diff := cmp.Diff(tc.want, caught); diff != "" {
				t.Errorf("%s\nchecks that fail: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func breaks(connect func(context.Context) (provider.Client, error), f func(good) broken) func(context.Context) (provider.Client, error) {
	return func(ctx context.Context) (provider.Client, error) {
		c, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		return f(c.(good)), nil
	}
}

// failing runs the checks with these names, and returns the names of those that fail.
func failing(t *testing.T, h conformance.Harness, names []string) (failed []string) {
	t.Helper()
	checks, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		i := slices.IndexFunc(checks, func(c conformance.Check) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("there is no check %s", name)
		}
		if notPanicking(func() error { return checks[i].Run(t.Context()) }) != nil {
			failed = append(failed, name)
		}
	}
	return failed
}

// notPanicking turns a panic into an error, because a check that panics has failed.
func notPanicking(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Errorf("panic: %v", r)
		}
	}()
	return f()
}

func TestEveryCheckCanFail(t *testing.T) {
	// A client whose calls all return wrong results must fail every check.
	wrong := func(g good) broken {
		bad := provider.NewError(provider.Conflict, "c4n4ry")
		return broken{
			good:  g,
			get:   func(context.Context, provider.Ref) (provider.Value, error) { return provider.Value{}, bad },
			batch: func(context.Context, []provider.Ref) []provider.Result { return nil },
			find: func(context.Context, provider.Query) iter.Seq2[provider.Value, error] {
				return func(yield func(provider.Value, error) bool) { yield(provider.Value{}, bad) }
			},
			check: func(context.Context) error { return bad },
		}
	}
	h := conformance.Fake(fake.New())
	h.Connect, h.ConnectDenied = breaks(h.Connect, wrong), breaks(h.ConnectDenied, wrong)
	checks, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if c.Run(t.Context()) == nil {
			t.Errorf("%s passes with a client whose results are all wrong", c.Name)
		}
	}
}

// An identified client has an Identity.
type identified struct {
	provider.Client

	identity func() (provider.Identity, error)
}

func (i identified) Identity(context.Context) (provider.Identity, error) { return i.identity() }

func TestBrokenIdentities(t *testing.T) {
	n := 0
	cases := map[string]struct {
		reason   string
		identity func() (provider.Identity, error)
	}{
		"Same":  {"An identity that is the same for all places would treat different places as one.", func() (provider.Identity, error) { return provider.Identity{Place: "p"}, nil }},
		"Each":  {"An identity that changes with each call is useless.", func() (provider.Identity, error) { n++; return provider.Identity{Place: fmt.Sprint(n)}, nil }},
		"Empty": {"An empty identity is an error.", func() (provider.Identity, error) { return provider.Identity{}, nil }},
		"Fails": {"A working client must have an identity.", func() (provider.Identity, error) { return provider.Identity{}, errors.New("boom") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := conformance.Fake(fake.New())
			identity := func(connect func(context.Context) (provider.Client, error)) func(context.Context) (provider.Client, error) {
				return func(ctx context.Context) (provider.Client, error) {
					c, err := connect(ctx)
					return identified{c, tc.identity}, err
				}
			}
			h.Connect, h.ConnectElsewhere = identity(h.Connect), identity(h.ConnectElsewhere)
			checks, err := conformance.Checks(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(checks, func(c conformance.Check) bool { return c.Name == "identity" })
			if i < 0 || checks[i].Run(t.Context()) == nil {
				t.Errorf("%s\nthe suite does not detect it", tc.reason)
			}
		})
	}
}

func TestJSONOnly(t *testing.T) {
	// A provider of JSON objects can change their format, and can refuse other values.
	respelt := getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
		var fields map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(v.Data, &fields)
		}
		if err == nil {
			v.Data, err = json.MarshalIndent(fields, " ", "\t")
		}
		return v, err
	})
	h := conformance.Fake(fake.New())
	h.JSONOnly = true
	h.Connect, h.ConnectDenied = breaks(h.Connect, respelt), breaks(h.ConnectDenied, respelt)
	conformance.Run(t, h)
}

func TestWithout(t *testing.T) {
	h := conformance.Fake(fake.New())
	all, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	h.Without = map[string]string{"find/tags": "this provider has no tags", "read/version": "nor versions", "transport": "nor a network"}
	rest, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if len(rest) != len(all)-2 {
		t.Errorf("%d checks without 2 of %d", len(rest), len(all))
	}
	for _, c := range rest {
		if _, ok := h.Without[c.Name]; ok {
			t.Errorf("%s is made although it is in Without", c.Name)
		}
	}
}

func TestSuiteReadsHarness(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*conformance.Harness)
		want   string
	}{
		"UnknownWithout": {
			reason: "A misspelt name in Without is an error.",
			change: func(h *conformance.Harness) { h.Without = map[string]string{"find/tag": "no tags"} },
			want:   `Harness.Without names "find/tag", which is no check`,
		},
		"UnknownGroup": {
			reason: "A misspelt group in Without is an error.",
			change: func(h *conformance.Harness) { h.Without = map[string]string{"network": "there is none"} },
			want:   `Harness.Without names "network", which is no check`,
		},
		"NoConnection": {
			reason: "A failed connect is an error.",
			change: func(h *conformance.Harness) {
				h.Connect = func(context.Context) (provider.Client, error) { return nil, errors.New("boom") }
			},
			want: "cannot connect: boom",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := conformance.Fake(fake.New())
			tc.change(&h)
			_, err := conformance.Checks(t.Context(), h)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s\nerror %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}
