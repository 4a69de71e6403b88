package keyvault

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestName(t *testing.T) {
	cases := map[string]struct {
		reason, key string
		want        string
		class       provider.Class
	}{
		"Plain":       {"A key without a prefix is the name of a secret.", "one", "secrets/one", ""},
		"Secret":      {"The prefix of secrets can be omitted.", "secret/one", "secrets/one", ""},
		"Case":        {"Key Vault ignores the case of names.", "One", "secrets/one", ""},
		"Certificate": {"A certificate is not the secret of the same name.", "cert/one", "certificates/one", ""},
		"Invalid":     {"A name that cannot exist is no other name.", "one/two", "", provider.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&Client{}).Name(t.Context(), tc.key)
			class := provider.Class("")
			if err != nil {
				class = provider.ClassOf(err)
			}
			if diff := cmp.Diff([]string{tc.want, string(tc.class)}, []string{got.Key, string(class)}); diff != "" {
				t.Errorf("%s\nname and class: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
