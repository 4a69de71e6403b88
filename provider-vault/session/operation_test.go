package session

import (
	"net/http"
	"testing"
)

func TestOperationOf(t *testing.T) {
	for _, c := range []struct{ reason, method, path, want string }{
		{"The operation does not contain a secret's name.", http.MethodGet, "/v1/team-blue/data/password", "secret.read"},
		{"A GET with a list parameter is a list.", http.MethodGet, "/v1/team-blue/metadata?list=true", "secret.list"},
		{"The method LIST is a list.", "LIST", "/v1/team-blue/metadata", "secret.list"},
		{"A PUT is a write.", http.MethodPut, "/v1/team-blue/data/password", "secret.write"},
		{"A patch has its own operation.", http.MethodPatch, "/v1/team-blue/data/password", "secret.patch"},
		{"A deletion has its own operation.", http.MethodDelete, "/v1/team-blue/metadata/password", "secret.delete"},
		{"The operation of a login does not contain its mount.", http.MethodPut, "/v1/auth/team-blue/login", "login"},
		{"The operation of a login does not contain a user's name.", http.MethodPut, "/v1/auth/ldap/login/alice", "login"},
		{"A path in the server's address is ignored.", http.MethodPut, "/vault/v1/auth/token/renew-self", "token.renew"},
		{"Requests for leases have their own operations.", http.MethodPut, "/v1/sys/leases/revoke", "lease.revoke"},
		{"Other system paths have only the verb.", http.MethodGet, "/v1/sys/internal/ui/mounts/team-blue", "sys.read"},
		{"An unknown method has no operation.", http.MethodTrace, "/v1/team-blue", ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, "https://vault.example.com"+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := operationOf(r); got != c.want {
				t.Errorf("operationOf(%s %s) = %q, want %q", c.method, c.path, got, c.want)
			}
		})
	}
}
