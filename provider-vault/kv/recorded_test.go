package kv

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// answered are the requests of the operations of facts.
var answered = map[string]func(*http.Request) bool{
	"read": func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/data/")
	},
	"list": func(r *http.Request) bool { return r.URL.Query().Has("list") || r.Method == "LIST" },
	"write": func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/data/")
	},
	"delete": func(r *http.Request) bool { return r.Method == http.MethodDelete },
}

// seenIn returns what a fact and an answer of Vault must have in common.
func seenIn(status int, _ http.Header, body []byte) any {
	var b struct {
		Errors []string
		Data   struct {
			Metadata struct {
				Deleted   string `json:"deletion_time"`
				Destroyed bool
			}
		}
	}
	_ = json.Unmarshal(body, &b) // A page has other differences.
	return []any{status, b.Errors, b.Data.Metadata.Deleted != "", b.Data.Metadata.Destroyed}
}

// TestRecorded makes calls with a real Vault. Only its own answer that a secret or version does not exist is NotFound.
func TestRecorded(t *testing.T) {
	srv, secrets := vault(t, "1h")
	srv.Policy("reader", `path "*" { capabilities = ["create", "read", "update", "patch", "delete", "list"] }
path "secret/data/denied" { capabilities = ["deny"] }
path "secret/metadata/kept" { capabilities = ["read"] }`)
	for _, key := range []string{"deleted", "destroyed", "kept"} {
		mustPut(t, srv, key, db)
	}
	srv.Do(http.MethodDelete, "secret/data/deleted", nil)
	srv.Do(http.MethodPut, "secret/destroy/destroyed", M{"versions": []int{1}})
	keys := map[string]string{"no such secret": "absent", "deleted": "deleted", "destroyed": "destroyed", "denied": "denied", "denied deletion": "kept"}
	conformance.RunFacts(t, conformance.FactHarness{
		Seen: seenIn, Absent: []string{"no such secret", "deleted", "destroyed", "no such folder"},
		Answers: func(f conformance.Fact, r *http.Request) bool { return answered[f.Operation](r) },
		Prepare: func(t *testing.T, _ conformance.Fact) string {
			mustPut(t, srv, "shop/db", db)
			return srv.URL
		},
		Call: func(t *testing.T, url string, f conformance.Fact) (err error) {
			c := connect(t, appRole(url, func(s *v1alpha1.VaultKVSpec) {
				if strings.HasPrefix(f.State, "no such mount") && (f.Operation == "read" || f.Operation == "list") {
					s.Path = "nowhere"
				}
			}), secrets)
			key := cmp.Or(keys[f.State], "shop/db")
			switch f.Operation {
			case "read":
				_, err = c.Get(t.Context(), provider.Ref{Key: key})
				return err
			case "list":
				q := provider.Query{}
				if f.State == "no such folder" {
					q.Path = "absent"
				}
				for _, e := range c.Find(t.Context(), q) {
					err = e
				}
				return err
			case "delete":
				if key != "kept" {
					key = "shop/db"
				}
				at := provider.Target{Key: key}
				return c.Delete(t.Context(), at, mustObserve(t, c, at))
			}
			seen := mustObserve(t, c, shopDB)
			_, err = c.Update(t.Context(), shopDB, seen, []byte(`{"a":"y"}`))
			return err
		},
	})
}
