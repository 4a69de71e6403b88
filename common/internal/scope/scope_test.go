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
		"EmptySelector": {"{} matches all.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects()}}, true},
		"Selector":      {"Labels admit.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects("team", "shop")}}, true},
		"SelectorOther": {"Other labels do not.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects("team", "bank")}}, false},
		"Name":          {"A name admits.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"bank", "shop"}}}, true},
		"NameOther":     {"Another name does not.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"shop-2"}}}, false},
		"NameCase":      {"Names are as they are spelled.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"Shop"}}}, false},
		"Regex":         {"A regular expression admits.", []v1alpha1.NamespaceCondition{{NamespaceRegexes: []string{"sh.p"}}}, true},
		"RegexPart":     {"It must match the whole name.", []v1alpha1.NamespaceCondition{{NamespaceRegexes: []string{"sho", "hop"}}}, false},
		"RegexEither":   {"Also where it has alternatives.", []v1alpha1.NamespaceCondition{{NamespaceRegexes: []string{"a|sho"}}}, false},
		"Alternatives":  {"Selector, names and expressions are alternatives.", []v1alpha1.NamespaceCondition{{NamespaceSelector: selects("team", "bank"), Namespaces: []string{"shop"}}}, true},
		"Entries":       {"So are entries.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"bank"}}, {NamespaceRegexes: []string{"s.*"}}}, true},
		"AllOther":      {"None matches.", []v1alpha1.NamespaceCondition{{Namespaces: []string{"bank"}}, {NamespaceRegexes: []string{"b.*"}}}, false},
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

// TestReads holds what is allowed, and how one would try to get at more.
func TestReads(t *testing.T) {
	own := []v1alpha1.StoreCondition{keys("${namespace}/*", "common/db")}
	cases := map[string]struct {
		reason     string
		conditions []v1alpha1.StoreCondition
		key        string
		want       bool
	}{
		"NoKeys":        {"Without allowedKeys all keys are allowed, however they are spelled.", []v1alpha1.StoreCondition{{}}, "../%2e", true},
		"Own":           {"The namespace's name is put in.", own, "shop/db", true},
		"Deep":          {"* crosses slashes.", own, "shop/a/b/c", true},
		"Exact":         {"A pattern without * is one key.", own, "common/db", true},
		"Version":       {"A version of an allowed key is spelled below it.", own, "shop/db:3", true},
		"ExactVersion":  {"One key is one key.", own, "common/db:3", false},
		"ExactLonger":   {"And not those that begin like it.", own, "common/db2", false},
		"Other":         {"Keys of others are not.", own, "bank/db", false},
		"OtherLonger":   {"Nor those of a namespace that begins so.", own, "shop-2/db", false},
		"Prefix":        {"The pattern begins where the key does.", own, "x/shop/db", false},
		"LeadingSlash":  {"Also with a slash.", own, "/shop/db", false},
		"Case":          {"Letters are as they are.", own, "Shop/db", false},
		"LookAlike":     {"A letter that looks alike is another letter.", own, "ѕhop/db", false},
		"FullWidth":     {"So is a slash.", own, "shop／db", false},
		"Empty":         {"No key is no key.", own, "", false},
		"Up":            {"No way up.", own, "shop/../bank/db", false},
		"UpAtEnd":       {"Nor at the end.", own, "shop/a/..", false},
		"Here":          {"Nor a detour.", own, "shop/./db", false},
		"DoubleSlash":   {"Nor an empty part.", own, "shop//bank/db", false},
		"TrailingSlash": {"Nor one at the end.", own, "shop/db/", false},
		"Encoded":       {"Nor an encoded one.", own, "shop/%2e%2e/bank/db", false},
		"EncodedSlash":  {"Nor an encoded slash.", own, "shop/..%2fbank", false},
		"Backslash":     {"Nor a backslash.", own, `shop/..\bank`, false},
		"Query":         {"Nor what a URL gives a meaning.", own, "shop/db?version=1", false},
		"Fragment":      {"Nor a fragment.", own, "shop/db#x", false},
		"NUL":           {"Nor what ends a string elsewhere.", own, "shop/db\x00", false},
		"Newline":       {"Nor a line.", own, "shop/db\nx", false},
		"ARN":           {"An ARN names a secret anywhere.", []v1alpha1.StoreCondition{keys("*/db")}, "arn:aws:secretsmanager:eu-central-1:123456789012:secret:bank/db", false},
		"ARNCase":       {"However it is spelled.", []v1alpha1.StoreCondition{keys("*")}, "ARN:aws:secretsmanager:eu-central-1:123456789012:secret:bank/db", false},
		"ARNAllowed":    {"Where the pattern begins so it is meant.", []v1alpha1.StoreCondition{keys("arn:aws:secretsmanager:*:123456789012:secret:shop/*")}, "arn:aws:secretsmanager:eu-central-1:123456789012:secret:shop/db", true},
		"ARNOther":      {"But not another one.", []v1alpha1.StoreCondition{keys("arn:aws:secretsmanager:*:123456789012:secret:shop/*")}, "arn:aws:secretsmanager:eu-central-1:210987654321:secret:shop/db", false},
		"Project":       {"A full resource name is one, too.", []v1alpha1.StoreCondition{keys("*-db")}, "projects/other/secrets/shop-db", false},
		"Middle":        {"* may be in the middle.", []v1alpha1.StoreCondition{keys("a*b*c")}, "a-b-b-c", true},
		"MiddleNot":     {"All parts must be there.", []v1alpha1.StoreCondition{keys("a*b*c")}, "a-c-b", false},
		"MiddleOverlap": {"And not twice the same.", []v1alpha1.StoreCondition{keys("ab*ba")}, "aba", false},
		"EntriesAdd":    {"What entries allow adds up.", []v1alpha1.StoreCondition{keys("x"), keys("y")}, "y", true},
		"EntryOfOthers": {"But only what the namespace's entries allow.", []v1alpha1.StoreCondition{keys("x"), {NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"bank"}}, AllowedKeys: []string{"y"}}}, "y", false},
		"ReadOnly":      {"What may only be read may be read.", []v1alpha1.StoreCondition{{Access: v1alpha1.AccessReadOnly}}, "x", true},
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
		"All":         {"Who may read all may look for all.", nil, provider.NewSearch("", "x", nil), true},
		"Star":        {"* is all.", []string{"*"}, provider.NewSearch("", "x", nil), true},
		"Below":       {"What begins with the pattern is allowed.", []string{"${namespace}/*"}, provider.NewSearch("shop/", "x", nil), true},
		"Deeper":      {"Also further down.", []string{"${namespace}/*"}, provider.NewSearch("shop/a", "x", nil), true},
		"Everything":  {"Without a path all would be looked at.", []string{"${namespace}/*"}, provider.NewSearch("", "shop/.*", nil), false},
		"Tags":        {"Tags are no bound: others set them.", []string{"${namespace}/*"}, provider.NewSearch("", "", map[string]string{"team": "shop"}), false},
		"Beginning":   {"shop is also the beginning of shop-2.", []string{"${namespace}/*"}, provider.NewSearch("shop", "x", nil), false},
		"Up":          {"No way up.", []string{"${namespace}/*"}, provider.NewSearch("shop/../bank/", "x", nil), false},
		"Encoded":     {"Nor an encoded one.", []string{"${namespace}/*"}, provider.NewSearch("shop/%2e%2e/", "x", nil), false},
		"Exact":       {"A key that begins like the allowed one is another.", []string{"shop/db"}, provider.NewSearch("shop/db", "x", nil), false},
		"Middle":      {"Not all below has the end of the pattern.", []string{"shop/*/public"}, provider.NewSearch("shop/", "x", nil), false},
		"TwoStars":    {"What follows the first * would have to be there.", []string{"shop/*/public/*"}, provider.NewSearch("shop/a/public/", "x", nil), false},
		"DoubleSlash": {"Nor an empty part.", []string{"shop/*"}, provider.NewSearch("shop//", "x", nil), false},
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
		"Free":     {"Without conditions the store alone decides.", nil, "x", true},
		"ReadOnly": {"What may only be read may not be written.", []v1alpha1.StoreCondition{readOnly}, "shop/mine", false},
		"Another":  {"Unless another entry allows it.", []v1alpha1.StoreCondition{readOnly, writable}, "shop/mine", true},
		"OnlyIts":  {"Which counts for its keys.", []v1alpha1.StoreCondition{readOnly, writable}, "shop/other", false},
		"Evades":   {"Keys are as strict as for a read.", []v1alpha1.StoreCondition{keys("shop/*")}, "shop/../bank", false},
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
		"Regex":    {"An expression that cannot be read names its field.", v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceRegexes: []string{"a", "("}}}, "spec.conditions[0].namespaceRegexes[1]: "},
		"Selector": {"So does a selector.", v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}}, "spec.conditions[0].namespaceSelector: "},
		"NoKey":    {"A pattern that is empty is a slip.", v1alpha1.StoreCondition{AllowedKeys: []string{""}}, "spec.conditions[0].allowedKeys: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scope.New(&v1alpha1.ClusterStoreSpec{Conditions: []v1alpha1.StoreCondition{tc.condition}})
			if err == nil || provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(provider.Safe(err).Message, tc.want) {
				t.Errorf("\n%s\nNew(): %v, want an Invalid error that begins with %q", tc.reason, err, tc.want)
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
