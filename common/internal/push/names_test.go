package push

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestDrops(t *testing.T) {
	store := v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}
	data := func(key, property string) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{Data: []v1alpha1.PushData{{Match: v1alpha1.PushMatch{RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: key, Property: property}}}}}
	}
	to := func(key string, ref *v1alpha1.StoreRef) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{DataTo: []v1alpha1.PushDataTo{{RemoteKey: key, StoreRef: ref}}}
	}
	cases := map[string]struct {
		reason        string
		spec          v1alpha1.PushSecretSpec
		key, property string
		want          bool
	}{
		"Whole":         {"The spec names the key.", data("db", ""), "db", "", false},
		"WholeProperty": {"The whole secret includes a property.", data("db", ""), "db", "a", false},
		"Property":      {"The spec names the property.", data("db", "a"), "db", "a", false},
		"PropertyOther": {"The spec names another property.", data("db", "b"), "db", "a", true},
		"PropertyWhole": {"The spec names only a property.", data("db", "b"), "db", "", true},
		"Other":         {"The spec names another key.", data("db", ""), "db2", "", true},
		"Placeholders":  {"${name} is the Secret that the entry is of.", data("${namespace}/${name}", ""), "shop/source", "", false},
		"OtherName":     {"The key of another Secret is another key.", data("${name}", ""), "other", "", true},
		"DataTo":        {"The properties of dataTo depend on the Secret.", to("db", nil), "db", "a", false},
		"DataToStore":   {"dataTo may name this store.", to("db", &store), "db", "a", false},
		"DataToOther":   {"dataTo for another store does not count.", to("db", &v1alpha1.StoreRef{Kind: "FakeStore", Name: "t"}), "db", "a", true},
		"DataToMany":    {"The keys of dataTo depend on the Secret.", to("", nil), "db", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: tc.spec}
			e := v1alpha1.PushEntryStatus{RemoteKey: tc.key, Property: tc.property, Source: "source"}
			if diff := cmp.Diff(tc.want, Drops(ps, store, e)); diff != "" {
				t.Errorf("\n%s\nDrops(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
