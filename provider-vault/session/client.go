// Package session logs in to Vault and OpenBao, and makes requests there, for all Kinds of this module.
package session

import (
	"context"
	"net/http"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// A Client makes requests to one server as one identity. It logs in when it is first used.
type Client struct {
	server *server
	logins *logins
}

// New returns a Client. Vault is not called.
func New(ctx context.Context, spec *v1alpha1.VaultServer, creds provider.Credentials) (*Client, error) {
	m, err := methodOf(spec.Auth, creds)
	if err != nil {
		return nil, err
	}
	srv, err := newServer(ctx, spec, creds)
	if err != nil {
		return nil, err
	}
	return &Client{server: srv, logins: newLogins(srv, m)}, nil
}

// Close ends the session at Vault, unless something was made that dies with it, and releases connections.
func (c *Client) Close() {
	c.logins.close()
	c.server.close()
}

// Call makes a request with the present session. One that ended before its time is replaced once.
func (c *Client) Call(ctx context.Context, f func(*Session) (Answer, error)) (Answer, error) {
	return c.call(ctx, c.logins.session, f)
}

// Make is Call for a request that makes what dies with the token of its session.
func (c *Client) Make(ctx context.Context, f func(*Session) (Answer, error)) (Answer, error) {
	return c.call(ctx, c.logins.lasting, f)
}

func (c *Client) call(ctx context.Context, session func(context.Context) (*Session, error), f func(*Session) (Answer, error)) (Answer, error) {
	s, err := session(ctx)
	if err != nil {
		return Answer{}, err
	}
	a, err := f(s)
	if r := DeniedBy(err); r != nil && c.logins.ended(ctx, s, r) {
		if s, err = session(ctx); err != nil {
			return Answer{}, err
		}
		a, err = f(s)
	}
	if status := StatusOf(err); err == nil || status == http.StatusNotFound {
		s.worked.Store(true)
	}
	return a, err
}

// Prolong renews the token of a session, if it can be.
func (c *Client) Prolong(ctx context.Context, s *Session) error { return c.logins.prolong(ctx, s) }

// Place names a path on the server. A namespace is the beginning of a path.
func (c *Client) Place(path string) string { return c.server.place(path) }

// Check proves address and login. What is denied beyond the login does not count.
func (c *Client) Check(ctx context.Context) error {
	_, err := c.Call(ctx, func(s *Session) (Answer, error) {
		_, err := s.lookup(ctx)
		return Answer{}, err
	})
	if err != nil && DeniedBy(err) == nil {
		return Explain(err, "")
	}
	return nil
}
