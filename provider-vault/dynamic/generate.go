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

// discardTimeout bounds the revocation of what cannot be handed over.
const discardTimeout = 15 * time.Second

// Generate makes credentials. They end with their lease, or with the token by which they were made, whichever
// comes first.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	var by *session.Session
	var at time.Time
	a, err := g.vault.Make(ctx, func(s *session.Session) (session.Answer, error) {
		if n := s.Uses(); n > 0 {
			return session.Answer{}, provider.NewError(provider.Invalid, "spec.auth: the token can be used %d times only, and Vault revokes with it what it made; allow it any number (token_num_uses: 0)", n)
		}
		by, at = s, time.Now()
		return g.request.send(ctx, s)
	})
	if err != nil {
		return provider.Generated{}, g.request.explain(err)
	}
	made, ends := stateOf(a, by, at)
	values, err := valuesOf(a, g.part)
	if err != nil {
		g.discard(ctx, made)
		return provider.Generated{}, err
	}
	return provider.Generated{Values: values, State: made.String(), Expires: ends}, nil
}

// discard revokes what nobody will use. Where that fails it lives until its lease ends.
func (g *Generator) discard(ctx context.Context, s state) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	_ = g.revoke(ctx, s)
}

// Renew prolongs a lease, or the life of a token that was made, and of the token with which it dies.
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
	case !ends.IsZero() && ends.Sub(at) < time.Duration(s.Life)*time.Second/2:
		return provider.Generated{}, provider.ErrNotRenewable // It comes near its maximum.
	}
	return provider.Generated{State: text, Expires: ends}, nil
}

// prolong renews a lease or token, and returns when it ends, and by whom it was renewed.
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

// prolongCreator renews the token with which something dies, if it dies first, and returns when it ends. The
// token of the present session can renew itself. That of another one, of before a restart or a change of the
// generator, nobody has any more: it can be renewed by its accessor, where the policy allows that.
func (g *Generator) prolongCreator(ctx context.Context, s state, by *session.Session, ends time.Time) (time.Time, error) {
	if by.Accessor() == s.Creator {
		if sooner(ends, by.Ends()).Equal(by.Ends()) {
			_ = g.vault.Prolong(ctx, by) // Else it ends when it does.
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
		err = provider.NewError(provider.Unavailable, "the answer of Vault says nothing of the token")
	}
	return a, err
}

// notRenewed tells what may work later from what will not: then a replacement is better than to wait for
// the end.
func notRenewed(err error) error {
	var said *session.Refusal
	if errors.As(err, &said) && !said.Foreign {
		switch said.Status {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
			return provider.ErrNotRenewable
		}
	}
	return session.Explain(err, "renewing")
}

// Cleanup revokes a lease, or a token that was made, and returns once that is done.
func (g *Generator) Cleanup(ctx context.Context, text string) error {
	s, err := parse(text)
	if err != nil {
		return err
	}
	return g.revoke(ctx, s)
}

// Texts of Vault by which refusals are told apart.
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
		return session.Write(ctx, now.Secrets, path, body)
	})
	var said *session.Refusal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &said) || said.Foreign:
		return session.Explain(err, "revoking")
	case said.Says(unknownLease), said.Says(unknownAccessor):
		return nil
	case said.Status == http.StatusForbidden:
		return provider.NewError(provider.Denied, "revoking: access denied; allow update on %q in a policy", path)
	case said.Status == http.StatusBadRequest:
		return provider.NewError(provider.Unavailable, "revoking: Vault cannot do it now, perhaps because it does not reach the system that knows the credentials; its log says why")
	}
	return session.Explain(err, "revoking")
}
