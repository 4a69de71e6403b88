package client

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

// requests are the operations of the client for the operations of facts, by their names in the API reference of Connect.
var requests = map[string]string{
	"GetVaults": "get-vaults", "GetVaultItems": "get-items", "GetVaultItemById": "get-item", "DeleteVaultItem": "delete-item", "CreateVaultItem": "create-item",
}

// seenIn returns what a fact and an answer of the emulator must have in common: the status, and the text without IDs.
func seenIn(status int, _ http.Header, body []byte) any {
	var b struct{ Message string }
	_ = json.Unmarshal(body, &b) // A list has no text.
	return []any{status, regexp.MustCompile(`[a-z0-9]{26}`).ReplaceAllString(b.Message, "ID")}
}

func TestRecorded(t *testing.T) {
	conformance.RunFacts(t, conformance.FactHarness{
		Seen: seenIn, Absent: []string{"no item with the title", "no such item", "item deleted meanwhile"},
		Answers: func(f conformance.Fact, r *http.Request) bool { return operation(r) == requests[f.Operation] },
		Prepare: func(t *testing.T, f conformance.Fact) string {
			srv := start(t)
			srv.Put(vaultName, "db", map[string]string{"a": "x"}, nil)
			if f.State == "unknown token" && f.Operation == "GetVaults" {
				srv.RevokeToken(emulator.DefaultToken)
			}
			return srv.URL()
		},
		Call: func(t *testing.T, url string, f conformance.Fact) error {
			c, err := Connect(t.Context(), storeOf(url), credentials)
			if err != nil {
				t.Fatal(err)
			}
			at := provider.Target{Key: "db"}
			switch f.Operation {
			case "GetVaultItemById": // A title would be looked up first.
				_, err = c.Get(t.Context(), provider.Ref{Key: strings.Repeat("z", 26)})
			case "CreateVaultItem":
				_, err = c.(provider.Writer).Create(t.Context(), provider.Target{Key: "new"}, []byte(`{"a":"x"}`), "mark")
			case "DeleteVaultItem":
				seen, err := c.(provider.Writer).Observe(t.Context(), at)
				if err != nil {
					return err
				}
				return c.(provider.Writer).Delete(t.Context(), at, seen)
			default:
				if f.State == "no item with the title" {
					at.Key = "absent"
				}
				_, err = c.Get(t.Context(), provider.Ref{Key: at.Key})
			}
			return err
		},
	})
}
