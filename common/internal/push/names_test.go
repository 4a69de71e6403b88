package push

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestNames(t *testing.T) {
	store := &v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}
	named := v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}}
	labelled := v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Selector: &metav1.LabelSelector{}}}
	generated := v1alpha1.PushSelector{GeneratorRef: &v1alpha1.StoreRef{Kind: "Password", Name: "p"}}
	data := func(key, property string) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{Data: []v1alpha1.PushData{{Match: v1alpha1.PushMatch{RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: key, Property: property}}}}}
	}
	to := func(key string, ref *v1alpha1.StoreRef) v1alpha1.PushSecretSpec {
		return v1alpha1.PushSecretSpec{DataTo: []v1alpha1.PushDataTo{{RemoteKey: key, StoreRef: ref}}}
	}
	cases := map[string]struct {
		reason string
		spec   v1alpha1.PushSecretSpec
		from   v1alpha1.PushSelector
		key    string
		want   []string
	}{
		"Whole":        {"A key matches itself.", data("db", ""), named, "db", []string{""}},
		"Property":     {"A property is returned.", data("db", "a.b"), named, "db", []string{"a.b"}},
		"Other":        {"Another key does not match.", data("db", ""), named, "db2", nil},
		"Namespace":    {"Placeholders are replaced.", data("${namespace}/${name}", ""), named, "shop/source", []string{""}},
		"NotNamespace": {"The key of another namespace does not match.", data("${namespace}/${name}", ""), named, "bank/source", nil},
		"Generated":    {"With a generator, ${name} is the name of the object.", data("${name}", ""), generated, "db", []string{""}},
		"AnyName":      {"With a label selector, ${name} matches any name.", data("a.${name}/x", ""), labelled, "a.what/ever/x", []string{""}},
		"NotAnyName":   {"The rest of the key is literal.", data("a.${name}/x", ""), labelled, "ab1/x", nil},
		"DataTo":       {"The properties of dataTo depend on the Secret, so the whole secret is returned.", to("db", nil), named, "db", []string{""}},
		"DataToStore":  {"dataTo may name this store.", to("db", store), named, "db", []string{""}},
		"DataToOther":  {"dataTo for another store does not match.", to("db", &v1alpha1.StoreRef{Kind: "FakeStore", Name: "t"}), named, "db", nil},
		"DataToMany":   {"The keys of dataTo depend on the Secret, so none is returned.", to("", nil), named, "db", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: tc.spec}
			ps.Spec.Selector = tc.from
			if diff := cmp.Diff(tc.want, Names(ps, store, tc.key)); diff != "" {
				t.Errorf("\n%s\nNames(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
