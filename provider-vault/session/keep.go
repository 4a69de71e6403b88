package session

import (
	"net/http"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// shortLease is the divisor of the first lease below which a token is no longer renewed: it is close to its
// maximum, and a new one is better.
const shortLease = 4

// keep renews the token of a session after two thirds of its time, as long as Vault extends it, and replaces it
// before it expires. It does not log in if there are no calls.
func (l *logins) keep(s *Session) {
	first, lease, renewable, ends := s.token.lease, s.token.lease, s.token.renewable, s.since.Add(s.token.lease)
	for {
		if !renewable || lease < first/shortLease {
			provider.Sleep(l.ctx, time.Until(ends)-lease/10)
			l.forget(s)
			return
		}
		if !provider.Sleep(l.ctx, time.Until(ends)-lease/3) {
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
			renewable = false // The token cannot be renewed, or has expired. The next call detects that.
		default:
			lease = time.Until(ends) // Vault is unavailable. Retry after a part of the remaining time.
			if lease < time.Second {
				renewable = false
			}
		}
	}
}
