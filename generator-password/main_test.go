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

// TestCRD checks what the API server takes. The code must say the same: a rule that is stricter than the
// code would refuse what works. What no rule can see is in the tests of the code.
func TestCRD(t *testing.T) {
	rules := common.GeneratorSpec{RotationInterval: "720h", KeepPrevious: true}
	all := "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	cases := map[string]struct {
		reason string
		spec   spec
		want   string // part of the rejection
	}{
		"Empty":           {"Every field has a default.", spec{}, ""},
		"Everything":      {"All fields go together.", spec{GeneratorSpec: rules, PasswordSettings: wanted{Length: 40, Digits: new(int32(4)), Symbols: new(int32(4)), SymbolCharacters: &all, NoUpper: true, AllowRepeat: true, SecretKeys: []string{"a", "b.c"}, Encoding: v1alpha1.EncodingHex}}, ""},
		"Long":            {"A length needs nothing else.", spec{PasswordSettings: wanted{Length: 92}}, ""},
		"LongNoUpper":     {"Also without upper case, as far as it goes.", spec{PasswordSettings: wanted{Length: 66, NoUpper: true}}, ""},
		"Longest":         {"The longest.", spec{PasswordSettings: wanted{Length: 4096, AllowRepeat: true}}, ""},
		"TooLong":         {"Longer does not fit.", spec{PasswordSettings: wanted{Length: 4097, AllowRepeat: true}}, "spec.length"},
		"Short":           {"Eleven can do.", spec{PasswordSettings: wanted{Length: 11}}, ""},
		"TooShort":        {"Ten never can.", spec{PasswordSettings: wanted{Length: 10}}, "fewer than 64 bits"},
		"Negative":        {"There is no such length.", spec{PasswordSettings: wanted{Length: -1}}, "spec.length"},
		"NegativeDigits":  {"There is no such number.", spec{PasswordSettings: wanted{Digits: new(int32(-1))}}, "spec.digits"},
		"NegativeSymbols": {"There is no such number.", spec{PasswordSettings: wanted{Symbols: new(int32(-1))}}, "spec.symbols"},
		"DoNotFit":        {"24 is the length.", spec{PasswordSettings: wanted{Digits: new(int32(10)), Symbols: new(int32(15))}}, "digits and symbols do not fit into length"},
		"DigitsDoNotFit":  {"One alone can be too many.", spec{PasswordSettings: wanted{Length: 11, Digits: new(int32(12)), AllowRepeat: true}}, "digits and symbols do not fit into length"},
		"Fit":             {"No letters at all.", spec{PasswordSettings: wanted{Digits: new(int32(10)), Symbols: new(int32(14))}}, ""},
		"DigitsOnce":      {"There are ten digits.", spec{PasswordSettings: wanted{Digits: new(int32(11))}}, "digits: without repeats there are only 10"},
		"DigitsAgain":     {"They may come again.", spec{PasswordSettings: wanted{Digits: new(int32(11)), AllowRepeat: true}}, ""},
		"SymbolsOnce":     {"There are 30 symbols.", spec{PasswordSettings: wanted{Length: 40, Symbols: new(int32(31))}}, "symbols: there are not so many different symbolCharacters"},
		"OwnOnce":         {"There are three.", spec{PasswordSettings: wanted{Symbols: new(int32(4)), SymbolCharacters: new("-_.")}}, "symbols: there are not so many different symbolCharacters"},
		"OwnAgain":        {"They may come again.", spec{PasswordSettings: wanted{Symbols: new(int32(4)), SymbolCharacters: new("-_."), AllowRepeat: true}}, ""},
		"LettersOnce":     {"There are 52 letters.", spec{PasswordSettings: wanted{Length: 64, Digits: new(int32(5)), Symbols: new(int32(5))}}, "length: there are not so many different characters"},
		"LowerOnce":       {"There are 26 of each case.", spec{PasswordSettings: wanted{Length: 67, NoUpper: true}}, "length: there are not so many different characters"},
		"AllOnce":         {"There are 92 characters.", spec{PasswordSettings: wanted{Length: 93}}, "length: there are not so many different characters"},
		"AllOwnOnce":      {"There are fewer with own symbols.", spec{PasswordSettings: wanted{Length: 64, SymbolCharacters: new("-")}}, "length: there are not so many different characters"},
		"Letter":          {"A letter is none.", spec{PasswordSettings: wanted{SymbolCharacters: new("-a")}}, "only printable ASCII characters"},
		"Digit":           {"A digit is none.", spec{PasswordSettings: wanted{SymbolCharacters: new("0-")}}, "only printable ASCII characters"},
		"Space":           {"A space is none.", spec{PasswordSettings: wanted{SymbolCharacters: new("- ")}}, "only printable ASCII characters"},
		"Newline":         {"Nor is the end of a line.", spec{PasswordSettings: wanted{SymbolCharacters: new("-\n")}}, "only printable ASCII characters"},
		"Wide":            {"Nor is what has several bytes.", spec{PasswordSettings: wanted{SymbolCharacters: new("€")}}, "only printable ASCII characters"},
		"Twice":           {"One would come more often.", spec{PasswordSettings: wanted{SymbolCharacters: new("-_-")}}, "list each symbol once"},
		"NoSymbols":       {"Empty, or the default?", spec{PasswordSettings: wanted{SymbolCharacters: new("")}}, "symbolCharacters is empty"},
		"NoneOfNone":      {"Nothing is chosen from nothing.", spec{PasswordSettings: wanted{SymbolCharacters: new(""), Symbols: new(int32(0))}}, ""},
		"Keys":            {"Each once.", spec{PasswordSettings: wanted{SecretKeys: []string{"a", "a"}}}, "spec.secretKeys"},
		"Key":             {"A Secret must take it.", spec{PasswordSettings: wanted{SecretKeys: []string{"a/b"}}}, "spec.secretKeys"},
		"ManyKeys":        {"Enough.", spec{PasswordSettings: wanted{SecretKeys: strings.Split(strings.Repeat("a,", 33), ",")}}, "spec.secretKeys"},
		"Encoding":        {"Nobody knows it.", spec{PasswordSettings: wanted{Encoding: "rot13"}}, "spec.encoding"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, o := range []client.Object{namespaced("default", strings.ToLower(name), tc.spec), cluster(strings.ToLower(name), tc.spec)} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
			_, err := password.Connect(t.Context(), namespaced("default", "x", tc.spec), nil)
			if (err != nil) != (tc.want != "") {
				t.Errorf("%s\nThe code says %v.", tc.reason, err)
			}
		})
	}
}

// TestConditions runs the operator with its own rights: a generator says of itself whether it can work.
func TestConditions(t *testing.T) {
	const ns = "conditions"
	suite.Namespace(t, ns, nil)
	// No rule of the CRD counts passwords.
	weak := spec{PasswordSettings: wanted{Digits: new(int32(19)), Length: 19, AllowRepeat: true}}
	cases := map[string]struct {
		reason string
		object provider.Object
		want   string
	}{
		"Good":        {"Nothing is left to fill in.", namespaced(ns, "good", spec{}), "True Valid"},
		"GoodCluster": {"Nor for a cluster.", cluster("good", spec{}), "True Valid"},
		"Weak":        {"The field to mend is named.", namespaced(ns, "weak", weak), "False InvalidSpec spec.length: a password of 19 characters, 19 digits and 0 symbols among them, has 63 bits of entropy, and at least 64 are required; set a greater length"},
		"WeakCluster": {"It is the same field.", cluster("weak", weak), "False InvalidSpec spec.length: a password of 19 characters, 19 digits and 0 symbols among them, has 63 bits of entropy, and at least 64 are required; set a greater length"},
	}
	for _, tc := range cases {
		suite.Create(t, tc.object)
	}
	suite.Start(t, "generator-password", manifests.Rights, newOperator)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			controlplane.Eventually(t, func() string {
				says := suite.Says(t, tc.object)
				if !strings.HasPrefix(says, tc.want) {
					return tc.reason + "\n" + cmp.Diff(tc.want, says)
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
