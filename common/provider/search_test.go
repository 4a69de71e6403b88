package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestSearch(t *testing.T) {
	type args struct {
		path, name string
		tags       map[string]string
	}
	cases := map[string]struct {
		reason string
		args   args
		search provider.Search
		want   provider.Query
	}{
		"Zero": {
			reason: "A spec without conditions is no search.",
		},
		"Path": {
			reason: "A path alone is a search.",
			args:   args{path: "shop/"},
			search: provider.Search{Path: "shop/"},
			want:   provider.Query{Path: "shop/"},
		},
		"Name": {
			reason: "A name is a regular expression.",
			args:   args{name: `^shop/\d+$`},
			search: provider.Search{Name: `^shop/\d+$`},
			want:   provider.Query{Name: regexp.MustCompile(`^shop/\d+$`)},
		},
		"Tags": {
			reason: "Tags have one form, whatever their characters; an empty value counts.",
			args:   args{tags: map[string]string{"b": `"<,}`, "a": "", "ä": "ö"}},
			search: provider.Search{Tags: `{"a":"","b":"\"\u003c,}","ä":"ö"}`},
			want:   provider.Query{Tags: map[string]string{"a": "", "b": `"<,}`, "ä": "ö"}},
		},
		"NoTags": {
			reason: "An empty map has no tags.",
			args:   args{tags: map[string]string{}},
		},
		"All": {
			reason: "All fields can be set together.",
			args:   args{path: "shop/", name: "db", tags: map[string]string{"team": "shop"}},
			search: provider.Search{Path: "shop/", Name: "db", Tags: `{"team":"shop"}`},
			want:   provider.Query{Path: "shop/", Name: regexp.MustCompile("db"), Tags: map[string]string{"team": "shop"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := provider.NewSearch(tc.args.path, tc.args.name, tc.args.tags)
			if diff := cmp.Diff(tc.search, s); diff != "" {
				t.Errorf("%s\nNewSearch(...): -want, +got:\n%s", tc.reason, diff)
			}
			got, err := s.Query()
			if err != nil {
				t.Fatalf("%s\nQuery(): %v", tc.reason, err)
			}
			same := cmp.Comparer(func(a, b *regexp.Regexp) bool { return a == b || a != nil && b != nil && a.String() == b.String() })
			if diff := cmp.Diff(tc.want, got, same); diff != "" {
				t.Errorf("%s\nQuery(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSearchErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		search provider.Search
		want   []string
	}{
		"Regexp": {"The error names the problem and the field.", provider.NewSearch("", "a(", nil), []string{"find: name.regexp: ", `"a("`, "missing closing )"}},
		"Large":  {"An expression that is too large is refused.", provider.NewSearch("", "((a{100}){10})", nil), []string{"find: name.regexp: ", "too large"}},
		"Tags":   {"Tags that NewSearch has not made are refused.", provider.Search{Tags: "team=shop"}, []string{"find: ", "tags"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, err := tc.search.Query()
			if diff := cmp.Diff(provider.Query{}, q); diff != "" {
				t.Errorf("%s\nQuery(): a query with an error:\n%s", tc.reason, diff)
			}
			if err == nil || provider.ClassOf(err) != provider.Invalid {
				t.Fatalf("%s\nQuery(): error %v, want one of class Invalid", tc.reason, err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s\nQuery(): %q does not contain %q", tc.reason, err, w)
				}
			}
		})
	}
}

// TestReadIsComparable checks that equal reads are the same key of a map.
func TestReadIsComparable(t *testing.T) {
	tags := func(order ...string) map[string]string {
		m := map[string]string{}
		for _, k := range order {
			m[k] = "x"
		}
		return m
	}
	seen := map[provider.Read]int{}
	for _, r := range []provider.Read{
		{Search: provider.NewSearch("a", "b", tags("c", "d"))}, {Search: provider.NewSearch("a", "b", tags("d", "c"))},
		{Search: provider.NewSearch("a", "b", tags("c"))}, {Search: provider.NewSearch("a", "", tags("c", "d"))},
		{Ref: provider.Ref{Key: "a"}}, {Ref: provider.Ref{Key: "a", Metadata: true}}, {Ref: provider.Ref{Key: "a"}},
	} {
		seen[r]++
	}
	want := map[provider.Read]int{
		{Search: provider.Search{Path: "a", Name: "b", Tags: `{"c":"x","d":"x"}`}}: 2,
		{Search: provider.Search{Path: "a", Name: "b", Tags: `{"c":"x"}`}}:         1,
		{Search: provider.Search{Path: "a", Tags: `{"c":"x","d":"x"}`}}:            1,
		{Ref: provider.Ref{Key: "a"}}:                                              2,
		{Ref: provider.Ref{Key: "a", Metadata: true}}:                              1,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("reads: -want, +got:\n%s", diff)
	}
}
