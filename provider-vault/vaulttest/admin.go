package vaulttest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// M is a JSON object.
type M = map[string]any

// Do calls Vault with the root token, without the proxy, and returns the data of the answer. The test fails if
// Vault returns an error.
func (s *Server) Do(method, path string, body any) M {
	s.t.Helper()
	m, err := s.try(method, path, body)
	if err != nil {
		s.t.Fatalf("%s %s: %s", method, path, err)
	}
	return m
}

// Try is Do for other goroutines than that of the test.
func (s *Server) Try(method, path string, body any) error {
	_, err := s.try(method, path, body)
	return err
}

type statusError string

func (e statusError) Error() string { return string(e) }

// stay follows no redirect: Vault redirects from invalid paths to corrected ones.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (s *Server) try(method, path string, body any) (M, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, s.Address+"/v1/"+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Vault-Token", s.RootToken)
	transport := &http.Transport{DisableKeepAlives: true}
	if s.TLS != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: s.TLS.Pool(), MinVersion: tls.VersionTLS12}
	}
	resp, err := (&http.Client{Transport: transport, Timeout: startTimeout, CheckRedirect: stay}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // The body has been read.
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, statusError(resp.Status + " " + string(answer))
	}
	var m struct {
		Data M `json:"data"`
		Auth M `json:"auth"`
	}
	if len(answer) > 0 {
		err = json.Unmarshal(answer, &m)
	}
	if m.Data == nil {
		m.Data = m.Auth
	}
	return m.Data, err
}

// Mount mounts a KV secrets engine of version "1" or "2".
func (s *Server) Mount(path, version string) {
	s.t.Helper()
	s.Do(http.MethodPost, "sys/mounts/"+path, M{"type": "kv", "options": M{"version": version}})
	if version != "2" {
		return
	}
	// KV v2 needs some time after it was mounted.
	deadline := time.Now().Add(startTimeout)
	for err := s.Try(http.MethodGet, path+"/config", nil); err != nil; err = s.Try(http.MethodGet, path+"/config", nil) {
		if time.Now().After(deadline) {
			s.t.Fatalf("mount %s: %s", path, err)
		}
	}
}

// Enable mounts an auth method under the name of its type.
func (s *Server) Enable(method string) {
	s.t.Helper()
	s.Do(http.MethodPost, "sys/auth/"+method, M{"type": method})
}

// Policy writes a policy, in Vault's language.
func (s *Server) Policy(name, rules string) {
	s.t.Helper()
	s.Do(http.MethodPut, "sys/policies/acl/"+name, M{"policy": rules})
}

// Token creates a token with properties of auth/token/create.
func (s *Server) Token(properties M) string {
	s.t.Helper()
	return s.Do(http.MethodPost, "auth/token/create", properties)["client_token"].(string)
}

// Seal seals the server, which then keeps only its encrypted data.
func (s *Server) Seal() {
	s.t.Helper()
	s.Do(http.MethodPut, "sys/seal", nil)
}

// Unseal unseals the server, and returns when it answers.
func (s *Server) Unseal() {
	s.t.Helper()
	s.Do(http.MethodPut, "sys/unseal", M{"key": s.unsealKey})
	deadline := time.Now().Add(startTimeout)
	for err := s.Try(http.MethodGet, "sys/health", nil); err != nil; err = s.Try(http.MethodGet, "sys/health", nil) {
		if time.Now().After(deadline) {
			s.t.Fatalf("unseal: %s", err)
		}
	}
}

// RevokeTokens revokes every token but the root token, and returns how many there were.
func (s *Server) RevokeTokens() int {
	s.t.Helper()
	own := s.Do(http.MethodGet, "auth/token/lookup-self", nil)["accessor"]
	n := 0
	for _, a := range s.Do("LIST", "auth/token/accessors", nil)["keys"].([]any) {
		if a != own {
			s.Do(http.MethodPost, "auth/token/revoke-accessor", M{"accessor": a})
			n++
		}
	}
	return n
}
