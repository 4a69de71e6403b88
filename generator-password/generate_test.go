package main

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-password/manifests"
)

// serving returns a ClusterPassword that serves some namespaces, or all if there are no conditions.
func serving(s spec, conditions ...common.NamespaceCondition) *v1alpha1.ClusterPassword {
	g := cluster("", s)
	g.Spec.Conditions = conditions
	return g
}

// byOperator says in tables of results that no service makes the values.
const byOperator = "the operator itself"

// TestGenerates generates passwords for objects, from the first value to the deletion.
func TestGenerates(t *testing.T) {
	const ns = "generates"
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "generator-password", manifests.Permissions, newOperator)
	cases := map[string]struct {
		settings wanted
		keys     []string
		// like is a pattern that each password matches.
		like string
	}{
		"Default": {wanted{}, []string{"password"}, `^[ -~]{24}$`},
		"Keys":    {wanted{Length: 32, Symbols: new(int32(0)), SecretKeys: []string{"a", "b.c", "D_e"}}, []string{"a", "b.c", "D_e"}, `^[0-9A-Za-z]{32}$`},
		"Hex":     {wanted{Length: 20, Encoding: v1alpha1.EncodingHex}, []string{"password"}, `^[0-9a-f]{40}$`},
		"Base64":  {wanted{Length: 20, Encoding: v1alpha1.EncodingBase64}, []string{"password"}, `^[0-9A-Za-z+/]{27}=$`},
		"Base32":  {wanted{Length: 20, Encoding: v1alpha1.EncodingBase32}, []string{"password"}, `^[A-Z2-7]{32}$`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := spec{PasswordSettings: tc.settings}
			suite.Generates(t, operatortest.Generation{Generator: namespaced(ns, "own", s), Namespace: ns, Service: byOperator, Secrets: tc.keys})
			suite.Generates(t, operatortest.Generation{Generator: cluster("shared", s), Namespace: ns, Service: byOperator, Secrets: tc.keys})

			suite.For(t).Create(namespaced(ns, "alike", s))
			es := operatortest.Generated(ns, "alike", "Password", "alike")
			suite.For(t).Create(es)
			seen := map[string]bool{}
			for key, password := range suite.For(t).Synced(es) {
				if !regexp.MustCompile(tc.like).MatchString(password) {
					t.Errorf("the password of %d characters under %q does not match %s", len(password), key, tc.like)
				}
				seen[password] = true
			}
			if len(seen) != len(tc.keys) {
				t.Errorf("%d passwords for %d keys, want one for each", len(seen), len(tc.keys))
			}
			suite.For(t).End(es)
		})
	}
}

// TestKeepPrevious keeps the previous password next to the present one, as long as the generator is configured
// to.
func TestKeepPrevious(t *testing.T) {
	const ns = "keep-previous"
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "generator-password", manifests.Permissions, newOperator)
	g := namespaced(ns, "db", spec{GeneratorSpec: common.GeneratorSpec{KeepPrevious: true}})
	suite.For(t).Create(g)
	es := operatortest.Generated(ns, "db", "Password", "db")
	suite.For(t).Create(es)
	was := suite.For(t).Synced(es)
	if len(was) != 1 {
		t.Errorf("%d keys, and there is no password before the first", len(was))
	}
	for _, request := range []string{"1", "2"} {
		suite.For(t).Refresh(es, request)
		is := suite.For(t).Synced(es)
		if len(is) != 2 || is["password"] == was["password"] || is["password-previous"] != was["password"] {
			t.Errorf("refresh %s: the Secret has %d keys, want a new password and the previous one", request, len(is))
		}
		was = is
	}
	suite.For(t).Ready(g) // This waits until the operator has read the changed generator.
	g.Spec.KeepPrevious = false
	if err := suite.API.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"password": was["password"]}
	controlplane.Eventually(t, func() string { return cmp.Diff(want, suite.For(t).In(ns).Data("db")) })
	suite.For(t).End(es)
}

// TestGenerateExamples applies the example of the docs in two namespaces: one that its ClusterPassword serves,
// and one that it does not.
func TestGenerateExamples(t *testing.T) {
	suite.For(t).Namespace("shop", map[string]string{"passwords": "generated"})
	suite.For(t).Namespace("garden", nil)
	suite.Start(t, "generator-password", manifests.Permissions, newOperator)
	suite.Apply(t, operatortest.Example(t, manifests.Examples, "password.yaml"), func(*unstructured.Unstructured) {})
	outside := operatortest.Generated("garden", "sessions", "ClusterPassword", "sessions")
	suite.For(t).Create(outside)

	for name, want := range map[string]map[string]string{
		"shop-db":  {"password": `^[0-9A-Za-z._+-]{32}$`},
		"sessions": {"signing-key": `^[0-9A-Za-z]{64}$`, "encryption-key": `^[0-9A-Za-z]{64}$`},
	} {
		es := operatortest.Generated("shop", name, "", "")
		got := suite.For(t).Synced(es)
		if len(got) != len(want) {
			t.Errorf("%s has %d keys, want %d", name, len(got), len(want))
		}
		for key, like := range want {
			if !regexp.MustCompile(like).MatchString(got[key]) {
				t.Errorf("%s: the password of %d characters under %q does not match %s", name, len(got[key]), key, like)
			}
		}
	}
	controlplane.Eventually(t, func() string { return cmp.Diff("False Forbidden", suite.For(t).Ready(outside)) })
}

// TestBadGenerators checks that objects wait, and that their condition names the fix.
func TestBadGenerators(t *testing.T) {
	const ns = "bad-generators"
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "generator-password", manifests.Permissions, newOperator)
	// Each spec passes the rules of the CRD.
	cases := map[string]struct {
		why     string
		spec    spec
		message string
	}{
		"Digits":   {"A password of only digits is too weak.", spec{PasswordSettings: wanted{Length: 19, Digits: new(int32(19)), AllowRepeat: true}}, "spec.length: a password of 19 characters"},
		"Symbols":  {"A password of one repeated symbol is too weak.", spec{PasswordSettings: wanted{Symbols: new(int32(24)), SymbolCharacters: new("-"), AllowRepeat: true}}, "spec.length: a password of 24 characters"},
		"Previous": {"Two values with one key are rejected.", spec{GeneratorSpec: common.GeneratorSpec{KeepPrevious: true}, PasswordSettings: wanted{SecretKeys: []string{"a", "a-previous"}}}, "spec.secretKeys"},
	}
	made := func() []string { return suite.Made(t, &v1alpha1.Password{}, &v1alpha1.ClusterPassword{}) }
	bad := map[string]operatortest.BadStore{}
	for name, tc := range cases {
		bad[name] = operatortest.BadStore{Why: tc.why, Store: namespaced(ns, "", tc.spec), Want: common.ReasonStoreInvalidSpec, Message: tc.message}
	}
	t.Run("Password", func(t *testing.T) { suite.BadStores(t, ns, bad, made) })
	bad = map[string]operatortest.BadStore{}
	for name, tc := range cases {
		bad[name] = operatortest.BadStore{Why: tc.why, Store: serving(tc.spec), Want: common.ReasonStoreInvalidSpec, Message: tc.message}
	}
	t.Run("ClusterPassword", func(t *testing.T) { suite.BadStores(t, ns, bad, made) })
	t.Run("Ungated", func(t *testing.T) {
		suite.Ungated(t, ns, namespaced(ns, "ungated", cases["Digits"].spec), `Invalid: Password "ungated": spec.length: a password of 19 characters`)
	})
	t.Run("Excluded", func(t *testing.T) {
		g := serving(spec{}, common.NamespaceCondition{Namespaces: []string{"elsewhere"}})
		g.Name = "elsewhere"
		suite.Excludes(t, ns, g)
	})
}
