package push

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestDesireErrors checks that the message names what to change.
func TestDesireErrors(t *testing.T) {
	regexp := func(source, target string) v1alpha1.Rewrite {
		return v1alpha1.Rewrite{Regexp: &v1alpha1.RewriteRegexp{Source: source, Target: target}}
	}
	property := v1alpha1.PushData{Match: v1alpha1.PushMatch{SecretKey: "a", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "all", Property: "p"}}}
	cases := map[string]struct {
		reason string
		spec   v1alpha1.PushSecretSpec
		want   string
	}{
		"Property": {
			"Several selected Secrets push to one property.", v1alpha1.PushSecretSpec{Data: []v1alpha1.PushData{property}},
			`spec.data[0]: spec.data[0] already pushes to property "p" of "all"; remove one of them, or use ${name} in the key if several Secrets are selected`,
		},
		"NoSuchStore": {
			"An entry for a store that the spec does not name would be pushed nowhere.", v1alpha1.PushSecretSpec{DataTo: []v1alpha1.PushDataTo{{StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "t"}}}},
			`spec.dataTo[0].storeRef: FakeStore "t" is not in spec.storeRefs; correct it, or add that store`,
		},
		"Empty": {
			"The former key is named.", v1alpha1.PushSecretSpec{DataTo: []v1alpha1.PushDataTo{{Rewrite: []v1alpha1.Rewrite{regexp("^a$", "x"), regexp("x", "")}}}},
			`spec.dataTo[0]: rewrite makes a key empty (before: "a"); correct it`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "s"}}
			tc.spec.Selector.Secret = &v1alpha1.PushSecretSelector{Name: "db"}
			p, err := NewPlan(&tc.spec)
			if err != nil {
				if err.Error() != tc.want {
					t.Errorf("\n%s\nNewPlan(): %v, want %s", tc.reason, err, tc.want)
				}
				return
			}
			data := map[string][]byte{"a": []byte("v")}
			_, err = p.Desire(v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}, []Source{{Name: "db", Data: data}, {Name: "web", Data: data}})
			if err == nil {
				t.Fatal("Desire(): no error")
			}
			if diff := cmp.Diff(tc.want, provider.Safe(err).Message); diff != "" {
				t.Errorf("\n%s\nDesire(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnmatched(t *testing.T) {
	secret := func(name string, keys ...string) Source {
		s := Source{Name: name, Data: map[string][]byte{}}
		for _, k := range keys {
			s.Data[k] = []byte("v")
		}
		return s
	}
	match := func(re string) v1alpha1.PushDataTo {
		return v1alpha1.PushDataTo{Match: &v1alpha1.PushKeyMatch{RegExp: re}}
	}
	cases := map[string]struct {
		reason  string
		entry   v1alpha1.PushDataTo
		sources []Source
		want    string
	}{
		"Matches":    {"An entry that matches a key is pushed.", match("^a"), []Source{secret("db", "a", "b")}, ""},
		"OneOfTwo":   {"Of several selected Secrets, one with such a key is enough.", match("^a"), []Source{secret("db", "b"), secret("web", "a")}, ""},
		"Nothing":    {"A pattern that matches no key is misspelt.", match("^x"), []Source{secret("db", "a"), secret("web", "b")}, `NotFound: spec.dataTo[0].match.regexp: "^x" matches no key of Secret "db", "web"; correct it, or add the key`},
		"Empty":      {"A Secret without keys gives nothing to push.", v1alpha1.PushDataTo{}, []Source{secret("db")}, `NotFound: spec.dataTo[0]: Secret "db" has no keys; add one`},
		"OtherStore": {"An entry for another store does not concern this one.", v1alpha1.PushDataTo{StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "t"}}, []Source{secret("db")}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := NewPlan(&v1alpha1.PushSecretSpec{
				StoreRefs: []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "s"}, {Kind: "FakeStore", Name: "t"}},
				Selector:  v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "db"}}, DataTo: []v1alpha1.PushDataTo{tc.entry},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, err := range p.Unmatched(v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}, tc.sources) {
				got += string(provider.ClassOf(err)) + ": " + provider.Safe(err).Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nUnmatched(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
