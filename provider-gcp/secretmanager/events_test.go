package secretmanager

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

func TestKeys(t *testing.T) {
	store := func(project, location string) *v1alpha1.GCPSecretManager {
		s := &v1alpha1.GCPSecretManager{}
		s.Spec.ProjectID, s.Spec.Location = project, location
		return s
	}
	cluster := &v1alpha1.ClusterGCPSecretManager{}
	cluster.Spec.ProjectID = "shop"
	const global, regional = "projects/42/secrets/db", "projects/42/locations/europe-west3/secrets/db"
	cases := map[string]struct {
		reason string
		store  provider.Object
		secret string
		want   []string
	}{
		"ID":          {"The number of a project with an ID is not known.", store("shop", ""), global, []string{"db", "projects/shop/secrets/db"}},
		"Number":      {"A store can have the number.", store("42", ""), global, []string{"db", "projects/42/secrets/db"}},
		"OtherNumber": {"Each project has secrets of its own.", store("43", ""), global, nil},
		"Domain":      {"A project ID can have a domain.", store("example.com:shop", ""), global, []string{"db", "projects/example.com:shop/secrets/db"}},
		"Cluster":     {"A cluster store has the same keys.", cluster, global, []string{"db", "projects/shop/secrets/db"}},
		"Regional":    {"A location has secrets of its own.", store("shop", "europe-west3"), regional, []string{"db", "projects/shop/locations/europe-west3/secrets/db"}},
		"NotGlobal":   {"A regional secret is not a global one.", store("shop", ""), regional, nil},
		"NotRegional": {"A global secret is not a regional one.", store("shop", "europe-west3"), global, nil},
		"OtherRegion": {"Each location has secrets of its own.", store("shop", "us-east1"), regional, nil},
		"OtherObject": {"A generator has no secrets.", &v1alpha1.GCPAccessToken{}, global, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, ok := NewEvent(tc.secret, "")
			if diff := cmp.Diff(tc.want, Keys(tc.store, e)); diff != "" || !ok {
				t.Errorf("%s\nKeys(): -want, +got:\n%s", tc.reason, diff)
			}
			for _, other := range cases {
				if diff := cmp.Diff(tc.want, Keys(other.store, e)); diff != "" && Scope(other.store) == Scope(tc.store) {
					t.Errorf("a store with the same Scope has other keys:\n%s", diff)
				}
			}
		})
	}
	if keys := Keys(store("shop", ""), provider.Event{Names: []string{"db", ""}}); len(keys) > 0 {
		t.Errorf("the keys of names of another form: %q", keys)
	}
}
