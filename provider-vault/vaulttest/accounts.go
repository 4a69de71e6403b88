package vaulttest

import (
	"net/http"
	"strings"
)

// MountAccounts mounts the secrets engine of the test server whose credentials have leases: roles/NAME says how
// long they live, creds/NAME makes one, which is an account until its lease ends or is revoked.
func (s *Server) MountAccounts(path string) {
	s.t.Helper()
	s.Do(http.MethodPost, "sys/mounts/"+path, M{"type": "accounts"})
}

// AccountRole writes a role of that engine. Its properties are ttl, max_ttl, and, each true or false, fixed (it
// cannot be renewed), stuck (it cannot be revoked) and leaseless.
func (s *Server) AccountRole(mount, name string, properties M) {
	s.t.Helper()
	s.Do(http.MethodPost, mount+"/roles/"+name, properties)
}

// Accounts returns the names of the accounts that live.
func (s *Server) Accounts(mount string) []string { return s.list(mount + "/accounts") }

// Leases returns the ids of the leases that live of a path such as accounts/creds/NAME.
func (s *Server) Leases(path string) []string {
	s.t.Helper()
	var ids []string
	for _, id := range s.list("sys/leases/lookup/" + path) {
		ids = append(ids, path+"/"+id)
	}
	return ids
}

// Lease returns what Vault says of a lease; nil if it does not live.
func (s *Server) Lease(id string) M {
	s.t.Helper()
	m, err := s.try(http.MethodPut, "sys/leases/lookup", M{"lease_id": id})
	if err != nil && !strings.Contains(err.Error(), "invalid lease") {
		s.t.Fatalf("lease %s: %s", id, err)
	}
	return m
}

// Lives reports whether a token does, by its accessor.
func (s *Server) Lives(accessor string) bool {
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
