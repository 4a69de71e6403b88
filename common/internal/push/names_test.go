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
		"Whole":        {"A key is named as it is.", data("db", ""), named, "db", []string{""}},
		"Property":     {"So is a property.", data("db", "a.b"), named, "db", []string{"a.b"}},
		"Other":        {"Another key is not named.", data("db", ""), named, "db2", nil},
		"Namespace":    {"Placeholders are filled in.", data("${namespace}/${name}", ""), named, "shop/source", []string{""}},
		"NotNamespace": {"Another namespace is another key.", data("${namespace}/${name}", ""), named, "bank/source", nil},
		"Generated":    {"With a generator the name is the object's.", data("${name}", ""), generated, "db", []string{""}},
		"AnyName":      {"With labels any name may be meant.", data("a.${name}/x", ""), labelled, "a.what/ever/x", []string{""}},
		"NotAnyName":   {"But the rest of the key is taken literally.", data("a.${name}/x", ""), labelled, "ab1/x", nil},
		"DataTo":       {"Which properties dataTo makes only the Secret tells.", to("db", nil), named, "db", []string{""}},
		"DataToStore":  {"It may be for one store.", to("db", store), named, "db", []string{""}},
		"DataToOther":  {"Or for another.", to("db", &v1alpha1.StoreRef{Kind: "FakeStore", Name: "t"}), named, "db", nil},
		"DataToMany":   {"Which keys dataTo makes only the Secret tells.", to("", nil), named, "db", nil},
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
