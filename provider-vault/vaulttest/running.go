package vaulttest

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// running returns the address of a server that the user of the tests has started, and its root token, if VAULT_TEST_SERVER is a URL.
// Such a server is used by one test at a time, and loses everything that tests can write.
func running() (address, token string) {
	if address = os.Getenv("VAULT_TEST_SERVER"); !strings.HasPrefix(address, "http://") {
		return "", ""
	}
	return strings.TrimSuffix(address, "/"), os.Getenv("VAULT_TEST_TOKEN")
}

// attach waits until no other test uses a running server, and removes what these have written.
func (s *Server) attach(address, token string) {
	s.t.Helper()
	if s.persistent {
		s.t.Skip("this test restarts its server: set VAULT_TEST_SERVER to a program instead of an address")
	}
	if host, err := url.Parse(address); err != nil || !net.ParseIP(host.Hostname()).IsLoopback() {
		s.t.Fatalf("VAULT_TEST_SERVER is %s; it must be an address such as http://127.0.0.1:8200, because tests delete everything in it", address)
	}
	s.Address, s.RootToken = address, token
	s.lock()
	for _, kind := range []struct{ path, keep string }{
		{"sys/auth", "token/"}, {"sys/mounts", "sys/ identity/ cubbyhole/ agent-registry/"},
	} {
		keep := strings.Fields(kind.keep)
		for name, mount := range s.Do(http.MethodGet, kind.path, nil) {
			if _, ok := mount.(M); ok && !slices.Contains(keep, name) {
				s.Do(http.MethodDelete, kind.path+"/"+name, nil)
			}
		}
	}
	for _, name := range s.list("sys/policies/acl") {
		if name != "root" && name != "default" {
			s.Do(http.MethodDelete, "sys/policies/acl/"+name, nil)
		}
	}
	s.RevokeTokens()
}

// using are the tests of this process that use the running server, or wait for it.
var using sync.Map

// lock waits for the tests of all packages, and holds the lock until the test ends.
func (s *Server) lock() {
	s.t.Helper()
	test, _, _ := strings.Cut(s.t.Name(), "/")
	if _, second := using.LoadOrStore(test, true); second {
		s.t.Skip("this test needs a second server: set VAULT_TEST_SERVER to a program instead of an address")
	}
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "vaulttest.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	s.must(err)
	s.t.Cleanup(func() {
		_ = file.Close() // That ends the lock.
		using.Delete(test)
	})
	s.must(syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
}

// A Flavor tells the servers with Vault's API apart.
type Flavor string

// The flavors.
const (
	Vault   Flavor = "HashiCorp Vault"
	OpenBao Flavor = "OpenBao"
)

// Flavor returns which server this is: OpenBao's versions begin with 2, and those of Vault with 1.
func (s *Server) Flavor() Flavor {
	if strings.HasPrefix(s.versions(), "2.") {
		return OpenBao
	}
	return Vault
}

// Version returns the name and the version of the server.
func (s *Server) Version() string { return string(s.Flavor()) + " " + s.versions() }

func (s *Server) versions() string { return strings.Join(s.list("sys/version-history"), ", ") }
