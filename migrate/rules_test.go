package migrate

import (
	"regexp"
	"testing"
)

func TestVaultKey(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason             string
		key, path, version string
		want               string
	}{
		"Plain":         {"a key is below the path of the store", "shop/db", "secret", "v2", "shop/db"},
		"Mount":         {"the path of the store is taken out", "secret/shop/db", "secret", "v2", "shop/db"},
		"Data":          {"and data behind it", "secret/data/shop/db", "secret", "v2", "shop/db"},
		"DataAlone":     {"but data alone is a part of the key", "data/shop/db", "secret", "v2", "data/shop/db"},
		"DataV1":        {"and in version 1 it is always one", "secret/data/shop/db", "secret", "v1", "data/shop/db"},
		"Once":          {"only the first path is taken out", "secret/secret/db", "secret", "v2", "secret/db"},
		"DataOnce":      {"and the first data", "secret/data/data/db", "secret", "v2", "data/db"},
		"Deep":          {"a path can have several parts", "team/kv/data/db", "team/kv", "v2", "db"},
		"Part":          {"a part that begins like the path is another one", "secrets/db", "secret", "v2", "secrets/db"},
		"Default":       {"version 2 is the default", "secret/data/db", "secret", "", "db"},
		"NoPath":        {"without a path nothing is taken out", "secret/data/db", "", "v2", "secret/data/db"},
		"OnlyThePath":   {"the path alone is a key", "secret", "secret", "v2", "secret"},
		"SlashInFront":  {"a slash in front hides the path", "/secret/db", "secret", "v2", "/secret/db"},
		"DataInThePath": {"a path can end in data", "a/data/b", "a/data", "v2", "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := vaultKey(tc.key, tc.path, tc.version); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWholeName compares expressions that match a part of a name with those that match all of it.
func TestWholeName(t *testing.T) {
	t.Parallel()
	names := []string{"shop", "shop-a", "a-shop", "a-shop-b", "mail", "dev", "test", "developer", "team1", "1team", "a.b", "axb", ""}
	for _, expression := range []string{
		"shop", "^shop", "shop$", "^shop$", "^shop-.*$", ".*", "^.*$", "a|b", "^(dev|test)$", "^dev|test$", `^team\d$`, `a\.b`, "[^a]shop", "(?i)^SHOP", "^", "$", "^$", "",
	} {
		before, after := regexp.MustCompile(expression), regexp.MustCompile("^(?:"+wholeName(expression)+")$")
		for _, n := range names {
			if want, got := before.MatchString(n), after.MatchString(n); want != got {
				t.Errorf("%q became %q, which matches %q: %t, want %t", expression, wholeName(expression), n, got, want)
			}
		}
	}
}

func TestLiteral(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a": "a", "{{ a }}": `{{ "{{ a }}" }}`, `"{{`: `{{ "\"{{" }}`} {
		if got := literal(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}
