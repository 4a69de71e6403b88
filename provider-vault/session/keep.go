package session

import (
	"net/http"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// shortLease is the share of the first lease below which renewals end: the token comes near its
// maximum, and a new one is better.
const shortLease = 4

// keep renews the token of a session after two thirds of its time, for as long as Vault grants more,
// and has it replaced before it ends. Nobody logs in while nobody calls.
func (l *logins) keep(s *Session) {
	first, lease, renewable, ends := s.token.lease, s.token.lease, s.token.renewable, s.since.Add(s.token.lease)
	for {
		if !renewable || lease < first/shortLease {
			l.wait(time.Until(ends) - lease/10)
			l.forget(s)
			return
		}
		if !l.wait(time.Until(ends) - lease/3) {
			return
		}
		if !l.present(s) {
			return
		}
		t, err := s.renew(l.ctx)
		switch {
		case err == nil:
			lease, renewable = t.lease, t.renewable
			ends = time.Now().Add(lease)
		case StatusOf(err) == http.StatusForbidden, provider.ClassOf(explained(err)) == provider.Invalid:
			renewable = false // It may not be renewed, or has ended: then a call will show that.
		default:
			lease = time.Until(ends) // Vault is away; try again after a part of what is left.
			if lease < time.Second {
				renewable = false
			}
		}
	}
}

// wait returns after a time, or false when the client is closed before.
func (l *logins) wait(d time.Duration) bool {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	select {
	case <-l.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
