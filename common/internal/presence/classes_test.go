package presence

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestMissingClasses(t *testing.T) {
	const group, other = "fake.direct-secrets.io/v1alpha1", "other.example.com/v1"
	var m MissingClasses
	changes := 0
	m.OnChange(func() { changes++ })
	store := v1alpha1.StoreRef{APIVersion: group, Kind: "FakeStore", Name: "s"}
	cluster := v1alpha1.StoreRef{APIVersion: group, Kind: "ClusterFakeStore", Name: "s"}
	m.Set(store, "shop", "blue", "a")
	m.Set(store, "shop", "blue", "a")
	m.Set(cluster, "", "blue", "b")
	if changes != 2 {
		t.Errorf("%d changes were reported, want 2: the same message again is none", changes)
	}
	cases := map[string]struct {
		reason string
		ref    v1alpha1.StoreRef
		want   string
	}{
		"Same":           {"A reference names the store.", store, "a"},
		"NoAPIVersion":   {"A reference needs no apiVersion.", v1alpha1.StoreRef{Kind: "FakeStore", Name: "s"}, "a"},
		"Cluster":        {"A cluster store is that of any namespace.", v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: "s"}, "b"},
		"OtherName":      {"Another store of the Kind is served.", v1alpha1.StoreRef{Kind: "FakeStore", Name: "t"}, ""},
		"OtherGroup":     {"A Kind of another group may have the same name.", v1alpha1.StoreRef{APIVersion: other, Kind: "FakeStore", Name: "s"}, ""},
		"NamesNoStore":   {"An object can name no store.", v1alpha1.StoreRef{}, ""},
		"OtherNamespace": {"Another namespace has its own store.", store, ""},
	}
	for name, tc := range cases {
		namespace := "shop"
		if name == "OtherNamespace" {
			namespace = "team"
		}
		if _, got := m.Find(tc.ref, namespace); got != tc.want {
			t.Errorf("%s: %s: message is %q, want %q", name, tc.reason, got, tc.want)
		}
	}
	m.Set(store, "shop", "blue", "")
	if _, got := m.Find(store, "shop"); got != "" || changes != 3 {
		t.Errorf("after the store is served, the message is %q, and %d changes were reported, want 3", got, changes)
	}
}
