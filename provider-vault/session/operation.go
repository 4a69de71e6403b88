package session

import (
	"net/http"
	"strings"
)

// own maps the paths below /v1/ that every server has to their names in metrics.
var own = map[string]string{
	"auth/token/lookup-self": "token.lookup",
	"auth/token/renew-self":  "token.renew",
	"auth/token/revoke-self": "token.revoke",
	"sys/leases/renew":       "lease.renew",
	"sys/leases/revoke":      "lease.revoke",
	"sys/leases/lookup":      "lease.lookup",
}

// verbs maps the HTTP methods of Vault's API to operations.
var verbs = map[string]string{
	http.MethodGet: "read", "LIST": "list", http.MethodPost: "write", http.MethodPut: "write",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// operationOf returns the operation of a request for metrics. It omits names in the path, because tenants
// choose the mounts, roles and secrets. For an unknown kind of path it is only the verb.
func operationOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.URL.Path, "/v1/")
	if name := own[path]; name != "" {
		return name
	}
	verb := verbs[r.Method]
	switch first, _, _ := strings.Cut(path, "/"); {
	case verb == "":
		return ""
	case first == "auth":
		return "login"
	case first == "sys":
		return "sys." + verb
	case verb == "read" && r.URL.Query().Has("list"):
		return "secret.list"
	}
	return "secret." + verb
}
