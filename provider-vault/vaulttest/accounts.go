package vaulttest

import (
	"net/http"
	"strings"
)

// MountAccounts mounts the test server's own secrets engine, whose credentials have leases. roles/NAME sets how
// long they are valid. creds/NAME creates one: an account that exists until its lease expires or is revoked.
func (s *Server) MountAccounts(path string) {
	s.t.Helper()
	s.Do(http.MethodPost, "sys/mounts/"+path, M{"type": "accounts"})
}

// AccountRole writes a role of that engine. Its properties are ttl, max_ttl, and three booleans: fixed (not
// renewable), stuck (not revocable) and leaseless.
func (s *Server) AccountRole(mount, name string, properties M) {
	s.t.Helper()
	s.Do(http.MethodPost, mount+"/roles/"+name, properties)
}

// Accounts returns the names of the existing accounts.
func (s *Server) Accounts(mount string) []string { return s.list(mount + "/accounts") }

// Leases returns the ids of the valid leases of a path such as accounts/creds/NAME.
func (s *Server) Leases(path string) []string {
	s.t.Helper()
	var ids []string
	for _, id := range s.list("sys/leases/lookup/" + path) {
		ids = append(ids, path+"/"+id)
	}
	return ids
}

// Lease returns Vault's description of a lease; nil if it is not valid.
func (s *Server) Lease(id string) M {
	s.t.Helper()
	m, err := s.try(http.MethodPut, "sys/leases/lookup", M{"lease_id": id})
	if err != nil && !strings.Contains(err.Error(), "invalid lease") {
		s.t.Fatalf("lease %s: %s", id, err)
	}
	return m
}

// IsTokenValid reports whether the token with an accessor is valid.
func (s *Server) IsTokenValid(accessor string) bool {
	s.t.Helper()
	err := s.Try(http.MethodPut, "auth/token/lookup-accessor", M{"accessor": accessor})
	if err != nil && !strings.Contains(err.Error(), "invalid accessor") {
		s.t.Fatalf("token: %s", err)
	}
	return err == nil
}

func (s *Server) list(path string) []string {
	s.t.Helper()
	m, err := s.try("LIST", path, nil)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "404 ") {
			s.t.Fatalf("list %s: %s", path, err)
		}
		return nil // Vault has no empty lists.
	}
	var names []string
	keys, _ := m["keys"].([]any)
	for _, k := range keys {
		names = append(names, k.(string))
	}
	return names
}
