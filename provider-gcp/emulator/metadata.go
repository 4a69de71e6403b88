package emulator

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// metadataLeft is the minimum remaining validity of a cached token that the metadata server returns, by
// https://cloud.google.com/compute/docs/access/authenticate-workloads#applications
const metadataLeft = 5 * time.Minute

// handedOut is the cached token of the metadata server.
type handedOut struct {
	mu    sync.Mutex
	token string
}

// metadata returns the cached token while it is valid for at least metadataLeft, and otherwise a new one.
func (s *Server) metadata(r *http.Request) (map[string]any, *refusal) {
	scopes := strings.FieldsFunc(r.FormValue("scopes"), func(c rune) bool { return c == ',' })
	if len(scopes) == 0 {
		scopes = []string{scopeAll}
	}
	switch {
	case r.Header.Get("Metadata-Flavor") != "Google":
		return nil, &refusal{http.StatusForbidden, "PERMISSION_DENIED", "The header Metadata-Flavor is missing.", true}
	case s.machine == "":
		return nil, &refusal{http.StatusNotFound, "NOT_FOUND", "The machine has no service account.", true}
	case !known(scopes):
		return nil, &refusal{http.StatusBadRequest, "INVALID_ARGUMENT", "invalid_scope", true}
	}
	s.handedOut.mu.Lock()
	defer s.handedOut.mu.Unlock()
	of, ok := s.identities.lookupToken(s.handedOut.token, s.now())
	if left := of.expires.Sub(s.now()); !ok || left < metadataLeft || !slices.Equal(of.scopes, scopes) {
		s.handedOut.token, of.expires = s.give(s.machine, tokenLifetime, scopes)
	}
	return map[string]any{"access_token": s.handedOut.token, "token_type": "Bearer", "expires_in": int(of.expires.Sub(s.now()).Seconds())}, nil
}
