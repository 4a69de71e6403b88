package render

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestRequired(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	from := func(e v1alpha1.DataFromEntry, optional bool) func(*spec) {
		e.Optional = optional
		return func(s *spec) { s.Data, s.DataFrom = nil, []v1alpha1.DataFromEntry{e} }
	}
	all := find(v1alpha1.Find{Path: "all/"})
	ref := Source{Store: *fakeStore("prod"), Read: provider.Read{Ref: provider.Ref{Key: "shop/db"}}}
	search := Source{Store: *fakeStore("prod"), Read: provider.Read{Search: searchOf(*all.Find)}}
	cases := map[string]struct {
		reason string
		change func(*spec)
		source Source
		want   bool
	}{
		"Entry":           {"An entry requires its secret.", func(*spec) {}, ref, true},
		"OptionalEntry":   {"An optional entry does not require its secret.", func(s *spec) { s.Data[0].Optional = true }, ref, false},
		"OneOfTwo":        {"One required entry is enough.", func(s *spec) { s.Data = append(s.Data, s.Data[0]); s.Data[1].Optional = true }, ref, true},
		"Extract":         {"An entry of dataFrom requires its secret.", from(extract("shop/db"), false), ref, true},
		"OptionalExtract": {"An optional entry of dataFrom does not require its secret.", from(extract("shop/db"), true), ref, false},
		"Find":            {"A search is required.", from(all, false), search, true},
		"OptionalFind":    {"An optional search is not required.", from(all, true), search, false},
		"Other":           {"A secret that no entry uses is not required.", from(all, false), ref, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Required(external(tc.change), tc.source); got != tc.want {
				t.Errorf("%s: Required() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
