package presence

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestHint(t *testing.T) {
	catalog := Catalog{}
	for _, module := range []string{
		"provider-aws=AWSSecretsManager.aws.direct-secrets.io,AWSParameterStore.aws.direct-secrets.io",
		"provider-vault=VaultKV.vault.direct-secrets.io", "provider-gcp=ClusterGCPAccessToken.gcp.direct-secrets.io",
	} {
		if err := catalog.Set(module); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		ref    v1alpha1.StoreRef
		want   string
	}{
		"Known": {
			"a Kind in the catalog has a value in the chart", v1alpha1.StoreRef{Kind: "AWSSecretsManager"},
			"no running module serves AWSSecretsManager; set provider-aws.enabled=true in the chart",
		},
		"Twin": {
			"a cluster twin has the value of its Kind", v1alpha1.StoreRef{Kind: "ClusterVaultKV"},
			"no running module serves ClusterVaultKV; set provider-vault.enabled=true in the chart",
		},
		"Group": {
			"the group in the reference matches", v1alpha1.StoreRef{APIVersion: "gcp.direct-secrets.io/v1", Kind: "GCPAccessToken"},
			"no running module serves GCPAccessToken; set provider-gcp.enabled=true in the chart",
		},
		"WrongGroup": {
			"the group names the module, which does not have the Kind", v1alpha1.StoreRef{APIVersion: "aws.direct-secrets.io/v1alpha1", Kind: "VaultKV"},
			"no running module serves VaultKV of aws.direct-secrets.io; correct the kind, or install a version of provider-aws that has it",
		},
		"Unknown": {
			"the catalog does not have the Kind", v1alpha1.StoreRef{Kind: "Infisical"},
			"no running module serves Infisical; correct the kind, or install the module that has this Kind",
		},
		"Case": {
			"a Kind differs in case", v1alpha1.StoreRef{Kind: "AwsSecretsManager"},
			"no running module serves AwsSecretsManager; did you mean AWSSecretsManager? Otherwise install the module that has this Kind",
		},
		"Plural": {
			"a cluster Kind differs in a plural", v1alpha1.StoreRef{Kind: "ClusterAWSSecretManager"},
			"no running module serves ClusterAWSSecretManager; did you mean ClusterAWSSecretsManager? Otherwise install the module that has this Kind",
		},
		"OtherLetter": {
			"one letter is another one", v1alpha1.StoreRef{Kind: "VaultKB"},
			"no running module serves VaultKB; did you mean VaultKV? Otherwise install the module that has this Kind",
		},
		"Exchanged": {
			"two letters are exchanged", v1alpha1.StoreRef{Kind: "ClusterValutKV"},
			"no running module serves ClusterValutKV; did you mean ClusterVaultKV? Otherwise install the module that has this Kind",
		},
		"MissingLetter": {
			"a letter is missing within the Kind", v1alpha1.StoreRef{Kind: "VultKV"},
			"no running module serves VultKV; did you mean VaultKV? Otherwise install the module that has this Kind",
		},
		"OtherLetterOfGroup": {
			"one letter is another one, and the group is named", v1alpha1.StoreRef{APIVersion: "vault.direct-secrets.io/v1", Kind: "ClusterVaultKB"},
			"no running module serves ClusterVaultKB of vault.direct-secrets.io; did you mean ClusterVaultKV? Otherwise install a version of provider-vault that has this Kind",
		},
		"Part": {
			"a part of a Kind is written", v1alpha1.StoreRef{Kind: "Vault"},
			"no running module serves Vault; did you mean VaultKV? Otherwise install the module that has this Kind",
		},
		"ESO": {
			"a Kind of ESO is no mistake of spelling", v1alpha1.StoreRef{Kind: "ClusterSecretStore"},
			"ClusterSecretStore is a Kind of External Secrets Operator; name the Kind of the store itself, such as AWSSecretsManager, or convert the manifests with dsctl migrate",
		},
		"UnknownGroup": {
			"the catalog does not have the group", v1alpha1.StoreRef{APIVersion: "acme.example.com/v1", Kind: "VaultKV"},
			"no running module serves VaultKV of acme.example.com; correct apiVersion and kind, or install the module that has this Kind",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, catalog.hint(&tc.ref)); diff != "" {
				t.Errorf("\n%s\nHint(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCatalogSet(t *testing.T) {
	for text, reason := range map[string]string{
		"":                     "an empty text names no module",
		"provider-aws":         "a module without Kinds",
		"=VaultKV.vault.x.io":  "Kinds without a module",
		"provider-aws=":        "an empty list",
		"provider-aws=VaultKV": "a Kind without a group",
		"a=B.c.io,,":           "an empty Kind",
	} {
		c := Catalog{{Group: "x.io", Kind: "X"}: "kept"}
		if err := c.Set(text); err == nil || len(c) != 1 {
			t.Errorf("\n%s\nSet(%q): %v, %s; want an error and no change", reason, text, err, c.String())
		}
	}
}

func TestSkewed(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"Same":        {"the same version", "v0.1.0", "v0.1.0", false},
		"Patch":       {"patch versions are compatible", "v0.1.0", "v0.1.9", false},
		"Minor":       {"the previous minor version is compatible", "v0.9.0", "v0.10.0", false},
		"TwoMinors":   {"the minor version before that is not", "v0.1.0", "v0.3.0", true},
		"Major":       {"another major version is not compatible", "v1.1.0", "v2.1.0", true},
		"PreRelease":  {"a pre-release counts as its release", "v0.3.0-rc.1", "v0.1.0", true},
		"Pseudo":      {"a commit counts as the release after it", "v0.2.1-0.20260101000000-0123456789ab", "v0.1.0", false},
		"Unreleased":  {"a commit before any release is unknown", "v0.0.0-20260101000000-0123456789ab", "v0.9.0", false},
		"Unknown":     {"an unknown version is never too far apart", "", "v9.0.0", false},
		"Development": {"a local build is unknown", "(devel)", "v9.0.0", false},
		"Odd":         {"an invalid version is unknown", "vone.two.three", "v9.0.0", false},
		"Short":       {"an incomplete version is unknown", "v1", "v9.0.0", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := Member{Version: tc.a}, Member{Version: tc.b}
			if got := []bool{Skewed(a, b), Skewed(b, a)}; got[0] != tc.want || got[1] != tc.want {
				t.Errorf("\n%s\nSkewed(%q, %q) and back: %v, want %t", tc.reason, tc.a, tc.b, got, tc.want)
			}
		})
	}
}

// TestSkewedRange lets one of two operators state the versions that it works with.
func TestSkewedRange(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     Range
		want   bool
	}{
		"Narrow":  {"the other version is before the range", Range{"v0.2.0", "v0.4.0"}, true},
		"Exact":   {"the range begins with the other version", Range{"v0.1.0", "v0.4.0"}, false},
		"End":     {"the range ends with the other version", Range{"v0.0.0", "v0.1.0"}, true},
		"Invalid": {"an invalid range includes all", Range{"a", "b"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := Member{Version: "v0.2.0", Common: &tc.of}, Member{Version: "v0.1.0"}
			if got := []bool{Skewed(a, b), Skewed(b, a)}; got[0] != tc.want || got[1] != tc.want {
				t.Errorf("%s: %v, want %t", tc.reason, got, tc.want)
			}
		})
	}
	if diff := cmp.Diff(&Range{"v1.8.0", "v1.11.0"}, WorksWith("v1.9.3")); diff != "" {
		t.Errorf("what v1.9.3 works with: -want, +got:\n%s", diff)
	}
}

func TestLeaseNames(t *testing.T) {
	long := strings.Repeat("a", 300)
	members := []Member{
		{Name: "provider-aws"},
		{Name: "provider-vault"},
		{Name: "provider-aws", Class: "blue"},
		{Name: "provider-aws", Class: "Team A/B"},
		{Name: "provider-aws", Class: long},
		{Name: "provider-aws", Namespaces: []string{"blue"}},
		{Name: "provider-aws", Namespaces: []string{"blue", "red"}},
		{Name: "provider-aws", Class: "blue", Namespaces: []string{"red"}},
		{Name: long},
		{Name: long, Class: "blue"},
		{Name: "Provider_AWS"},
	}
	seen := map[string]Member{}
	for _, m := range members {
		name := leaseName(m)
		if msgs := validation.IsDNS1123Subdomain(name); len(msgs) > 0 {
			t.Errorf("%+v: the name %q is not valid: %v", m, name, msgs)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%+v and %+v have the same Lease %q", m, other, name)
		}
		seen[name] = m
	}
	if got, want := leaseName(members[0]), "provider-aws.presence.direct-secrets.io"; got != want {
		t.Errorf("name is %q, want %q", got, want)
	}
	a, b := Member{Name: "x", Namespaces: []string{"b", "a", "a"}}.normal(), Member{Name: "x", Namespaces: []string{"a", "b"}}.normal()
	if leaseName(a) != leaseName(b) || dutiesName(a) != dutiesName(b) {
		t.Error("the order of namespaces matters")
	}
	if got := dutiesName(Member{Name: "provider-aws", Class: "blue"}); got != "shared-duties.direct-secrets.io" || dutiesName(a) == got {
		t.Errorf("duties are %q for all namespaces and %q for some", got, dutiesName(a))
	}
}

func TestDecode(t *testing.T) {
	cases := map[string]struct {
		reason, annotation string
		want               bool
	}{
		"Whole":   {"an encoded Member is decoded", `{"module":"a.direct-secrets.io","name":"a","kinds":[{"group":"a.direct-secrets.io","kind":"A"}]}`, true},
		"Newer":   {"unknown fields of a later version are ignored", `{"module":"a","name":"a","kinds":[{"kind":"A","later":1}],"later":{"x":[1]}}`, true},
		"None":    {"there is no annotation", ``, false},
		"Cut":     {"the JSON is truncated", `{"module":"a","name":`, false},
		"NoName":  {"module and name are missing", `{"kinds":[]}`, false},
		"OddType": {"a field has another type", `{"module":"a","name":"a","kinds":"A"}`, false},
		"List":    {"a list is invalid", `[]`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{memberAnnotation: tc.annotation}}}
			if m, ok := Decode(l); ok != tc.want {
				t.Errorf("\n%s\nDecode(): %+v, %t, want %t", tc.reason, m, ok, tc.want)
			}
		})
	}
}
