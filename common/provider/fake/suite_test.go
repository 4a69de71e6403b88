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

// good is what a client of the fake with every interface can do.
type good interface {
	provider.Batcher
	provider.Finder
	provider.Checker
}

// A broken client does what a good one does, except for what the test has it do.
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

// getting breaks what is read, be it by Get or by GetBatch.
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

// asking reads another key than was asked for, be it by Get or by GetBatch.
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

// batching breaks the answer to GetBatch.
func batching(f func(refs []provider.Ref, results []provider.Result) []provider.Result) func(good) broken {
	return func(g good) broken {
		return broken{good: g, batch: func(ctx context.Context, refs []provider.Ref) []provider.Result {
			return f(refs, g.GetBatch(ctx, refs))
		}}
	}
}

// finding breaks what Find yields, and what it is asked for.
func finding(ask func(provider.Query) provider.Query, f func(seq iter.Seq2[provider.Value, error]) iter.Seq2[provider.Value, error]) func(good) broken {
	return func(g good) broken {
		return broken{good: g, find: func(ctx context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
			return f(g.Find(ctx, ask(q)))
		}}
	}
}

func asAsked(q provider.Query) provider.Query { return q }

func whole(seq iter.Seq2[provider.Value, error]) iter.Seq2[provider.Value, error] { return seq }

// lost turns errors of a class into NotFound.
func lost(c provider.Class) func(provider.Ref, provider.Value, error) (provider.Value, error) {
	return func(ref provider.Ref, v provider.Value, err error) (provider.Value, error) {
		if err != nil && provider.ClassOf(err) == c {
			err = provider.NewError(provider.NotFound, "secret %q does not exist", ref.Key)
		}
		return v, err
	}
}

// quiet ends a list where it should yield an error.
func quiet(seq iter.Seq2[provider.Value, error]) iter.Seq2[provider.Value, error] {
	return func(yield func(provider.Value, error) bool) {
		for v, err := range seq {
			if err != nil || !yield(v, nil) {
				return
			}
		}
	}
}

// A defect is something that a client may do wrong.
type defect struct {
	reason string
	spoil  func(good) broken
	want   []string // checks that must fail
}

var defects = map[string]defect{
	"DeniedIsNotFound": {
		reason: "A denied read that is reported as missing would delete keys.",
		spoil:  getting(lost(provider.Denied)),
		want:   []string{"read/failure", "read/failure-of-missing", "read/failure-of-one", "read/wrong-credentials", "batch/mixed", "batch/failure", "batch/wrong-credentials"},
	},
	"ThrottledIsNotFound": {
		reason: "So would a throttled one.",
		spoil:  getting(lost(provider.Throttled)),
		want:   []string{"read/failure", "batch/failure", "batch/failure-of-one"},
	},
	"UnavailableIsNotFound": {
		reason: "So would a provider that is down, an entry that is lacking, or a context that ended.",
		spoil:  getting(lost(provider.Unavailable)),
		want:   []string{"read/failure", "read/hang", "batch/failure", "batch/dropped", "batch/hang"},
	},
	"ClassLost": {
		reason: "Errors without a class are all the same to the operator.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			if err != nil {
				err = errors.New("boom")
			}
			return v, err
		}),
		want: []string{"read/missing", "read/missing-version", "read/deleted", "read/failure", "batch/mixed"},
	},
	"ErrorShowsValue": {
		reason: "The message of an Error is shown to users.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			if err != nil {
				err = provider.NewError(provider.ClassOf(err), "cannot use %s", `{"c4n4ry":"a"}`)
			}
			return v, err
		}),
		want: []string{"read/missing", "batch/mixed"},
	},
	"Trimmed": {
		reason: "A value that is tidied up is not the value.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			v.Data = []byte(strings.TrimSpace(string(v.Data)))
			return v, err
		}),
		want: []string{"read/text"},
	},
	"TextOnly": {
		reason: "Binary secrets are not UTF-8.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			v.Data = []byte(strings.ToValidUTF8(string(v.Data), "?"))
			return v, err
		}),
		want: []string{"read/binary"},
	},
	"Truncated": {
		reason: "Large values arrive whole.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			v.Data = v.Data[:min(len(v.Data), 4096)]
			return v, err
		}),
		want: []string{"read/large"},
	},
	"NoVersion": {
		reason: "status.sources needs the version that was read.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			v.Version = ""
			return v, err
		}),
		want: []string{"read/version", "batch/version"},
	},
	"OtherKey": {
		reason: "A value tells its key as the provider spells it.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			v.Key = strings.TrimPrefix(v.Key, "/fake/")
			return v, err
		}),
		want: []string{"read/json", "batch/single"},
	},
	"NoMetadata": {
		reason: "Metadata that is asked for is delivered.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			v.Metadata = nil
			return v, err
		}),
		want: []string{"read/metadata", "batch/metadata"},
	},
	"NilMetadata": {
		reason: "That there are no tags is an answer, and not as if nobody had asked.",
		spoil: getting(func(_ provider.Ref, v provider.Value, err error) (provider.Value, error) {
			if len(v.Metadata) == 0 {
				v.Metadata = nil
			}
			return v, err
		}),
		want: []string{"read/metadata"},
	},
	"VersionIgnored": {
		reason: "A client that always reads the current version hides that an old one was asked for.",
		spoil: func(g good) broken {
			return broken{good: g, get: func(ctx context.Context, ref provider.Ref) (provider.Value, error) {
				ref.Version = ""
				return g.Get(ctx, ref)
			}}
		},
		want: []string{"read/version", "read/missing-version"},
	},
	"CachedForEver": {
		reason: "A client that keeps values never sees a change, a deletion or a failure.",
		spoil: func(g good) broken {
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
		// The kept bytes are the caller's, too, so it shows at once.
		want: []string{"read/json", "read/version", "read/deleted"},
	},
	"ContextIgnored": {
		reason: "A call that goes on after its context ended costs a worker.",
		spoil: func(g good) broken {
			return broken{
				good: g,
				get: func(_ context.Context, ref provider.Ref) (provider.Value, error) {
					return g.Get(context.Background(), ref)
				},
				batch: func(_ context.Context, refs []provider.Ref) []provider.Result {
					return g.GetBatch(context.Background(), refs)
				},
				find: func(_ context.Context, q provider.Query) iter.Seq2[provider.Value, error] {
					return g.Find(context.Background(), q)
				},
				check: func(context.Context) error { return g.Check(context.Background()) },
			}
		},
		want: []string{"read/hang", "batch/hang", "find/hang", "check/hang"},
	},
	"KeyCleaned": {
		reason: "A path that is cleaned may lead anywhere.",
		spoil:  asking(path.Clean),
		want:   []string{"names/dot", "names/dot-dot", "names/double-slash", "names/leading-slash", "names/trailing-slash"},
	},
	"KeyDecoded": {
		reason: "A key that is put into a URL as it is will be decoded.",
		spoil: asking(func(key string) string {
			if k, err := url.PathUnescape(key); err == nil {
				return k
			}
			return key
		}),
		want: []string{"names/encoded", "names/encoded-slash", "names/encoded-nul"},
	},
	"KeyCut": {
		reason: "Such a key also ends at what ends a path.",
		spoil:  asking(cutAt("?#;\x00")),
		want:   []string{"names/query", "names/fragment", "names/parameter", "names/nul"},
	},
	"KeyWithoutSpace": {
		reason: "White space that is dropped makes one secret of two.",
		spoil:  asking(keep(func(r rune) bool { return !unicode.IsSpace(r) })),
		want:   []string{"names/space", "names/space-before", "names/space-after", "names/newline"},
	},
	"KeyPrintable": {
		reason: "So do other characters that are dropped.",
		spoil:  asking(keep(unicode.IsPrint)),
		want:   []string{"names/control", "names/not-utf8", "names/invisible", "names/newline"},
	},
	"KeyASCII": {
		reason: "Letters of the world are no noise.",
		spoil:  asking(keep(func(r rune) bool { return r < utf8.RuneSelf })),
		want:   []string{"names/unicode", "names/full-width", "names/composed", "names/decomposed"},
	},
	"KeyNormalised": {
		reason: "Unicode's normal forms make one key of several.",
		spoil:  asking(replaced("ｖ", "v", "i\u0301", "\u00ed")),
		want:   []string{"names/full-width", "names/decomposed", "names/composed"},
	},
	"KeyLowerCase": {
		reason: "So does a case that is ignored.",
		spoil:  asking(strings.ToLower),
		want:   []string{"names/upper-case"},
	},
	"KeyForWindows": {
		reason: "Backslashes are characters like any other.",
		spoil:  asking(func(key string) string { return path.Clean(strings.ReplaceAll(key, `\`, "/")) }),
		want:   []string{"names/backslash"},
	},
	"KeyIsPattern": {
		reason: "A key names one secret.",
		spoil:  asking(replaced("v*", "victim")),
		want:   []string{"names/wildcard"},
	},
	"KeyShortened": {
		reason: "A long key is not the beginning of it.",
		spoil:  asking(func(key string) string { return key[:min(len(key), len("/fake/names-long/")+200)] }),
		want:   []string{"names/long"},
	},
	"OddIsUnavailable": {
		reason: "Who asks for a key that cannot be must learn that trying again is of no use.",
		spoil: getting(func(ref provider.Ref, v provider.Value, err error) (provider.Value, error) {
			if strings.Contains(ref.Key, "%") {
				return provider.Value{}, provider.NewError(provider.Unavailable, "cannot ask for that")
			}
			return v, err
		}),
		want: []string{"names/encoded", "names/encoded-slash"},
	},
	"EntryDropped": {
		reason: "Results stand for refs by their place.",
		spoil:  batching(func(_ []provider.Ref, results []provider.Result) []provider.Result { return results[1:] }),
		want:   []string{"batch/single", "batch/full", "batch/mixed"},
	},
	"Reordered": {
		reason: "A result in the wrong place is somebody else's secret.",
		spoil: batching(func(_ []provider.Ref, results []provider.Result) []provider.Result {
			slices.SortStableFunc(results, func(a, b provider.Result) int { return strings.Compare(a.Value.Key, b.Value.Key) })
			return results
		}),
		want: []string{"batch/order", "batch/full", "batch/mixed"},
	},
	"RefsReordered": {
		reason: "The refs belong to the caller.",
		spoil: func(g good) broken {
			return broken{good: g, batch: func(ctx context.Context, refs []provider.Ref) []provider.Result {
				slices.SortFunc(refs, func(a, b provider.Ref) int { return strings.Compare(a.Key, b.Key) })
				return g.GetBatch(ctx, refs)
			}}
		},
		want: []string{"batch/order", "batch/full"},
	},
	"LackingIsNotFound": {
		reason: "An answer without an entry does not say that the secret is missing.",
		spoil: batching(func(refs []provider.Ref, results []provider.Result) []provider.Result {
			for i, r := range results {
				if r.Err != nil && strings.Contains(r.Err.Error(), "lacks") {
					results[i].Err = provider.NewError(provider.NotFound, "secret %q does not exist", refs[i].Key)
				}
			}
			return results
		}),
		want: []string{"batch/dropped"},
	},
	"OneFailsAll": {
		reason: "One denied entry must not hold up the other nineteen.",
		spoil: batching(func(_ []provider.Ref, results []provider.Result) []provider.Result {
			for _, r := range results {
				if r.Err != nil {
					return slices.Repeat([]provider.Result{{Err: r.Err}}, len(results))
				}
			}
			return results
		}),
		want: []string{"batch/mixed", "batch/failure-of-one", "batch/version"},
	},
	"ShortListOnError": {
		reason: "A list that ends without its error is taken for complete.",
		spoil:  finding(asAsked, quiet),
		want:   []string{"find/failure", "find/failure-midway", "find/dropped", "find/hang", "find/wrong-credentials"},
	},
	"GoesOnAfterError": {
		reason: "What comes after an error may be taken for the rest of the list.",
		spoil: finding(asAsked, func(seq iter.Seq2[provider.Value, error]) iter.Seq2[provider.Value, error] {
			return func(yield func(provider.Value, error) bool) {
				for v, err := range seq {
					if !yield(v, err) {
						return
					}
					if err != nil {
						yield(provider.Value{Key: "/fake/more"}, nil)
					}
				}
			}
		}),
		want: []string{"find/failure", "find/failure-midway"},
	},
	"FirstPageOnly": {
		reason: "A provider's first page is not the list.",
		spoil: finding(asAsked, func(seq iter.Seq2[provider.Value, error]) iter.Seq2[provider.Value, error] {
			return func(yield func(provider.Value, error) bool) {
				n := 0
				for v, err := range seq {
					if n++; n > 100 || !yield(v, err) {
						return
					}
				}
			}
		}),
		want: []string{"find/many", "find/failure-midway"},
	},
	"Twice": {
		reason: "Pages that overlap yield secrets twice.",
		spoil: finding(asAsked, func(seq iter.Seq2[provider.Value, error]) iter.Seq2[provider.Value, error] {
			return func(yield func(provider.Value, error) bool) {
				for v, err := range seq {
					if !yield(v, err) || err == nil && !yield(v, err) {
						return
					}
				}
			}
		}),
		want: []string{"find/name", "find/many"},
	},
	"NoStop": {
		reason: "A list that cannot be stopped panics in the caller's loop.",
		spoil: finding(asAsked, func(seq iter.Seq2[provider.Value, error]) iter.Seq2[provider.Value, error] {
			return func(yield func(provider.Value, error) bool) {
				stopped := false
				for v, err := range seq {
					if stopped {
						continue
					}
					stopped = !yield(v, err)
				}
				if stopped {
					yield(provider.Value{}, nil)
				}
			}
		}),
		want: []string{"find/stop"},
	},
	"NameIgnored": {
		reason: "A query's name must be looked at.",
		spoil:  finding(func(q provider.Query) provider.Query { q.Name = nil; return q }, whole),
		want:   []string{"find/name", "find/nothing", "find/combined"},
	},
	"TagsIgnored": {
		reason: "A query's tags must be looked at.",
		spoil:  finding(func(q provider.Query) provider.Query { q.Tags = nil; return q }, whole),
		want:   []string{"find/tags", "find/combined"},
	},
	"AnyTag": {
		reason: "Tags must all match.",
		spoil: finding(func(q provider.Query) provider.Query {
			for _, k := range slices.Sorted(maps.Keys(q.Tags))[:min(len(q.Tags), 1)] {
				q.Tags = map[string]string{k: q.Tags[k]}
			}
			return q
		}, whole),
		want: []string{"find/tags"},
	},
	"PathIgnored": {
		reason: "A query's path must be looked at.",
		spoil:  finding(func(q provider.Query) provider.Query { q.Path = ""; return q }, whole),
		want:   []string{"find/path"},
	},
	"PathIsText": {
		reason: "A path ends at a separator.",
		spoil:  finding(func(q provider.Query) provider.Query { q.Path = strings.TrimSuffix(q.Path, "/"); return q }, whole),
		want:   []string{"find/path"},
	},
	"ChecksNothing": {
		reason: "A check that calls nothing proves nothing.",
		spoil: func(g good) broken {
			return broken{good: g, check: func(ctx context.Context) error { return ctx.Err() }}
		},
		want: []string{"check/denied", "check/unavailable"},
	},
	"AllDenied": {
		reason: "A provider that is down is not a failed login.",
		spoil: func(g good) broken {
			return broken{good: g, check: func(ctx context.Context) error {
				if err := g.Check(ctx); err != nil {
					return provider.NewError(provider.Denied, "cannot log in")
				}
				return nil
			}}
		},
		want: []string{"check/unavailable", "check/hang"},
	},
}

func TestSuiteCatches(t *testing.T) {
	for name, tc := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fake.Harness(fake.New())
			h.Patience = 300 * time.Millisecond
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

// failing runs the checks of these names, and returns the names of those that fail.
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

// notPanicking makes an error of a panic, for the check fails all the same.
func notPanicking(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Errorf("panic: %v", r)
		}
	}()
	return f()
}

func TestEveryCheckCanFail(t *testing.T) {
	// A client that answers every call wrongly must fail every check.
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
	h := fake.Harness(fake.New())
	h.Connect, h.ConnectDenied = breaks(h.Connect, wrong), breaks(h.ConnectDenied, wrong)
	checks, err := conformance.Checks(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if c.Run(t.Context()) == nil {
			t.Errorf("%s passes with a client that does nothing right", c.Name)
		}
	}
}

// An identified client says where its secrets live.
type identified struct {
	provider.Client

	says func() (provider.Identity, error)
}

func (i identified) Identity(context.Context) (provider.Identity, error) { return i.says() }

func TestBrokenIdentities(t *testing.T) {
	n := 0
	cases := map[string]struct {
		reason string
		says   func() (provider.Identity, error)
	}{
		"Same":  {"What says the same of all places takes one for another.", func() (provider.Identity, error) { return provider.Identity{Place: "p"}, nil }},
		"Each":  {"What differs with each call is of no use.", func() (provider.Identity, error) { n++; return provider.Identity{Place: fmt.Sprint(n)}, nil }},
		"Empty": {"What says nothing must not seem to.", func() (provider.Identity, error) { return provider.Identity{}, nil }},
		"Fails": {"A client that works knows.", func() (provider.Identity, error) { return provider.Identity{}, errors.New("boom") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := fake.Harness(fake.New())
			says := func(connect func(context.Context) (provider.Client, error)) func(context.Context) (provider.Client, error) {
				return func(ctx context.Context) (provider.Client, error) {
					c, err := connect(ctx)
					return identified{c, tc.says}, err
				}
			}
			h.Connect, h.ConnectElsewhere = says(h.Connect), says(h.ConnectElsewhere)
			checks, err := conformance.Checks(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(checks, func(c conformance.Check) bool { return c.Name == "identity" })
			if i < 0 || checks[i].Run(t.Context()) == nil {
				t.Errorf("%s\nthe suite does not notice", tc.reason)
			}
		})
	}
}

func TestJSONOnly(t *testing.T) {
	// A provider of JSON objects may spell them its own way, and need not take anything else.
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
	h := fake.Harness(fake.New())
	h.JSONOnly = true
	h.Connect, h.ConnectDenied = breaks(h.Connect, respelt), breaks(h.ConnectDenied, respelt)
	conformance.Run(t, h)
}

func TestWithout(t *testing.T) {
	h := fake.Harness(fake.New())
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
			t.Errorf("%s is made although the harness goes without", c.Name)
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
			reason: "A misspelt exception must not go unnoticed.",
			change: func(h *conformance.Harness) { h.Without = map[string]string{"find/tag": "no tags"} },
			want:   `Harness.Without names "find/tag", which is no check`,
		},
		"UnknownGroup": {
			reason: "So must one of a group.",
			change: func(h *conformance.Harness) { h.Without = map[string]string{"network": "there is none"} },
			want:   `Harness.Without names "network", which is no check`,
		},
		"NoConnection": {
			reason: "Without a client there is nothing to check.",
			change: func(h *conformance.Harness) {
				h.Connect = func(context.Context) (provider.Client, error) { return nil, errors.New("boom") }
			},
			want: "cannot connect: boom",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := fake.Harness(fake.New())
			tc.change(&h)
			_, err := conformance.Checks(t.Context(), h)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s\nerror %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}
