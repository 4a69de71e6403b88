package client

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// seenIn returns what a fact and an answer of the API server must have in common.
func seenIn(status int, _ http.Header, body []byte) any {
	var s metav1.Status
	if json.Unmarshal(body, &s) != nil {
		return status
	}
	if s.Details == nil {
		s.Details = &metav1.StatusDetails{}
	}
	return []any{status, s.Kind, string(s.Reason), s.Message, s.Details.Kind, s.Details.Name}
}

// A situation is what a store and a key must be for the state of a fact: by default a login with all permissions, and a Secret db.
type situation struct{ login, namespace, key string }

var situations = map[string]situation{
	"no such Secret":             {key: "absent"},
	"no such ConfigMap":          {key: configMap + "absent"},
	"another object of the name": {key: "absent"},
	"another Secret":             {key: "absent"},
	"no such namespace":          {namespace: "nowhere"},
	"no such namespace, list":    {namespace: "nowhere"},
	"no such namespace, create":  {namespace: "nowhere"},
	"no permission":              {login: "none"},
	"no permission to list":      {login: "none"},
	"unknown token":              {login: "wrong"},
}

// TestRecorded makes calls with an API server. Only its own answer that this Secret or ConfigMap does not exist is NotFound.
func TestRecorded(t *testing.T) {
	tokens := fake.Credentials{"all": adminToken(t, "recorded"), "none": tokenWith(t, "recorded-none", "watch"), "wrong": "wrong"}
	srv := newFaulty(t)
	conformance.RunFacts(t, conformance.FactHarness{
		Seen: seenIn, Absent: []string{"no such Secret", "no such ConfigMap", "Secret deleted"},
		Answers: func(f conformance.Fact, r *http.Request) bool {
			return operation(r) == f.Operation && (strings.Contains(r.URL.Path, "/secrets") || strings.Contains(r.URL.Path, "/configmaps"))
		},
		Prepare: func(t *testing.T, _ conformance.Fact) string {
			must(t, put(t.Context(), "db", []byte(`{"a":"x"}`), nil))
			return srv.URL
		},
		Call: func(t *testing.T, url string, f conformance.Fact) error {
			s := situations[f.State]
			if f.Operation == "patch" || f.Operation == "delete" { // These calls need a Secret.
				s = situation{}
			}
			connected, err := Connect(t.Context(), store(url, cmp.Or(s.namespace, remote), cmp.Or(s.login, "all")), tokens)
			must(t, err)
			c, key := connected.(*Client), cmp.Or(s.key, "db")
			switch f.Operation {
			case "get":
				_, err = c.Get(t.Context(), provider.Ref{Key: key})
			case "list":
				for _, e := range c.Find(t.Context(), provider.Query{}) {
					err = e
				}
			case "create":
				_, err = c.Create(t.Context(), provider.Target{Key: strings.TrimPrefix(key, configMap)}, []byte(`{"a":"x"}`), "mark")
			default:
				var seen provider.Observed
				if seen, err = c.Observe(t.Context(), provider.Target{Key: "db"}); err != nil {
					return err
				}
				if f.Operation == "delete" {
					return c.Delete(t.Context(), provider.Target{Key: "db"}, seen)
				}
				_, err = c.Update(t.Context(), provider.Target{Key: "db"}, seen, []byte(`{"a":"y"}`))
			}
			return err
		},
	})
}

// TestNamespaceUnknown reads a Secret that does not exist, when a proxy answers the question whether the namespace does.
func TestNamespaceUnknown(t *testing.T) {
	srv := newFaulty(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/namespaces/"+remote {
			conformance.Fact{Status: http.StatusForbidden, Header: map[string]string{"Content-Type": "text/html"}, Body: []byte(`"<html></html>"`)}.ServeHTTP(w, r)
			return
		}
		srv.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c, err := Connect(t.Context(), store(proxy.URL, remote, "token"), fake.Credentials{"token": tokenWith(t, "namespace", "get")})
	must(t, err)
	if _, err = c.Get(t.Context(), provider.Ref{Key: "absent"}); err == nil || provider.IsNotFound(err) {
		t.Errorf("Get(...): %v, class %q", err, provider.ClassOf(err))
	}
}
