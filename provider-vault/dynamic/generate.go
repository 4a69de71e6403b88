package dynamic

import (
	"context"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// discardTimeout limits the revocation of credentials that cannot be returned.
const discardTimeout = 15 * time.Second

// Generate creates credentials. They expire with their lease, or with the token that created them, whichever
// comes first.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	var by *session.Session
	var at time.Time
	a, err := g.vault.Make(ctx, func(s *session.Session) (session.Answer, error) {
		if n := s.Uses(); n > 0 {
			return session.Answer{}, provider.NewError(provider.Invalid, "spec.auth: the token can be used only %d times, and Vault then revokes the credentials that were created with it; allow any number (token_num_uses: 0)", n)
		}
		by, at = s, time.Now()
		return g.request.send(ctx, s)
	})
	if err != nil {
		return provider.Generated{}, g.request.explain(err)
	}
	if a.Auth != nil && a.Auth.Accessor != "" && a.Auth.Accessor == by.Accessor() {
		return provider.Generated{}, provider.NewError(provider.Invalid, "spec.path: the response is the token of the generator's own login; use a path that creates a token, such as auth/token/create/ROLE")
	}
	made, ends := stateOf(a, by, at)
	values, err := valuesOf(a, g.part)
	if err != nil {
		g.discard(ctx, made)
		return provider.Generated{}, err
	}
	return provider.Generated{Values: values, State: made.String(), Expires: ends}, nil
}

// discard revokes credentials that will not be used. If that fails, they expire with their lease.
func (g *Generator) discard(ctx context.Context, s state) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	_ = g.revoke(ctx, s)
}

// Renew renews a lease or a created token, and the token whose end would revoke it.
func (g *Generator) Renew(ctx context.Context, text string) (provider.Generated, error) {
	s, err := parse(text)
	if err != nil {
		return provider.Generated{}, err
	}
	if !s.renewable() {
		return provider.Generated{}, provider.ErrNotRenewable
	}
	at := time.Now()
	by, ends, err := g.prolong(ctx, s)
	if err == nil && s.Bound {
		var until time.Time
		until, err = g.prolongCreator(ctx, s, by, ends)
		ends = sooner(ends, until)
	}
	switch {
	case err != nil:
		return provider.Generated{}, err
	case !ends.IsZero() && ends.Sub(at) < time.Duration(s.Lifetime)*time.Second/2:
		return provider.Generated{}, provider.ErrNotRenewable // The lease is close to its maximum.
	}
	return provider.Generated{State: text, Expires: ends}, nil
}

// prolong renews a lease or token. It returns when it expires, and the session that renewed it.
func (g *Generator) prolong(ctx context.Context, s state) (by *session.Session, ends time.Time, err error) {
	var at time.Time
	a, err := g.vault.Call(ctx, func(now *session.Session) (session.Answer, error) {
		by, at = now, time.Now()
		if s.Token != "" {
			return renewAccessor(ctx, now.Secrets, s.Token)
		}
		return session.Write(ctx, now.Secrets, "sys/leases/renew", map[string]string{"lease_id": s.Lease})
	})
	if err != nil {
		return nil, time.Time{}, notRenewed(err)
	}
	if a.Auth != nil {
		return by, after(at, a.Auth.Lease), nil
	}
	return by, after(at, a.Lease), nil
}

// prolongCreator renews the token that created something, if that token expires first, and returns when
// everything expires. The token of the present session can renew itself. The token of an earlier session,
// before a restart or a change of the generator, is no longer known. It can be renewed by its accessor if the
// policy allows that.
func (g *Generator) prolongCreator(ctx context.Context, s state, by *session.Session, ends time.Time) (time.Time, error) {
	if by.Accessor() == s.Creator {
		if sooner(ends, by.Ends()).Equal(by.Ends()) {
			_ = g.vault.Prolong(ctx, by) // If this fails, the earlier end of the token applies.
		}
		return by.Ends(), nil
	}
	var at time.Time
	a, err := g.vault.Call(ctx, func(now *session.Session) (session.Answer, error) {
		at = time.Now()
		return renewAccessor(ctx, now.Tokens, s.Creator)
	})
	if err != nil {
		return time.Time{}, notRenewed(err)
	}
	return after(at, a.Auth.Lease), nil
}

func renewAccessor(ctx context.Context, c *api.Client, accessor string) (session.Answer, error) {
	a, err := session.Write(ctx, c, "auth/token/renew-accessor", map[string]string{"accessor": accessor})
	if err == nil && a.Auth == nil {
		err = provider.NewError(provider.Unavailable, "the response of Vault does not describe the token")
	}
	return a, err
}

// notRenewed separates errors that can be temporary from those that are not. For the latter, replacing the
// credentials now is better than waiting until they expire.
func notRenewed(err error) error {
	var refusal *session.Refusal
	if errors.As(err, &refusal) && !refusal.Foreign {
		switch refusal.Status {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
			return provider.ErrNotRenewable
		}
	}
	return session.Explain(err, "renewing")
}

// Cleanup revokes a lease or a created token, and returns when that is done.
func (g *Generator) Cleanup(ctx context.Context, text string) error {
	s, err := parse(text)
	if err != nil {
		return err
	}
	return g.revoke(ctx, s)
}

// errOwnLogin refuses to revoke the token that the generator works with.
var errOwnLogin = provider.NewError(provider.Invalid, "revoking: the record names the token of the generator's own login, which is not revoked; it expires by itself")

// These texts of Vault identify the cause of an error.
const (
	unknownLease    = "lease not found"
	unknownAccessor = "invalid accessor"
)

func (g *Generator) revoke(ctx context.Context, s state) error {
	if !s.known() {
		return nil
	}
	path, body := "sys/leases/revoke", map[string]any{"lease_id": s.Lease, "sync": true}
	if s.Token != "" {
		path, body = "auth/token/revoke-accessor", map[string]any{"accessor": s.Token}
	}
	_, err := g.vault.Call(ctx, func(now *session.Session) (session.Answer, error) {
		if s.Token != "" && s.Token == now.Accessor() { // Vault would revoke with it what was created for all others.
			return session.Answer{}, errOwnLogin
		}
		return session.Write(ctx, now.Secrets, path, body)
	})
	var refusal *session.Refusal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refusal) || refusal.Foreign:
		return session.Explain(err, "revoking")
	case refusal.Contains(unknownLease), refusal.Contains(unknownAccessor):
		return nil
	case refusal.Status == http.StatusForbidden:
		return provider.NewError(provider.Denied, "revoking: access denied; allow update on %q in a policy", path)
	case refusal.Status == http.StatusBadRequest:
		return provider.NewError(provider.Unavailable, "revoking: Vault cannot do it now, possibly because it cannot reach the system of the credentials; see the log of Vault")
	}
	return session.Explain(err, "revoking")
}
