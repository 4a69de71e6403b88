package stack

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrites(t *testing.T) {
	cases := map[string]struct {
		reason, method, path string
		want                 map[Write]int
	}{
		"Core":        {"A path of the core group has no group.", "PATCH", "/api/v1/namespaces/shop/secrets/db", map[Write]int{{"PATCH", "secrets", "shop", "db"}: 1}},
		"Subresource": {"A subresource is part of the resource.", "PATCH", "/apis/direct-secrets.io/v1alpha1/namespaces/shop/externalsecrets/db/status", map[Write]int{{"PATCH", "externalsecrets/status", "shop", "db"}: 1}},
		"Create":      {"The name of a new object is in its body.", "POST", "/apis/events.k8s.io/v1/namespaces/shop/events", map[Write]int{{"POST", "events", "shop", ""}: 1}},
		"Cluster":     {"An object of the cluster has no namespace.", "DELETE", "/apis/direct-secrets.io/v1alpha1/clusterexternalsecrets/db?dryRun=All", map[Write]int{{"DELETE", "clusterexternalsecrets", "", "db"}: 1}},
		"Namespace":   {"A namespace is an object, too.", "PUT", "/api/v1/namespaces/shop", map[Write]int{{"PUT", "namespaces", "", "shop"}: 1}},
		"Short":       {"A path without a resource still counts.", "POST", "/", map[Write]int{{Method: "POST"}: 1}},
		"Read":        {"A read does not count.", "GET", "/api/v1/namespaces/shop/secrets/db", map[Write]int{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, passed := &Proxy{writes: map[Write]int{}}, 0
			h := p.counting(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, nil))
			if diff := cmp.Diff(tc.want, p.Writes()); diff != "" || passed != 1 {
				t.Errorf("%s %d requests passed; -want, +got:\n%s", tc.reason, passed, diff)
			}
		})
	}
}
