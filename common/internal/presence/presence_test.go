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
			"a Kind of the catalog has a value in the chart", v1alpha1.StoreRef{Kind: "AWSSecretsManager"},
			"no running module serves AWSSecretsManager; set provider-aws.enabled=true in the chart",
		},
		"Twin": {
			"so has its cluster twin", v1alpha1.StoreRef{Kind: "ClusterVaultKV"},
			"no running module serves ClusterVaultKV; set provider-vault.enabled=true in the chart",
		},
		"Group": {
			"a group does no harm", v1alpha1.StoreRef{APIVersion: "gcp.direct-secrets.io/v1", Kind: "GCPAccessToken"},
			"no running module serves GCPAccessToken; set provider-gcp.enabled=true in the chart",
		},
		"WrongGroup": {
			"the group leads to the module, and the Kind is none of it", v1alpha1.StoreRef{APIVersion: "aws.direct-secrets.io/v1alpha1", Kind: "VaultKV"},
			"no running module serves VaultKV of aws.direct-secrets.io; correct the kind, or install a version of provider-aws that has it",
		},
		"Unknown": {
			"a Kind that the catalog lacks", v1alpha1.StoreRef{Kind: "AwsSecretsManager"},
			"no running module serves AwsSecretsManager; correct the kind, or install the module that brings it",
		},
		"UnknownGroup": {
			"a group that the catalog lacks", v1alpha1.StoreRef{APIVersion: "acme.example.com/v1", Kind: "VaultKV"},
			"no running module serves VaultKV of acme.example.com; correct apiVersion and kind, or install the module that brings it",
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
		"":                     "nothing names no module",
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
		"Patch":       {"patches never matter", "v0.1.0", "v0.1.9", false},
		"Minor":       {"the version before works with this one", "v0.9.0", "v0.10.0", false},
		"TwoMinors":   {"the one before that does not", "v0.1.0", "v0.3.0", true},
		"Major":       {"another major version never does", "v1.1.0", "v2.1.0", true},
		"PreRelease":  {"what comes before a release counts as it", "v0.3.0-rc.1", "v0.1.0", true},
		"Pseudo":      {"a commit counts as the release that it comes before", "v0.2.1-0.20260101000000-0123456789ab", "v0.1.0", false},
		"Unreleased":  {"a commit before any release is not known", "v0.0.0-20260101000000-0123456789ab", "v0.9.0", false},
		"Unknown":     {"what is not known is never too far", "", "v9.0.0", false},
		"Development": {"nor is what was built in a tree", "(devel)", "v9.0.0", false},
		"Odd":         {"nor what is no version", "vone.two.three", "v9.0.0", false},
		"Short":       {"nor what is half a version", "v1", "v9.0.0", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := []bool{Skewed(tc.a, tc.b), Skewed(tc.b, tc.a)}; got[0] != tc.want || got[1] != tc.want {
				t.Errorf("\n%s\nSkewed(%q, %q) and back: %v, want %t", tc.reason, tc.a, tc.b, got, tc.want)
			}
		})
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
		"Whole":   {"what was encoded is read", `{"module":"a.direct-secrets.io","name":"a","kinds":[{"group":"a.direct-secrets.io","kind":"A"}]}`, true},
		"Newer":   {"what a later version tells is passed over", `{"module":"a","name":"a","kinds":[{"kind":"A","later":1}],"later":{"x":[1]}}`, true},
		"None":    {"without an annotation nothing is told", ``, false},
		"Cut":     {"half of it is nothing", `{"module":"a","name":`, false},
		"Nobody":  {"it must say whose it is", `{"kinds":[]}`, false},
		"OddType": {"a field of another type is damage", `{"module":"a","name":"a","kinds":"A"}`, false},
		"List":    {"so is a list", `[]`, false},
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
