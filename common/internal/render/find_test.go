package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// found is the answer to a search that is complete.
func found(pairs ...pair) provider.Answer {
	var a provider.Answer
	for _, p := range pairs {
		a.Found = append(a.Found, provider.Value{Key: p.Key, Data: []byte(p.Value), Version: "v1"})
	}
	return a
}

// tagged is a secret's metadata.
func tagged(tags map[string]string) provider.Answer {
	return provider.Answer{Value: provider.Value{Version: "v1", Metadata: tags}}
}

// rendered is an Output that reads well.
type rendered struct {
	Data    map[string]string
	Sources []string
	Gone    string
}

func render(t *testing.T, es *v1alpha1.ExternalSecret, r remote) (rendered, error) {
	t.Helper()
	p, err := NewPlan(es)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Render(es, p, r.values, nil)
	var got rendered
	for k, v := range out.Data {
		if got.Data == nil {
			got.Data = map[string]string{}
		}
		got.Data[k] = string(v)
	}
	for _, s := range out.Sources {
		got.Sources = append(got.Sources, s.Key+"@"+s.Version)
	}
	if out.Gone != nil {
		got.Gone = out.Gone.Error()
	}
	return got, err
}

func extracting(r v1alpha1.RemoteRef, steps ...v1alpha1.Rewrite) v1alpha1.DataFromEntry {
	return v1alpha1.DataFromEntry{Extract: &r, Rewrite: steps}
}

func TestRenderMany(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	from := func(entries ...v1alpha1.DataFromEntry) func(*spec) {
		return func(s *spec) { s.Data, s.DataFrom = nil, entries }
	}
	shop := v1alpha1.Find{Path: "shop/"}
	shaped := func(decoding, conversion string) v1alpha1.Find {
		return v1alpha1.Find{Path: "shop/", DecodingStrategy: decoding, ConversionStrategy: conversion}
	}
	fetch := func(e v1alpha1.DataEntry) v1alpha1.DataEntry {
		e.RemoteRef.MetadataPolicy = "Fetch"
		return e
	}
	decode := func(e v1alpha1.DataEntry, strategy string) v1alpha1.DataEntry {
		e.RemoteRef.DecodingStrategy = strategy
		return e
	}
	cases := map[string]struct {
		reason string
		change func(*spec)
		remote remote
		want   rendered
	}{
		"Find": {
			"What is found becomes keys, converted, with values as they are; the status names what was read.",
			from(find(shop)),
			remote{"prod?shop/": found(pair{"shop/b", "\xff\x00"}, pair{"shop/a", ""})},
			rendered{Data: map[string]string{"shop_a": "", "shop_b": "\xff\x00"}, Sources: []string{"shop/a@v1", "shop/b@v1"}},
		},
		"FindNothing": {
			"A complete list without a hit says that there is nothing: the policies decide.",
			from(find(shop)),
			remote{"prod?shop/": found()},
			rendered{Gone: `spec.dataFrom[0].find (path "shop/") in FakeStore "prod": no secret matches`},
		},
		"FindNothingBesides": {
			"It is told with what is left.",
			func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{find(shop)} },
			remote{"prod?shop/": found(), "prod/shop/db": value("x", "v2")},
			rendered{Data: map[string]string{"password": "x"}, Sources: []string{"shop/db@v2"}, Gone: `spec.dataFrom[0].find (path "shop/") in FakeStore "prod": no secret matches`},
		},
		"FindRewrite": {
			"Rewriting comes before conversion: it sees keys as the provider has them.",
			from(find(shop, regexpStep("^shop/", ""), regexpStep("/", "."))),
			remote{"prod?shop/": found(pair{"shop/db/user", "ann"}, pair{"shop/x:y", "1"})},
			rendered{Data: map[string]string{"db.user": "ann", "x_y": "1"}, Sources: []string{"shop/db/user@v1", "shop/x:y@v1"}},
		},
		"FindRewriteSorted": {
			"What was found goes by its names, whatever the order of the provider: a later one wins.",
			from(find(shop, mergeStep(v1alpha1.RewriteMerge{ConflictPolicy: "Ignore"}))),
			remote{"prod?shop/": found(pair{"shop/b", `{"k":"b"}`}, pair{"shop/a", `{"k":"a","l":null}`})},
			rendered{Data: map[string]string{"k": "b", "l": ""}, Sources: []string{"shop/a@v1", "shop/b@v1"}},
		},
		"FindUnicode": {
			"With Unicode no two keys become one.",
			from(find(shaped("", "Unicode"))),
			remote{"prod?shop/": found(pair{"shop/a", "1"}, pair{"shop:a", "2"})},
			rendered{Data: map[string]string{"shop_U002f_a": "1", "shop_U003a_a": "2"}, Sources: []string{"shop/a@v1", "shop:a@v1"}},
		},
		"FindDecode": {
			"Each value is decoded.",
			from(find(shaped("Base64", ""))),
			remote{"prod?shop/": found(pair{"a", "YWJj"}, pair{"b", "/w"})},
			rendered{Data: map[string]string{"a": "abc", "b": "\xff"}, Sources: []string{"a@v1", "b@v1"}},
		},
		"FindDecodeAuto": {
			"Auto looks at each value by itself.",
			from(find(shaped("Auto", ""))),
			remote{"prod?shop/": found(pair{"a", "YWI="}, pair{"b", "plain text"}, pair{"c", "-_8="})},
			rendered{Data: map[string]string{"a": "ab", "b": "plain text", "c": "\xfb\xff"}, Sources: []string{"a@v1", "b@v1", "c@v1"}},
		},
		"DecodeAfterRewrite": {
			"Members that a merge took out are decoded, not the objects that held them.",
			from(find(shaped("Base64", ""), mergeStep(v1alpha1.RewriteMerge{}))),
			remote{"prod?shop/": found(pair{"a", `{"k":"YWJj"}`})},
			rendered{Data: map[string]string{"k": "abc"}, Sources: []string{"a@v1"}},
		},
		"FindOtherStore": {
			"A search goes to the store of its entry.",
			from(v1alpha1.DataFromEntry{Find: &shop, SourceRef: &v1alpha1.SourceRef{StoreRef: fakeStore("second")}}),
			remote{"prod?shop/": found(pair{"a", "wrong"}), "second?shop/": found(pair{"a", "right"})},
			rendered{Data: map[string]string{"a": "right"}, Sources: []string{"a@v1"}},
		},
		"Precedence": {
			"dataFrom wins in its order, and data over all of it.",
			func(s *spec) {
				s.Data = []v1alpha1.DataEntry{entry("d", "three", "")}
				s.DataFrom = []v1alpha1.DataFromEntry{extract("one"), find(shop), extract("two")}
			},
			remote{
				"prod/one": value(`{"a":"1","b":"1","c":"1","d":"1"}`, "v1"), "prod?shop/": found(pair{"b", "found"}, pair{"c", "found"}, pair{"d", "found"}),
				"prod/two": value(`{"c":"2","d":"2"}`, "v2"), "prod/three": value("3", "v3"),
			},
			rendered{Data: map[string]string{"a": "1", "b": "found", "c": "2", "d": "3"}, Sources: []string{"one@v1", "b@v1", "c@v1", "d@v1", "two@v2", "three@v3"}},
		},
		"FindAfterExtract": {
			"A search is no stronger than its place.",
			from(find(shop), extract("one")),
			remote{"prod/one": value(`{"a":"extracted"}`, "v1"), "prod?shop/": found(pair{"a", "found"})},
			rendered{Data: map[string]string{"a": "extracted"}, Sources: []string{"a@v1", "one@v1"}},
		},

		"ExtractRewrite": {
			"What is extracted is rewritten, then converted, then decoded.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", DecodingStrategy: "Base64URL", ConversionStrategy: "Unicode"}, regexpStep("^db/", "my "))),
			remote{"prod/one": value(`{"db/user":"YW5u","n":"-_8"}`, "v1")},
			rendered{Data: map[string]string{"my_U0020_user": "ann", "n": "\xfb\xff"}, Sources: []string{"one@v1"}},
		},
		"ExtractUnicode": {
			"With Unicode keys that differ stay apart.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", ConversionStrategy: "Unicode"})),
			remote{"prod/one": value(`{"a/b":"1","a:b":"2"}`, "v1")},
			rendered{Data: map[string]string{"a_U002f_b": "1", "a_U003a_b": "2"}, Sources: []string{"one@v1"}},
		},
		"DataDecode": {
			"A property is taken out before it is decoded.",
			func(s *spec) {
				s.Data = []v1alpha1.DataEntry{decode(entry("a", "one", "p"), "Base64"), decode(entry("b", "two", ""), "Auto"), decode(entry("c", "one", ""), "None")}
			},
			remote{"prod/one": value(`{"p":"YWJj"}`, "v1"), "prod/two": value("plain text", "v2")},
			rendered{Data: map[string]string{"a": "abc", "b": "plain text", "c": `{"p":"YWJj"}`}, Sources: []string{"one@v1", "two@v2"}},
		},

		"Metadata": {
			"The metadata are a JSON object with ordered keys; characters of HTML are kept.",
			func(s *spec) { s.Data = []v1alpha1.DataEntry{fetch(entry("tags", "one", ""))} },
			remote{"prod/one": value("wrong", "v1"), "prod/one#": tagged(map[string]string{"team": "<shop> & co", "env": "prod"})},
			rendered{Data: map[string]string{"tags": `{"env":"prod","team":"<shop> & co"}`}, Sources: []string{"one@v1"}},
		},
		"MetadataProperty": {
			"A property of them is one value; a name with dots is a name first.",
			func(s *spec) {
				s.Data = []v1alpha1.DataEntry{fetch(entry("team", "one", "team")), fetch(entry("app", "one", "app.kubernetes.io/name")), decode(fetch(entry("cert", "one", "cert")), "Base64")}
			},
			remote{"prod/one#": tagged(map[string]string{"team": "shop", "app.kubernetes.io/name": "db", "cert": "YWJj"})},
			rendered{Data: map[string]string{"team": "shop", "app": "db", "cert": "abc"}, Sources: []string{"one@v1"}},
		},
		"MetadataNone": {
			"A secret without metadata has none, which is an answer.",
			func(s *spec) { s.Data = []v1alpha1.DataEntry{fetch(entry("tags", "one", ""))} },
			remote{"prod/one#": tagged(map[string]string{})},
			rendered{Data: map[string]string{"tags": "{}"}, Sources: []string{"one@v1"}},
		},
		"MetadataPropertyGone": {
			"A tag that is not there is gone, as a property is.",
			func(s *spec) { s.Data = []v1alpha1.DataEntry{fetch(entry("team", "one", "team"))} },
			remote{"prod/one#": tagged(map[string]string{})},
			rendered{Sources: []string{"one@v1"}, Gone: `"one" in FakeStore "prod": it has no property "team"`},
		},
		"MetadataExtract": {
			"All metadata become keys, converted.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", MetadataPolicy: "Fetch"})),
			remote{"prod/one": value(`{"a":"wrong"}`, "v1"), "prod/one#": tagged(map[string]string{"team": "shop", "aws:env": "prod"})},
			rendered{Data: map[string]string{"team": "shop", "aws_env": "prod"}, Sources: []string{"one@v1"}},
		},
		"MetadataExtractProperty": {
			"A value among them may hold an object.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", MetadataPolicy: "Fetch", Property: "map.@fromstr"})),
			remote{"prod/one#": tagged(map[string]string{"map": `{"a":"1"}`})},
			rendered{Data: map[string]string{"a": "1"}, Sources: []string{"one@v1"}},
		},
		"MetadataNoPolicy": {
			"None is the value.",
			func(s *spec) { s.Data[0].RemoteRef.MetadataPolicy = "None" },
			remote{"prod/shop/db": value("x", "v1"), "prod/shop/db#": tagged(nil)},
			rendered{Data: map[string]string{"password": "x"}, Sources: []string{"shop/db@v1"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, external(tc.change), tc.remote)
			if err != nil {
				t.Fatalf("\n%s\nRender(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRender(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRenderManyErrors(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	searching := func(f v1alpha1.Find, steps ...v1alpha1.Rewrite) func(*spec) {
		return func(s *spec) {
			f.Path = "shop/"
			s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{find(f, steps...)}
		}
	}
	plain := searching(v1alpha1.Find{})
	two := found(pair{"a/k", canary}, pair{"b/k", canary})
	cases := map[string]struct {
		reason string
		change func(*spec)
		remote remote
		class  provider.Class
		want   []string
	}{
		"NotFound":    {"No list is never the same as nothing in it.", plain, nil, provider.Unavailable, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": the list of secrets could not be read`, "it does not exist"}},
		"Denied":      {"A class is a class.", plain, remote{"prod?shop/": failure(provider.Denied)}, provider.Denied, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": the provider says no`}},
		"Unavailable": {"A class is a class.", plain, remote{"prod?shop/": failure(provider.Unavailable)}, provider.Unavailable, []string{"spec.dataFrom[0].find (path \"shop/\") in FakeStore"}},
		"Incomplete": {
			"What came with an error does not count.",
			plain, remote{"prod?shop/": {Found: two.Found, Err: provider.NewError(provider.Throttled, "slow down")}}, provider.Throttled, []string{"spec.dataFrom[0].find (path \"shop/\") in FakeStore", "slow down"},
		},
		"NotFoundBesides": {
			"What casts doubt is reported before what is missing.",
			func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "shop/"})} }, nil, provider.Unavailable, []string{"spec.dataFrom[0].find (path \"shop/\") in", "(and 1 more)"},
		},
		"Converted":   {"Two keys that become one are a question for a person.", plain, remote{"prod?shop/": found(pair{"a/k", canary}, pair{"a:k", canary})}, provider.Invalid, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": spec.dataFrom[0]: `, `"a/k"`, `"a:k"`, `both become "a_k"`}},
		"FoundTwice":  {"A provider that lists a key twice does not say which value counts.", plain, remote{"prod?shop/": found(pair{"k", canary}, pair{"k", canary})}, provider.Invalid, []string{"spec.dataFrom[0]: ", `both become "k"`}},
		"Rewritten":   {"The step that did it is named.", searching(v1alpha1.Find{}, regexpStep("^./", "")), remote{"prod?shop/": two}, provider.Invalid, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": spec.dataFrom[0].rewrite[0]: `, `"a/k"`, `"b/k"`}},
		"Merged":      {"A value that is no object is not shown.", searching(v1alpha1.Find{}, mergeStep(v1alpha1.RewriteMerge{})), remote{"prod?shop/": two}, provider.Invalid, []string{"spec.dataFrom[0].rewrite[0].merge: ", `"a/k"`, "not a JSON object"}},
		"ReservedKey": {"The kubelet uses names that begin with two dots.", searching(v1alpha1.Find{}, regexpStep("^a/", "..")), remote{"prod?shop/": two}, provider.Invalid, []string{"spec.dataFrom[0]: ", `"..k"`, "cannot be a key"}},
		"EmptyKey":    {"A key of a Secret is not empty.", searching(v1alpha1.Find{}, regexpStep("^a/k$", "")), remote{"prod?shop/": two}, provider.Invalid, []string{"spec.dataFrom[0]: ", `""`, "cannot be a key"}},
		"UnicodeLong": {"A key that grows beyond 253 characters is none.", searching(v1alpha1.Find{ConversionStrategy: "Unicode"}), remote{"prod?shop/": found(pair{strings.Repeat("/", 40), canary})}, provider.Invalid, []string{"spec.dataFrom[0]: ", "cannot be a key"}},
		"NotBase64":   {"A value that cannot be decoded is named by its key.", searching(v1alpha1.Find{DecodingStrategy: "Base64"}), remote{"prod?shop/": found(pair{"a", "YWJj"}, pair{"b", canary})}, provider.Invalid, []string{"spec.dataFrom[0]: ", `"b"`, "not Base64", "decodingStrategy"}},
		"DataNotBase64": {
			"Also one by itself; optional means missing, not unfit.",
			func(s *spec) { s.Data[0].Optional, s.Data[0].RemoteRef.DecodingStrategy = true, "Base64URL" }, remote{"prod/shop/db": value(canary+"!", "")}, provider.Invalid, []string{`"shop/db" in FakeStore "prod": `, "not Base64URL"},
		},
		"Selection": {
			"It is said which of several it is, and what it selects.",
			func(s *spec) {
				s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "shop/"}), find(v1alpha1.Find{Path: strings.Repeat("p", 100), Name: &v1alpha1.FindName{RegExp: "^a"}, Tags: map[string]string{"team": "shop"}})}
			},
			remote{"prod?shop/": two}, provider.Unavailable, []string{`spec.dataFrom[1].find (path "` + strings.Repeat("p", 64) + `", name "^a", tags {"team":"shop"}) in FakeStore "prod": `},
		},
		"MetadataNotTold": {
			"That a provider tells no metadata is not the same as that there are none.",
			func(s *spec) { s.Data[0].RemoteRef.MetadataPolicy, s.Data[0].Optional = "Fetch", true }, remote{"prod/shop/db#": tagged(nil)}, provider.Invalid, []string{`"shop/db" in FakeStore "prod": spec.data[0].remoteRef: metadataPolicy is Fetch, and the provider tells no metadata; remove it`},
		},
		"MetadataNotToldMany": {
			"Also where all of them are extracted.",
			func(s *spec) {
				s.DataFrom = []v1alpha1.DataFromEntry{extracting(v1alpha1.RemoteRef{Key: "one", MetadataPolicy: "Fetch"})}
			}, remote{"prod/shop/db": value("x", ""), "prod/one#": tagged(nil)}, provider.Invalid, []string{`"one" in FakeStore "prod": spec.dataFrom[0].extract: metadataPolicy is Fetch`},
		},
		"MetadataDenied": {
			"Metadata that cannot be read are not empty.",
			func(s *spec) { s.Data[0].RemoteRef.MetadataPolicy = "Fetch" }, remote{"prod/shop/db": value("x", ""), "prod/shop/db#": failure(provider.Denied)}, provider.Denied, []string{`"shop/db" in`},
		},
		"Big": {
			"Values above 1 MiB in all fit in no Secret.",
			plain, remote{"prod?shop/": found(pair{"a", strings.Repeat("x", 1<<19)}, pair{"b", strings.Repeat("x", 1<<19+1)})}, provider.Invalid, []string{`the values of Secret "db" are 1048577 bytes in all`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, external(tc.change), tc.remote)
			if diff := cmp.Diff(rendered{}, got); diff != "" {
				t.Errorf("\n%s\nRender(): output beside an error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.class, class(err)); diff != "" {
				t.Fatalf("\n%s\nRender(): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
			msg := err.Error()
			for _, w := range tc.want {
				if !strings.Contains(msg, w) {
					t.Errorf("\n%s\nRender(): %q does not say %q", tc.reason, msg, w)
				}
			}
			if strings.Contains(msg, canary) || len(msg) > 600 {
				t.Errorf("\n%s\nRender(): a message of %d bytes that shows a value or too much: %.600q", tc.reason, len(msg), msg)
			}
		})
	}
}

// TestRenderOrder renders what is found in any order: the result is the same.
func TestRenderOrder(t *testing.T) {
	es := external(func(s *v1alpha1.ExternalSecretSpec) {
		step := mergeStep(v1alpha1.RewriteMerge{Strategy: "JSON", Into: "all", ConflictPolicy: "Ignore", Priority: []string{"b"}})
		s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "shop/"}, step)}
	})
	pairs := []pair{{"a", `{"k":"a"}`}, {"b", `{"k":"b"}`}, {"c", `{"k":"c"}`}}
	want := map[string]string{"a": `{"k":"a"}`, "b": `{"k":"b"}`, "c": `{"k":"c"}`, "all": `{"k":"b"}`}
	for range 3 {
		pairs = append(pairs[1:], pairs[0])
		for range 2 {
			slices.Reverse(pairs)
			got, err := render(t, es, remote{"prod?shop/": found(pairs...)})
			want := rendered{Data: want, Sources: []string{"a@v1", "b@v1", "c@v1"}}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("Render() of %v: %v: -want, +got:\n%s", pairs, err, diff)
			}
		}
	}
}

// TestReadIsBounded finds much more than a Secret holds, a hundred times.
func TestReadIsBounded(t *testing.T) {
	var pairs []pair
	for i := range 16 {
		pairs = append(pairs, pair{fmt.Sprintf("k%02d", i), strings.Repeat("x", 1<<20-100)})
	}
	cases := map[string]struct {
		reason string
		target string
		want   []string
	}{
		"Other": {"All that is found is too much.", "eN-", []string{`spec.dataFrom[2].find (path "shop/") in FakeStore "prod": spec.dataFrom[2]: with it the values are more than 32 MiB in all; read fewer`, "(and 98 more)"}},
		"Same":  {"What the next entry covers is not kept.", "e-", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(func(s *v1alpha1.ExternalSecretSpec) {
				for i := range 100 {
					e := find(v1alpha1.Find{Path: "shop/"}, regexpStep("^", strings.ReplaceAll(tc.target, "N", fmt.Sprint(i))))
					s.DataFrom = append(s.DataFrom, e)
				}
			})
			p, err := NewPlan(es)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Read(es, p, remote{"prod?shop/": found(pairs...), "prod/shop/db": value("x", "")}.values)
			if len(tc.want) > 0 {
				wantError(t, tc.reason, err, provider.Invalid, tc.want...)
				return
			}
			if err != nil || len(out.Data) != len(pairs)+1 {
				t.Errorf("\n%s\nRead(): %d keys, %v", tc.reason, len(out.Data), err)
			}
		})
	}
}

func TestSourcesAreBounded(t *testing.T) {
	many := func(n int) (pairs []pair) {
		for i := range n {
			pairs = append(pairs, pair{fmt.Sprintf("k%04d", i), "x"})
		}
		return pairs
	}
	cases := map[string]struct {
		reason string
		found  []pair
		want   []string
	}{
		"Few":  {"What was found is listed, and what is read after it.", many(2), []string{"k0000@v1", "k0001@v1", "shop/db@v2"}},
		"Full": {"A hundred are listed.", many(100), nil},
		"Many": {"A search that yields thousands does not make a status of thousands.", many(5000), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(func(s *v1alpha1.ExternalSecretSpec) {
				s.DataFrom = []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "shop/"})}
			})
			want := tc.want
			for i := 0; tc.want == nil && i < 100; i++ {
				want = append(want, fmt.Sprintf("k%04d@v1", i))
			}
			got, err := render(t, es, remote{"prod?shop/": found(tc.found...), "prod/shop/db": value("x", "v2")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Sources); diff != "" {
				t.Errorf("\n%s\nSources: -want, +got:\n%s", tc.reason, diff)
			}
			if len(got.Data) != len(tc.found)+1 {
				t.Errorf("\n%s\n%d keys, want all %d", tc.reason, len(got.Data), len(tc.found)+1)
			}
		})
	}
}
