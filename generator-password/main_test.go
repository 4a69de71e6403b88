package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-password/manifests"
	"github.com/direct-secrets/direct-secrets/generator-password/password"
)

var suite operatortest.Suite

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func TestExamples(t *testing.T) {
	suite.Examples(t, operatortest.Example(t, manifests.Examples, "password.yaml"))
}

type (
	spec   = v1alpha1.PasswordSpec
	wanted = v1alpha1.PasswordSettings
)

func namespaced(namespace, name string, s spec) *v1alpha1.Password {
	return &v1alpha1.Password{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: s}
}

func cluster(name string, s spec) *v1alpha1.ClusterPassword {
	return &v1alpha1.ClusterPassword{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterPasswordSpec{PasswordSpec: s}}
}

// TestCRD checks which specs the API server accepts, and that the code agrees: a rule that is stricter than the
// code would reject a valid spec. The tests of the code cover what no rule can check.
func TestCRD(t *testing.T) {
	rules := common.GeneratorSpec{RotationInterval: "720h", KeepPrevious: true}
	all := "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	cases := map[string]struct {
		reason string
		spec   spec
		want   string // part of the error
	}{
		"Empty":           {"An empty spec is valid, because every field has a default.", spec{}, ""},
		"Everything":      {"All fields together are valid.", spec{GeneratorSpec: rules, PasswordSettings: wanted{Length: 40, Digits: new(int32(4)), Symbols: new(int32(4)), SymbolCharacters: &all, NoUpper: true, AllowRepeat: true, SecretKeys: []string{"a", "b.c"}, Encoding: v1alpha1.EncodingHex}}, ""},
		"Long":            {"A length alone is valid.", spec{PasswordSettings: wanted{Length: 92}}, ""},
		"LongNoUpper":     {"The largest length without repeats and upper case is valid.", spec{PasswordSettings: wanted{Length: 66, NoUpper: true}}, ""},
		"Longest":         {"The maximum length is accepted.", spec{PasswordSettings: wanted{Length: 4096, AllowRepeat: true}}, ""},
		"TooLong":         {"A length above the maximum is rejected.", spec{PasswordSettings: wanted{Length: 4097, AllowRepeat: true}}, "spec.length"},
		"Short":           {"The minimum length is accepted.", spec{PasswordSettings: wanted{Length: 11}}, ""},
		"TooShort":        {"A length with less than 64 bits is rejected.", spec{PasswordSettings: wanted{Length: 10}}, "less than 64 bits"},
		"Negative":        {"A negative length is rejected.", spec{PasswordSettings: wanted{Length: -1}}, "spec.length"},
		"NegativeDigits":  {"A negative number of digits is rejected.", spec{PasswordSettings: wanted{Digits: new(int32(-1))}}, "spec.digits"},
		"NegativeSymbols": {"A negative number of symbols is rejected.", spec{PasswordSettings: wanted{Symbols: new(int32(-1))}}, "spec.symbols"},
		"DoNotFit":        {"Digits and symbols that exceed the default length are rejected.", spec{PasswordSettings: wanted{Digits: new(int32(10)), Symbols: new(int32(15))}}, "digits and symbols together must not be more than length"},
		"DigitsDoNotFit":  {"Digits that exceed the default length are rejected.", spec{PasswordSettings: wanted{Length: 11, Digits: new(int32(12)), AllowRepeat: true}}, "digits and symbols together must not be more than length"},
		"Fit":             {"A password without letters is accepted.", spec{PasswordSettings: wanted{Digits: new(int32(10)), Symbols: new(int32(14))}}, ""},
		"DigitsOnce":      {"More than ten digits without repeats are rejected.", spec{PasswordSettings: wanted{Digits: new(int32(11))}}, "digits: only 10 different digits exist"},
		"DigitsAgain":     {"More than ten digits with repeats are accepted.", spec{PasswordSettings: wanted{Digits: new(int32(11)), AllowRepeat: true}}, ""},
		"SymbolsOnce":     {"More than 30 symbols without repeats are rejected.", spec{PasswordSettings: wanted{Length: 40, Symbols: new(int32(31))}}, "symbols: there are fewer symbolCharacters"},
		"OwnOnce":         {"More symbols than symbolCharacters without repeats are rejected.", spec{PasswordSettings: wanted{Symbols: new(int32(4)), SymbolCharacters: new("-_.")}}, "symbols: there are fewer symbolCharacters"},
		"OwnAgain":        {"More symbols than symbolCharacters with repeats are accepted.", spec{PasswordSettings: wanted{Symbols: new(int32(4)), SymbolCharacters: new("-_."), AllowRepeat: true}}, ""},
		"LettersOnce":     {"More than 52 letters without repeats are rejected.", spec{PasswordSettings: wanted{Length: 64, Digits: new(int32(5)), Symbols: new(int32(5))}}, "length: there are fewer different characters"},
		"LowerOnce":       {"More than 26 letters without repeats and upper case are rejected.", spec{PasswordSettings: wanted{Length: 67, NoUpper: true}}, "length: there are fewer different characters"},
		"AllOnce":         {"More than 92 characters without repeats are rejected.", spec{PasswordSettings: wanted{Length: 93}}, "length: there are fewer different characters"},
		"AllOwnOnce":      {"With fewer symbolCharacters the maximum without repeats is lower.", spec{PasswordSettings: wanted{Length: 64, SymbolCharacters: new("-")}}, "length: there are fewer different characters"},
		"Letter":          {"A letter as a symbol is rejected.", spec{PasswordSettings: wanted{SymbolCharacters: new("-a")}}, "must be printable ASCII characters"},
		"Digit":           {"A digit as a symbol is rejected.", spec{PasswordSettings: wanted{SymbolCharacters: new("0-")}}, "must be printable ASCII characters"},
		"Space":           {"A space as a symbol is rejected.", spec{PasswordSettings: wanted{SymbolCharacters: new("- ")}}, "must be printable ASCII characters"},
		"Newline":         {"A line break as a symbol is rejected.", spec{PasswordSettings: wanted{SymbolCharacters: new("-\n")}}, "must be printable ASCII characters"},
		"Wide":            {"A character of several bytes as a symbol is rejected.", spec{PasswordSettings: wanted{SymbolCharacters: new("€")}}, "must be printable ASCII characters"},
		"Twice":           {"A duplicate symbol is rejected, because it would be more likely.", spec{PasswordSettings: wanted{SymbolCharacters: new("-_-")}}, "list each symbol once"},
		"NoSymbols":       {"Empty symbolCharacters are rejected.", spec{PasswordSettings: wanted{SymbolCharacters: new("")}}, "symbolCharacters is empty"},
		"NoneOfNone":      {"Empty symbolCharacters are accepted if there are no symbols.", spec{PasswordSettings: wanted{SymbolCharacters: new(""), Symbols: new(int32(0))}}, ""},
		"Keys":            {"A duplicate key is rejected.", spec{PasswordSettings: wanted{SecretKeys: []string{"a", "a"}}}, "spec.secretKeys"},
		"Key":             {"A key that a Secret cannot have is rejected.", spec{PasswordSettings: wanted{SecretKeys: []string{"a/b"}}}, "spec.secretKeys"},
		"ManyKeys":        {"Too many keys are rejected.", spec{PasswordSettings: wanted{SecretKeys: strings.Split(strings.Repeat("a,", 33), ",")}}, "spec.secretKeys"},
		"Encoding":        {"An unknown encoding is rejected.", spec{PasswordSettings: wanted{Encoding: "rot13"}}, "spec.encoding"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, o := range []client.Object{namespaced("default", strings.ToLower(name), tc.spec), cluster(strings.ToLower(name), tc.spec)} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
			_, err := password.Connect(t.Context(), namespaced("default", "x", tc.spec), nil)
			if (err != nil) != (tc.want != "") {
				t.Errorf("%s\nThe error of the code is %v.", tc.reason, err)
			}
		})
	}
}

// TestConditions runs the operator with its own permissions. The condition of a generator shows whether it can
// generate passwords.
func TestConditions(t *testing.T) {
	const ns = "conditions"
	suite.For(t).Namespace(ns, nil)
	// No rule of the CRD can compute the entropy.
	weak := spec{PasswordSettings: wanted{Digits: new(int32(19)), Length: 19, AllowRepeat: true}}
	cases := map[string]struct {
		reason string
		object provider.Object
		want   string
	}{
		"Good":        {"An empty Password is valid.", namespaced(ns, "good", spec{}), "True Valid"},
		"GoodCluster": {"An empty ClusterPassword is valid.", cluster("good", spec{}), "True Valid"},
		"Weak":        {"The condition of a Password names the field to fix.", namespaced(ns, "weak", weak), "False InvalidSpec spec.length: a password of 19 characters, with 19 digits and 0 symbols, has 63 bits of entropy, at least 64 are required; set a greater length"},
		"WeakCluster": {"The condition of a ClusterPassword names the field to fix.", cluster("weak", weak), "False InvalidSpec spec.length: a password of 19 characters, with 19 digits and 0 symbols, has 63 bits of entropy, at least 64 are required; set a greater length"},
	}
	for _, tc := range cases {
		suite.For(t).Create(tc.object)
	}
	suite.Start(t, "generator-password", manifests.Permissions, newOperator)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			controlplane.Eventually(t, func() string {
				condition := suite.For(t).Condition(tc.object)
				if !strings.HasPrefix(condition, tc.want) {
					return tc.reason + "\n" + cmp.Diff(tc.want, condition)
				}
				return ""
			})
			if strings.HasPrefix(tc.want, "True") {
				if diff := cmp.Diff([]string{provider.CapabilityGenerate}, tc.object.StoreStatus().Capabilities); diff != "" {
					t.Errorf("capabilities: -want, +got:\n%s", diff)
				}
			}
		})
	}
}
