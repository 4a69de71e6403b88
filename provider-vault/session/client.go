// Package session logs in to Vault and OpenBao and sends requests, for all Kinds of this module.
package session

import (
	"context"
	"net/http"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// A Client sends requests to one server with one login. It logs in when it is first used.
type Client struct {
	server *server
	logins *logins
}

// New returns a Client. It does not call Vault.
func New(ctx context.Context, spec *v1alpha1.VaultServer, creds provider.Credentials) (*Client, error) {
	m, err := methodOf(spec.Auth, creds)
	if err != nil {
		return nil, err
	}
	srv, err := newServer(ctx, spec, creds)
	if err != nil {
		return nil, err
	}
	return &Client{server: srv, logins: newLogins(ctx, srv, m)}, nil
}

// Close revokes the token of the session, unless credentials depend on it, and releases connections.
func (c *Client) Close() {
	c.logins.close()
	c.server.close()
}

// Call sends a request with the present session. If the session has expired early, Call logs in again and
// retries once.
func (c *Client) Call(ctx context.Context, f func(*Session) (Answer, error)) (Answer, error) {
	return c.call(ctx, c.logins.session, f)
}

// Make is Call for a request that creates credentials, which Vault revokes together with the session's token.
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

// Prolong renews the token of a session, if possible.
func (c *Client) Prolong(ctx context.Context, s *Session) error { return c.logins.prolong(ctx, s) }

// Place identifies a path on the server. A namespace is the start of a path.
func (c *Client) Place(path string) string { return c.server.place(path) }

// Check checks the address and the login. A denied request that is not about the login passes.
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

// Warnings returns what a user should know of a server that works, as provider.Warnings; nil if there is nothing.
func (c *Client) Warnings() error {
	if !c.server.plain {
		return nil
	}
	return provider.Warnings{"spec.server: the traffic is not encrypted, so anyone on the network can read logins and secrets, unless the network protects it"}
}
