package scope_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func rules(t *testing.T, conditions ...v1alpha1.StoreCondition) *scope.Rules {
	t.Helper()
	r, err := scope.New(&v1alpha1.ClusterStoreSpec{Conditions: conditions})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAdmits(t *testing.T) {
	selects := func(of ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{}
		for i := 0; i+1 < len(of); i += 2 {
			s.MatchLabels = map[string]string{of[i]: of[i+1]}
		}
		return s
	}
	cases := map[string]struct {
		reason     string
		conditions []v1alpha1.NamespaceCondition
		want       bool
	}{
		"None":          {"Without conditions every namespace is admitted.", nil, true},
		"Empty":         {"An entry that names no namespaces admits all.", []v1alpha1.NamespaceCondition{{}}, true},
		"EmptySelector": {"An empty selector admits all namespaces.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects()}}, true},
		"Selector":      {"A selector admits a namespace with its labels.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects("team", "shop")}}, true},
		"SelectorOther": {"A selector does not admit a namespace with other labels.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects("team", "bank")}}, false},
		"Name":          {"A name admits its namespace.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"bank", "shop"}}}, true},
		"NameOther":     {"A name does not admit another namespace.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"shop-2"}}}, false},
		"NameCase":      {"Names are case-sensitive.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"Shop"}}}, false},
		"Regex":         {"A regular expression admits a namespace that it matches.", []v1alpha1.NamespaceCondition{{NamespaceRegexes: []string{"sh.p"}}}, true},
		"RegexPart":     {"A regular expression must match the whole name.", []v1alpha1.NamespaceCondition{{NamespaceRegexes: []string{"sho", "hop"}}}, false},
		"RegexEither":   {"Each alternative of a regular expression must match the whole name.", []v1alpha1.NamespaceCondition{{NamespaceRegexes: []string{"a|sho"}}}, false},
		"Alternatives":  {"Selector, names and expressions are alternatives.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects("team", "bank"), Namespaces: []string{"shop"}}}, true},
		"Entries":       {"Entries are alternatives.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"bank"}}, {NamespaceRegexes: []string{"s.*"}}}, true},
		"AllOther":      {"Without a matching entry, the namespace is not admitted.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"bank"}}, {NamespaceRegexes: []string{"b.*"}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conditions := v1alpha1.ClusterGeneratorSpec{Conditions: tc.conditions}.AsStore(v1alpha1.ScopeSpec{}).Conditions
			if _, got := rules(t, conditions...).Grant("shop", map[string]string{"team": "shop"}); got != tc.want {
				t.Errorf("\n%s\nGrant(): admitted %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func keys(patterns ...string) v1alpha1.StoreCondition {
	return v1alpha1.StoreCondition{AllowedKeys: patterns}
}

// TestAllowedKeysAreNamed checks that the message says which keys are allowed.
func TestAllowedKeysAreNamed(t *testing.T) {
	cases := map[string]struct {
		reason    string
		condition v1alpha1.StoreCondition
		want      string
	}{
		"Some": {"The patterns of the namespace are named.", keys("${namespace}/*"), `use a key that matches ["shop/*"], or have the owner of the store add one to allowedKeys`},
		"Many": {"A long list is cut.", keys("a/*", "b/*", "c/*", "d/*", "e/*", "f/*"), `use a key that matches ["a/*" "b/*" "c/*" "d/*" "e/*"] and others, or have the owner of the store add one to allowedKeys`},
		"None": {"Patterns that only allow reads are no advice for a push.", v1alpha1.StoreCondition{AllowedKeys: []string{"shop/*"}, Access: v1alpha1.AccessReadOnly}, "no key is"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := `key "x" is not allowed in this namespace by spec.conditions of the store; ` + tc.want
			g, _ := rules(t, tc.condition).Grant("shop", nil)
			if got := g.Writes("x"); got == nil || got.Error() != want {
				t.Errorf("\n%s\nWrites(): %v, want %s", tc.reason, got, want)
			}
		})
	}
}

// TestReads holds allowed keys, and attempts to read other keys.
func TestReads(t *testing.T) {
	own := []v1alpha1.StoreCondition{keys("${namespace}/*", "common/db")}
	cases := map[string]struct {
		reason     string
		conditions []v1alpha1.StoreCondition
		key        string
		want       bool
	}{
		"NoKeys":        {"Without allowedKeys all keys are allowed, in any spelling.", []v1alpha1.StoreCondition{{}}, "../%2e", true},
		"Own":           {"The namespace's name is inserted into the pattern.", own, "shop/db", true},
		"Deep":          {"* matches slashes, too.", own, "shop/a/b/c", true},
		"Exact":         {"A pattern without * allows its one key.", own, "common/db", true},
		"Version":       {"A pattern with * allows versions of its keys.", own, "shop/db:3", true},
		"ExactVersion":  {"A pattern without * does not allow a version of its key.", own, "common/db:3", false},
		"ExactLonger":   {"A pattern without * does not allow a longer key.", own, "common/db2", false},
		"Other":         {"Keys of other namespaces are not allowed.", own, "bank/db", false},
		"OtherLonger":   {"Keys of a namespace whose name is longer are not allowed.", own, "shop-2/db", false},
		"Prefix":        {"The pattern must match from the start of the key.", own, "x/shop/db", false},
		"LeadingSlash":  {"A leading slash is not ignored.", own, "/shop/db", false},
		"Case":          {"Keys are case-sensitive.", own, "Shop/db", false},
		"LookAlike":     {"A letter that only looks the same does not match.", own, "ѕhop/db", false},
		"FullWidth":     {"A character that only looks like a slash does not match.", own, "shop／db", false},
		"Empty":         {"An empty key is not allowed.", own, "", false},
		"Up":            {".. is not allowed.", own, "shop/../bank/db", false},
		"UpAtEnd":       {".. is not allowed at the end.", own, "shop/a/..", false},
		"Here":          {". is not allowed as a segment.", own, "shop/./db", false},
		"DoubleSlash":   {"An empty segment is not allowed.", own, "shop//bank/db", false},
		"TrailingSlash": {"A trailing slash is not allowed.", own, "shop/db/", false},
		"Encoded":       {"Percent-encoded dots are not allowed.", own, "shop/%2e%2e/bank/db", false},
		"EncodedSlash":  {"A percent-encoded slash is not allowed.", own, "shop/..%2fbank", false},
		"Backslash":     {"A backslash is not allowed.", own, `shop/..\bank`, false},
		"Query":         {"A character with a meaning in URLs is not allowed.", own, "shop/db?version=1", false},
		"Fragment":      {"A URL fragment is not allowed.", own, "shop/db#x", false},
		"NUL":           {"A NUL, which ends a string in other languages, is not allowed.", own, "shop/db\x00", false},
		"Newline":       {"A newline is not allowed.", own, "shop/db\nx", false},
		"ARN":           {"An ARN names a secret anywhere, so a pattern must start with arn: to allow it.", []v1alpha1.StoreCondition{keys("*/db")}, "arn:aws:secretsmanager:eu-central-1:123456789012:secret:bank/db", false},
		"ARNCase":       {"The prefix of an ARN is compared without case.", []v1alpha1.StoreCondition{keys("*")}, "ARN:aws:secretsmanager:eu-central-1:123456789012:secret:bank/db", false},
		"ARNAllowed":    {"A pattern that starts with arn: allows matching ARNs.", []v1alpha1.StoreCondition{keys("arn:aws:secretsmanager:*:123456789012:secret:shop/*")}, "arn:aws:secretsmanager:eu-central-1:123456789012:secret:shop/db", true},
		"ARNOther":      {"A pattern that starts with arn: does not allow other ARNs.", []v1alpha1.StoreCondition{keys("arn:aws:secretsmanager:*:123456789012:secret:shop/*")}, "arn:aws:secretsmanager:eu-central-1:210987654321:secret:shop/db", false},
		"Project":       {"A full resource name of Google is treated like an ARN.", []v1alpha1.StoreCondition{keys("*-db")}, "projects/other/secrets/shop-db", false},
		"Middle":        {"* can be in the middle of a pattern.", []v1alpha1.StoreCondition{keys("a*b*c")}, "a-b-b-c", true},
		"MiddleNot":     {"All parts of a pattern must match, in their order.", []v1alpha1.StoreCondition{keys("a*b*c")}, "a-c-b", false},
		"MiddleOverlap": {"Parts of a pattern do not overlap.", []v1alpha1.StoreCondition{keys("ab*ba")}, "aba", false},
		"EntriesAdd":    {"The keys of all matching entries are allowed.", []v1alpha1.StoreCondition{keys("x"), keys("y")}, "y", true},
		"EntryOfOthers": {"The keys of entries for other namespaces are not allowed.", []v1alpha1.StoreCondition{keys("x"), {NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"bank"}}, AllowedKeys: []string{"y"}}}, "y", false},
		"ReadOnly":      {"An entry with access ReadOnly allows reads.", []v1alpha1.StoreCondition{{Access: v1alpha1.AccessReadOnly}}, "x", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, ok := rules(t, tc.conditions...).Grant("shop", nil)
			if !ok {
				t.Fatal("the namespace is not admitted")
			}
			if err := g.Reads(provider.Read{Ref: provider.Ref{Key: tc.key}}); (err == nil) != tc.want {
				t.Errorf("\n%s\nReads(%q): %v, want allowed %t", tc.reason, tc.key, err, tc.want)
			}
		})
	}
}

func TestFinds(t *testing.T) {
	cases := map[string]struct {
		reason string
		keys   []string
		search provider.Search
		want   bool
	}{
		"All":         {"Without allowedKeys every search is allowed.", nil, provider.NewSearch("", "x", nil), true},
		"Star":        {"The pattern * allows every search.", []string{"*"}, provider.NewSearch("", "x", nil), true},
		"Below":       {"A search is allowed if its path starts with the pattern before the *.", []string{"${namespace}/*"}, provider.NewSearch("shop/", "x", nil), true},
		"Deeper":      {"A search of a longer path is allowed.", []string{"${namespace}/*"}, provider.NewSearch("shop/a", "x", nil), true},
		"Everything":  {"A search without a path would search all keys, so it is refused.", []string{"${namespace}/*"}, provider.NewSearch("", "shop/.*", nil), false},
		"Tags":        {"A search by tags alone is refused, because other users can set tags.", []string{"${namespace}/*"}, provider.NewSearch("", "", map[string]string{"team": "shop"}), false},
		"Beginning":   {"A path without the final slash is refused: shop also matches shop-2.", []string{"${namespace}/*"}, provider.NewSearch("shop", "x", nil), false},
		"Up":          {".. is not allowed in a path.", []string{"${namespace}/*"}, provider.NewSearch("shop/../bank/", "x", nil), false},
		"Encoded":     {"Percent-encoded dots are not allowed in a path.", []string{"${namespace}/*"}, provider.NewSearch("shop/%2e%2e/", "x", nil), false},
		"Exact":       {"A pattern without * allows no search: longer keys also start with it.", []string{"shop/db"}, provider.NewSearch("shop/db", "x", nil), false},
		"Middle":      {"A pattern with text after its * allows no search.", []string{"shop/*/public"}, provider.NewSearch("shop/", "x", nil), false},
		"TwoStars":    {"A pattern with two * allows no search.", []string{"shop/*/public/*"}, provider.NewSearch("shop/a/public/", "x", nil), false},
		"DoubleSlash": {"An empty segment is not allowed in a path.", []string{"shop/*"}, provider.NewSearch("shop//", "x", nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, _ := rules(t, keys(tc.keys...)).Grant("shop", nil)
			if err := g.Reads(provider.Read{Search: tc.search}); (err == nil) != tc.want {
				t.Errorf("\n%s\nReads(%+v): %v, want allowed %t", tc.reason, tc.search, err, tc.want)
			}
		})
	}
}

func TestWrites(t *testing.T) {
	readOnly := keys("shop/*")
	readOnly.Access = v1alpha1.AccessReadOnly
	writable := keys("shop/mine")
	writable.Access = v1alpha1.AccessReadWrite
	cases := map[string]struct {
		reason     string
		conditions []v1alpha1.StoreCondition
		key        string
		want       bool
	}{
		"Free":     {"Without conditions writes are allowed.", nil, "x", true},
		"ReadOnly": {"An entry with access ReadOnly does not allow a write.", []v1alpha1.StoreCondition{readOnly}, "shop/mine", false},
		"Another":  {"Another entry can allow the write.", []v1alpha1.StoreCondition{readOnly, writable}, "shop/mine", true},
		"OnlyIts":  {"An entry that allows writes allows only its own keys.", []v1alpha1.StoreCondition{readOnly, writable}, "shop/other", false},
		"Evades":   {"Keys are checked as strictly as for reads.", []v1alpha1.StoreCondition{keys("shop/*")}, "shop/../bank", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g, _ := rules(t, tc.conditions...).Grant("shop", nil)
			if err := g.Writes(tc.key); (err == nil) != tc.want {
				t.Errorf("\n%s\nWrites(%q): %v, want allowed %t", tc.reason, tc.key, err, tc.want)
			}
		})
	}
}

func TestNew(t *testing.T) {
	cases := map[string]struct {
		reason    string
		condition v1alpha1.StoreCondition
		want      string
	}{
		"Regex":    {"The error of an invalid expression names its field.", v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceRegexes: []string{"a", "("}}}, "spec.conditions[0].namespaceRegexes[1]: "},
		"Selector": {"The error of an invalid selector names its field.", v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}}, "spec.conditions[0].namespaceSelector: "},
		"NoKey":    {"An empty pattern is an error.", v1alpha1.StoreCondition{AllowedKeys: []string{""}}, "spec.conditions[0].allowedKeys: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scope.New(&v1alpha1.ClusterStoreSpec{Conditions: []v1alpha1.StoreCondition{tc.condition}})
			if err == nil || provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(provider.Safe(err).Message, tc.want) {
				t.Errorf("\n%s\nNew(): %v, want an Invalid error that starts with %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestByLabels(t *testing.T) {
	got := map[string]bool{
		"none":     rules(t).ByLabels(),
		"names":    rules(t, v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"a"}}}).ByLabels(),
		"selector": rules(t, v1alpha1.StoreCondition{}, v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceSelector: &metav1.LabelSelector{}}}).ByLabels(),
	}
	if diff := cmp.Diff(map[string]bool{"none": false, "names": false, "selector": true}, got); diff != "" {
		t.Errorf("ByLabels(): -want, +got:\n%s", diff)
	}
}
