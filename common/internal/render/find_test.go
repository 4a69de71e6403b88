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

// found returns the answer to a complete search.
func found(pairs ...pair) provider.Answer {
	var a provider.Answer
	for _, p := range pairs {
		a.Found = append(a.Found, provider.Value{Key: p.Key, Data: []byte(p.Value), Version: "v1"})
	}
	return a
}

// tagged returns the answer with a secret's metadata.
func tagged(tags map[string]string) provider.Answer {
	return provider.Answer{Value: provider.Value{Version: "v1", Metadata: tags}}
}

// rendered is an Output as text.
type rendered struct {
	Data     map[string]string
	Sources  []string
	NotFound string
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
	if out.NotFound != nil {
		got.NotFound = out.NotFound.Error()
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
			"Found secrets become keys, converted, with unchanged values; the status lists them as sources.",
			from(find(shop)),
			remote{"prod?shop/": found(pair{"shop/b", "\xff\x00"}, pair{"shop/a", ""})},
			rendered{Data: map[string]string{"shop_a": "", "shop_b": "\xff\x00"}, Sources: []string{"shop/a@v1", "shop/b@v1"}},
		},
		"FindNothing": {
			"A complete list without a match is an answer: the policies decide what happens.",
			from(find(shop)),
			remote{"prod?shop/": found()},
			rendered{NotFound: `spec.dataFrom[0].find (path "shop/") in FakeStore "prod": no secret matches; correct the conditions, or create one`},
		},
		"FindNothingBesides": {
			"A list without a match is reported together with the other values.",
			func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{find(shop)} },
			remote{"prod?shop/": found(), "prod/shop/db": value("x", "v2")},
			rendered{Data: map[string]string{"password": "x"}, Sources: []string{"shop/db@v2"}, NotFound: `spec.dataFrom[0].find (path "shop/") in FakeStore "prod": no secret matches; correct the conditions, or create one`},
		},
		"FindRewrite": {
			"Keys are rewritten before they are converted.",
			from(find(shop, regexpStep("^shop/", ""), regexpStep("/", "."))),
			remote{"prod?shop/": found(pair{"shop/db/user", "ann"}, pair{"shop/x:y", "1"})},
			rendered{Data: map[string]string{"db.user": "ann", "x_y": "1"}, Sources: []string{"shop/db/user@v1", "shop/x:y@v1"}},
		},
		"FindRewriteSorted": {
			"Found secrets are processed in the order of their names, whatever the provider's order: a later one wins.",
			from(find(shop, mergeStep(v1alpha1.RewriteMerge{ConflictPolicy: "Ignore"}))),
			remote{"prod?shop/": found(pair{"shop/b", `{"k":"b"}`}, pair{"shop/a", `{"k":"a","l":null}`})},
			rendered{Data: map[string]string{"k": "b", "l": ""}, Sources: []string{"shop/a@v1", "shop/b@v1"}},
		},
		"FindUnicode": {
			"With Unicode, different keys stay different.",
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
			"Auto decides for each value separately.",
			from(find(shaped("Auto", ""))),
			remote{"prod?shop/": found(pair{"a", "YWI="}, pair{"b", "plain text"}, pair{"c", "-_8="})},
			rendered{Data: map[string]string{"a": "ab", "b": "plain text", "c": "\xfb\xff"}, Sources: []string{"a@v1", "b@v1", "c@v1"}},
		},
		"DecodeAfterRewrite": {
			"After a merge the members are decoded, not the objects that contained them.",
			from(find(shaped("Base64", ""), mergeStep(v1alpha1.RewriteMerge{}))),
			remote{"prod?shop/": found(pair{"a", `{"k":"YWJj"}`})},
			rendered{Data: map[string]string{"k": "abc"}, Sources: []string{"a@v1"}},
		},
		"FindOtherStore": {
			"An entry is searched in its own store.",
			from(v1alpha1.DataFromEntry{Find: &shop, SourceRef: &v1alpha1.SourceRef{StoreRef: fakeStore("second")}}),
			remote{"prod?shop/": found(pair{"a", "wrong"}), "second?shop/": found(pair{"a", "right"})},
			rendered{Data: map[string]string{"a": "right"}, Sources: []string{"a@v1"}},
		},
		"Precedence": {
			"Later entries of dataFrom win, and data wins over all of them.",
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
			"A later extract wins over a search.",
			from(find(shop), extract("one")),
			remote{"prod/one": value(`{"a":"extracted"}`, "v1"), "prod?shop/": found(pair{"a", "found"})},
			rendered{Data: map[string]string{"a": "extracted"}, Sources: []string{"a@v1", "one@v1"}},
		},

		"ExtractRewrite": {
			"An extracted object is rewritten, then converted, then decoded.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", DecodingStrategy: "Base64URL", ConversionStrategy: "Unicode"}, regexpStep("^db/", "my "))),
			remote{"prod/one": value(`{"db/user":"YW5u","n":"-_8"}`, "v1")},
			rendered{Data: map[string]string{"my_U0020_user": "ann", "n": "\xfb\xff"}, Sources: []string{"one@v1"}},
		},
		"ExtractUnicode": {
			"With Unicode, different keys of an object stay different.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", ConversionStrategy: "Unicode"})),
			remote{"prod/one": value(`{"a/b":"1","a:b":"2"}`, "v1")},
			rendered{Data: map[string]string{"a_U002f_b": "1", "a_U003a_b": "2"}, Sources: []string{"one@v1"}},
		},
		"DataDecode": {
			"The property is extracted before the value is decoded.",
			func(s *spec) {
				s.Data = []v1alpha1.DataEntry{decode(entry("a", "one", "p"), "Base64"), decode(entry("b", "two", ""), "Auto"), decode(entry("c", "one", ""), "None")}
			},
			remote{"prod/one": value(`{"p":"YWJj"}`, "v1"), "prod/two": value("plain text", "v2")},
			rendered{Data: map[string]string{"a": "abc", "b": "plain text", "c": `{"p":"YWJj"}`}, Sources: []string{"one@v1", "two@v2"}},
		},

		"Metadata": {
			"Metadata are a JSON object with sorted keys; HTML characters are not escaped.",
			func(s *spec) { s.Data = []v1alpha1.DataEntry{fetch(entry("tags", "one", ""))} },
			remote{"prod/one": value("wrong", "v1"), "prod/one#": tagged(map[string]string{"team": "<shop> & co", "env": "prod"})},
			rendered{Data: map[string]string{"tags": `{"env":"prod","team":"<shop> & co"}`}, Sources: []string{"one@v1"}},
		},
		"MetadataProperty": {
			"A property of the metadata is one value; a name with dots is first looked up as a name.",
			func(s *spec) {
				s.Data = []v1alpha1.DataEntry{fetch(entry("team", "one", "team")), fetch(entry("app", "one", "app.kubernetes.io/name")), decode(fetch(entry("cert", "one", "cert")), "Base64")}
			},
			remote{"prod/one#": tagged(map[string]string{"team": "shop", "app.kubernetes.io/name": "db", "cert": "YWJj"})},
			rendered{Data: map[string]string{"team": "shop", "app": "db", "cert": "abc"}, Sources: []string{"one@v1"}},
		},
		"MetadataNone": {
			"A secret with empty metadata is an answer.",
			func(s *spec) { s.Data = []v1alpha1.DataEntry{fetch(entry("tags", "one", ""))} },
			remote{"prod/one#": tagged(map[string]string{})},
			rendered{Data: map[string]string{"tags": "{}"}, Sources: []string{"one@v1"}},
		},
		"MetadataPropertyGone": {
			"A missing tag is like a missing property.",
			func(s *spec) { s.Data = []v1alpha1.DataEntry{fetch(entry("team", "one", "team"))} },
			remote{"prod/one#": tagged(map[string]string{})},
			rendered{Sources: []string{"one@v1"}, NotFound: `"one" in FakeStore "prod": it has no property "team"; correct the property, or add it to the remote secret`},
		},
		"MetadataExtract": {
			"All metadata become keys, converted.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", MetadataPolicy: "Fetch"})),
			remote{"prod/one": value(`{"a":"wrong"}`, "v1"), "prod/one#": tagged(map[string]string{"team": "shop", "aws:env": "prod"})},
			rendered{Data: map[string]string{"team": "shop", "aws_env": "prod"}, Sources: []string{"one@v1"}},
		},
		"MetadataExtractProperty": {
			"A value of the metadata can contain an object.",
			from(extracting(v1alpha1.RemoteRef{Key: "one", MetadataPolicy: "Fetch", Property: "map.@fromstr"})),
			remote{"prod/one#": tagged(map[string]string{"map": `{"a":"1"}`})},
			rendered{Data: map[string]string{"a": "1"}, Sources: []string{"one@v1"}},
		},
		"MetadataNoPolicy": {
			"The metadata policy None reads the value.",
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
		"NotFound":    {"A missing list is an error, not an empty list.", plain, nil, provider.Unavailable, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": the list of secrets could not be read`, "it does not exist"}},
		"Denied":      {"The error keeps its class.", plain, remote{"prod?shop/": failure(provider.Denied)}, provider.Denied, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": the provider says no`}},
		"Unavailable": {"The error keeps its class.", plain, remote{"prod?shop/": failure(provider.Unavailable)}, provider.Unavailable, []string{"spec.dataFrom[0].find (path \"shop/\") in FakeStore"}},
		"Incomplete": {
			"Values in an answer with an error are ignored.",
			plain, remote{"prod?shop/": {Found: two.Found, Err: provider.NewError(provider.Throttled, "slow down")}}, provider.Throttled, []string{"spec.dataFrom[0].find (path \"shop/\") in FakeStore", "slow down"},
		},
		"NotFoundBesides": {
			"An unreadable list is reported before a missing secret.",
			func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "shop/"})} }, nil, provider.Unavailable, []string{"spec.dataFrom[0].find (path \"shop/\") in", "(and 1 more)"},
		},
		"Converted":   {"Two keys with the same conversion are an error.", plain, remote{"prod?shop/": found(pair{"a/k", canary}, pair{"a:k", canary})}, provider.Invalid, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": spec.dataFrom[0]: `, `"a/k"`, `"a:k"`, `both become "a_k"`}},
		"FoundTwice":  {"A key that the provider lists twice is an error, because either value might be right.", plain, remote{"prod?shop/": found(pair{"k", canary}, pair{"k", canary})}, provider.Invalid, []string{"spec.dataFrom[0]: ", `both become "k"`}},
		"Rewritten":   {"The error names the step that made two keys equal.", searching(v1alpha1.Find{}, regexpStep("^./", "")), remote{"prod?shop/": two}, provider.Invalid, []string{`spec.dataFrom[0].find (path "shop/") in FakeStore "prod": spec.dataFrom[0].rewrite[0]: `, `"a/k"`, `"b/k"`}},
		"Merged":      {"The error does not show a value that is not an object.", searching(v1alpha1.Find{}, mergeStep(v1alpha1.RewriteMerge{})), remote{"prod?shop/": two}, provider.Invalid, []string{"spec.dataFrom[0].rewrite[0].merge: ", `"a/k"`, "not a JSON object"}},
		"ReservedKey": {"A key must not start with two dots, which the kubelet reserves.", searching(v1alpha1.Find{}, regexpStep("^a/", "..")), remote{"prod?shop/": two}, provider.Invalid, []string{"spec.dataFrom[0]: ", `"..k"`, "cannot be a key"}},
		"EmptyKey":    {"A key must not be empty.", searching(v1alpha1.Find{}, regexpStep("^a/k$", "")), remote{"prod?shop/": two}, provider.Invalid, []string{"spec.dataFrom[0]: ", `""`, "cannot be a key"}},
		"UnicodeLong": {"A key that becomes longer than 253 characters is an error.", searching(v1alpha1.Find{ConversionStrategy: "Unicode"}), remote{"prod?shop/": found(pair{strings.Repeat("/", 40), canary})}, provider.Invalid, []string{"spec.dataFrom[0]: ", "cannot be a key"}},
		"NotBase64":   {"The error names the key of a value that cannot be decoded.", searching(v1alpha1.Find{DecodingStrategy: "Base64"}), remote{"prod?shop/": found(pair{"a", "YWJj"}, pair{"b", canary})}, provider.Invalid, []string{"spec.dataFrom[0]: ", `"b"`, "not Base64", "decodingStrategy"}},
		"DataNotBase64": {
			"A value that cannot be decoded is an error, even if it is optional.",
			func(s *spec) { s.Data[0].Optional, s.Data[0].RemoteRef.DecodingStrategy = true, "Base64URL" }, remote{"prod/shop/db": value(canary+"!", "")}, provider.Invalid, []string{`"shop/db" in FakeStore "prod": `, "not Base64URL"},
		},
		"Selection": {
			"The error names the entry and its conditions.",
			func(s *spec) {
				s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "shop/"}), find(v1alpha1.Find{Path: strings.Repeat("p", 100), Name: &v1alpha1.FindName{RegExp: "^a"}, Tags: map[string]string{"team": "shop"}})}
			},
			remote{"prod?shop/": two}, provider.Unavailable, []string{`spec.dataFrom[1].find (path "` + strings.Repeat("p", 64) + `", name "^a", tags {"team":"shop"}) in FakeStore "prod": `},
		},
		"MetadataNotTold": {
			"A provider without metadata is an error, even if the entry is optional.",
			func(s *spec) { s.Data[0].RemoteRef.MetadataPolicy, s.Data[0].Optional = "Fetch", true }, remote{"prod/shop/db#": tagged(nil)}, provider.Invalid, []string{`"shop/db" in FakeStore "prod": spec.data[0].remoteRef: metadataPolicy is Fetch, and the provider has no metadata; remove it`},
		},
		"MetadataNotToldMany": {
			"A provider without metadata is an error for extract, too.",
			func(s *spec) {
				s.DataFrom = []v1alpha1.DataFromEntry{extracting(v1alpha1.RemoteRef{Key: "one", MetadataPolicy: "Fetch"})}
			}, remote{"prod/shop/db": value("x", ""), "prod/one#": tagged(nil)}, provider.Invalid, []string{`"one" in FakeStore "prod": spec.dataFrom[0].extract: metadataPolicy is Fetch`},
		},
		"MetadataDenied": {
			"Metadata that cannot be read are an error.",
			func(s *spec) { s.Data[0].RemoteRef.MetadataPolicy = "Fetch" }, remote{"prod/shop/db": value("x", ""), "prod/shop/db#": failure(provider.Denied)}, provider.Denied, []string{`"shop/db" in`},
		},
		"Big": {
			"Values above 1 MiB in total do not fit into a Secret.",
			plain, remote{"prod?shop/": found(pair{"a", strings.Repeat("x", 1<<19)}, pair{"b", strings.Repeat("x", 1<<19+1)})}, provider.Invalid, []string{`the values of Secret "db" have 1048577 bytes in total`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, external(tc.change), tc.remote)
			if diff := cmp.Diff(rendered{}, got); diff != "" {
				t.Errorf("\n%s\nRender(): output with an error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.class, class(err)); diff != "" {
				t.Fatalf("\n%s\nRender(): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
			msg := err.Error()
			for _, w := range tc.want {
				if !strings.Contains(msg, w) {
					t.Errorf("\n%s\nRender(): %q does not contain %q", tc.reason, msg, w)
				}
			}
			if strings.Contains(msg, canary) || len(msg) > 600 {
				t.Errorf("\n%s\nRender(): a message of %d bytes that shows a value or too much: %.600q", tc.reason, len(msg), msg)
			}
		})
	}
}

// TestRenderOrder renders secrets that are found in any order: the result must be the same.
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

// TestReadIsBounded finds much more than a Secret can hold, a hundred times.
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
		"Other": {"All found values together are too large.", "eN-", []string{`spec.dataFrom[2].find (path "shop/") in FakeStore "prod": spec.dataFrom[2]: with it, the values have more than 32 MiB in total; read fewer`, "(and 98 more)"}},
		"Same":  {"A value that a later entry replaces does not count.", "e-", nil},
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
		"Few":  {"The found secrets are listed, and the sources after them.", many(2), []string{"k0000@v1", "k0001@v1", "shop/db@v2"}},
		"Full": {"Up to a hundred sources are listed.", many(100), nil},
		"Many": {"A search with thousands of results lists only a hundred sources.", many(5000), nil},
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
