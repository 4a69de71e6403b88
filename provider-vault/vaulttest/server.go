// Package vaulttest runs a real Vault server for tests, behind a proxy that counts requests and can return
// errors.
package vaulttest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startTimeout is the timeout for starting or stopping a server. It is long, because the machine can be busy.
const startTimeout = 90 * time.Second

// A Server is a Vault server for one test.
type Server struct {
	*Proxy
	// Address is that of Vault itself. It stays the same after Restart.
	Address string
	// RootToken has all permissions.
	RootToken string
	// TLS holds the server's certificates; nil for a server without TLS.
	TLS *Authority

	t      testing.TB
	binary string
	// persistent is true if the server keeps its data in folder.
	persistent bool
	folder     string
	unsealKey  string
	process    *exec.Cmd
	stdin      io.Closer
}

// An Option changes the settings of a new Server.
type Option func(*Server)

// WithTLS makes the server use TLS, with a certificate by its own authority. Tests must then use Address,
// because the Proxy does not support TLS.
func WithTLS() Option {
	return func(s *Server) { s.TLS, s.persistent = NewAuthority(s.t), true }
}

// Persistent makes the server keep its data for Restart, in files. They do not allow every key: a name that starts with
// an underscore can be in the way of another one.
func Persistent() Option {
	return func(s *Server) { s.persistent = true }
}

// Start starts a server and stops it when the test ends. If VAULT_TEST_SERVER is the address of a running server, the test uses
// that one, alone.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{t: t, folder: t.TempDir()}
	for _, o := range opts {
		o(s)
	}
	if address, token := running(); address != "" {
		s.attach(address, token)
		s.Proxy = newProxy(t, s.Address)
		return s
	}
	s.binary = binary(t)
	if s.TLS != nil {
		s.certify(time.Now().Add(lifetime))
	}
	s.launch("127.0.0.1:0")
	t.Cleanup(s.Stop)
	s.Proxy = newProxy(t, s.Address)
	return s
}

// Certify restarts a TLS server with a certificate of an authority that expires at end.
func (s *Server) Certify(a *Authority, end time.Time) {
	s.t.Helper()
	s.TLS = a
	s.certify(end)
	s.Restart()
}

func (s *Server) certify(end time.Time) {
	s.t.Helper()
	cert, key := s.TLS.Server(end)
	s.file("server.crt", cert)
	s.file("server.key", key)
}

// Restart stops a persistent server, unless it is stopped, and starts it again, unsealed, with the same address and
// data.
func (s *Server) Restart() {
	s.t.Helper()
	if !s.persistent {
		s.t.Fatal("the server has lost its data; start it with vaulttest.Persistent")
	}
	s.Stop()
	_, address, _ := strings.Cut(s.Address, "://")
	s.launch(address)
}

func (s *Server) launch(listen string) {
	s.t.Helper()
	args := []string{"-listen", listen, "-until-eof"}
	if s.persistent {
		args = append(args, "-data", s.folder)
	}
	if s.TLS != nil {
		args = append(args, "-tls-cert", filepath.Join(s.folder, "server.crt"), "-tls-key", filepath.Join(s.folder, "server.key"))
	}
	cmd := exec.Command(s.binary, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	s.must(err)
	stdout, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	s.process, s.stdin = cmd, stdin
	late := time.AfterFunc(startTimeout, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	late.Stop()
	if err != nil {
		s.t.Fatalf("Vault did not start: %s", err)
	}
	var startup struct {
		Address   string `json:"address"`
		RootToken string `json:"rootToken"`
		UnsealKey string `json:"unsealKey"`
	}
	s.must(json.Unmarshal(line, &startup))
	s.Address, s.RootToken, s.unsealKey = startup.Address, startup.RootToken, startup.UnsealKey
}

// Stop stops the server. A persistent one keeps its data for Restart.
func (s *Server) Stop() {
	s.t.Helper()
	cmd := s.process
	if cmd == nil {
		return // It was stopped before.
	}
	s.process = nil
	_ = s.stdin.Close() // The server stops when its standard input is closed.
	late := time.AfterFunc(startTimeout, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		s.t.Errorf("Vault ended badly: %s", err)
	}
}

func (s *Server) file(name string, content []byte) {
	s.must(os.WriteFile(filepath.Join(s.folder, name), content, 0o600))
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// binary returns the path of the server: $VAULT_TEST_SERVER, or the one that hack/vault.sh of this tree finds
// or builds.
func binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("VAULT_TEST_SERVER"); path != "" {
		return path
	}
	script := ""
	for dir, _ := os.Getwd(); script == ""; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "hack", "vault.sh")
		if _, err := os.Stat(candidate); err == nil {
			script = candidate
		} else if dir == filepath.Dir(dir) {
			t.Fatal("set VAULT_TEST_SERVER to the program that hack/vault.sh builds")
		}
	}
	cmd := exec.Command(script)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %s", script, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
