package push

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestNothingMatches has entries of dataTo that may match no key. They would push nothing, and look as if all was in sync.
func TestNothingMatches(t *testing.T) {
	store := v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}
	db, other := Source{Name: "db", Data: map[string][]byte{"a": nil}}, Source{Name: "other", Data: map[string][]byte{"b": nil}}
	regexp := func(re string) v1alpha1.PushDataTo {
		return v1alpha1.PushDataTo{RemoteKey: "r/${name}", Match: &v1alpha1.PushKeyMatch{RegExp: re}}
	}
	elsewhere := regexp("x")
	elsewhere.StoreRef = &v1alpha1.StoreRef{Kind: "FakeStore", Name: "t"}
	cases := map[string]struct {
		reason  string
		dataTo  []v1alpha1.PushDataTo
		sources []Source
		want    string
	}{
		"Match":     {"A key is matched.", []v1alpha1.PushDataTo{regexp("a")}, []Source{db}, ""},
		"One":       {"One of several Secrets is enough.", []v1alpha1.PushDataTo{regexp("a")}, []Source{other, db}, ""},
		"Elsewhere": {"An entry for another store does not count.", []v1alpha1.PushDataTo{regexp("a"), elsewhere}, []Source{db}, ""},
		"NoSource":  {"A selection of no Secret is reported otherwise.", []v1alpha1.PushDataTo{regexp("x")}, nil, ""},
		"NoMatch":   {"The entry and the Secret are named.", []v1alpha1.PushDataTo{regexp("a"), regexp("x")}, []Source{db}, `spec.dataTo[1].match.regexp: "x" matches no key of Secret "db"; correct it`},
		"Several":   {"Several Secrets are counted.", []v1alpha1.PushDataTo{regexp("x")}, []Source{db, other}, `spec.dataTo[0].match.regexp: "x" matches no key of the 2 selected Secrets; correct it`},
		"Empty":     {"A Secret can have no key.", []v1alpha1.PushDataTo{{}}, []Source{{Name: "db"}}, `spec.dataTo[0]: there is no key in Secret "db"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, err := NewPlan(&v1alpha1.PushSecretSpec{StoreRefs: []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "s"}}, DataTo: tc.dataTo, Selector: v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "db"}}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = plan.Desire(store, tc.sources)
			got := ""
			if err != nil {
				got = provider.Safe(err).Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil && !provider.IsNotFound(err) {
				t.Errorf("\n%s\nDesire(...): %v: -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
