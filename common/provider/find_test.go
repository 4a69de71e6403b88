package provider_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestSelects has secrets that a less exact filter of a service would also return.
func TestSelects(t *testing.T) {
	q := provider.Query{Path: "shop-", Name: regexp.MustCompile("db"), Tags: map[string]string{"team": "é_1"}}
	for name, tc := range map[string]struct {
		reason    string
		key, team string
		want      bool
	}{
		"All":      {"All conditions hold.", "shop-db", "é_1", true},
		"Case":     {"A path is exact.", "SHOP-db", "é_1", false},
		"Within":   {"A path is a prefix.", "workshop-db", "é_1", false},
		"Name":     {"The name does not match.", "shop-web", "é_1", false},
		"Tag":      {"A tag has another value.", "shop-db", "é_2", false},
		"TagEmpty": {"A tag without a value has another one.", "shop-db", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := q.Selects(tc.key, map[string]string{"team": tc.team}); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	if (provider.Query{Tags: map[string]string{"team": ""}}).Selects("a", nil) {
		t.Error("a secret without a tag is selected by an empty one")
	}
}

func TestPages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		next   map[string]string
		want   []string
		class  provider.Class
	}{
		"One":   {"A list of one page ends.", map[string]string{"": ""}, []string{""}, ""},
		"Three": {"Each page is fetched once.", map[string]string{"": "b", "b": "c", "c": ""}, []string{"", "b", "c"}, ""},
		"Same":  {"A page that leads to itself is no end.", map[string]string{"": "b", "b": "b"}, []string{"", "b"}, provider.Unavailable},
		"Loop":  {"Nor are two that lead to each other.", map[string]string{"": "b", "b": "c", "c": "b"}, []string{"", "b", "c"}, provider.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			err := (&provider.Listing{}).Pages("listing", func(token string) (string, error) {
				if got = append(got, token); len(got) > 9 {
					t.Fatal("the list does not end")
				}
				return tc.next[token], nil
			})
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.class == "") || err != nil && provider.ClassOf(err) != tc.class {
				t.Errorf("%s: error %v; pages: -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestExactlyOne(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		set    [3]bool
		want   string
	}{
		"One":  {"The field that is set is found.", [3]bool{false, true, false}, "b"},
		"None": {"No field is an error.", [3]bool{}, "spec.auth: set exactly one of a, b and c"},
		"Two":  {"Two are one, too.", [3]bool{true, false, true}, "spec.auth: set exactly one of a, b and c"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := provider.ExactlyOne("spec.auth", provider.Choice{Field: "a", Set: tc.set[0]}, provider.Choice{Field: "b", Set: tc.set[1]}, provider.Choice{Field: "c", Set: tc.set[2]})
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
