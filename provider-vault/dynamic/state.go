package dynamic

import (
	"encoding/json"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// A state says what was made, and what it dies with. Accessors and the ids of leases are no secrets: what
// they allow needs a token with a policy, too.
type state struct {
	// Lease is the id of the lease.
	Lease string `json:"lease,omitempty"`
	// Token is the accessor of a token that was made.
	Token string `json:"token,omitempty"`
	// Bound is true for what dies with the token by which it was made, because that ends some day.
	Bound bool `json:"bound,omitempty"`
	// Creator is the accessor of that token; a batch token has none.
	Creator string `json:"creator,omitempty"`
	// Life is how long it would have lived when it was made, in seconds; 0 for ever.
	Life int64 `json:"life,omitempty"`
}

// stateOf says what an answer has made that came at a time, and when that ends.
func stateOf(a session.Answer, by *session.Session, at time.Time) (s state, ends time.Time) {
	s.Lease = a.LeaseID
	if a.LeaseID != "" {
		ends = after(at, a.Lease)
	}
	orphan := false
	if a.Auth != nil {
		s.Token, orphan = a.Auth.Accessor, a.Auth.Orphan
		ends = sooner(ends, after(at, a.Auth.Lease))
	}
	if s.Lease == "" && a.Auth == nil {
		return s, ends // It has no life of its own: neither it nor anything of it can be revoked.
	}
	if until := by.Ends(); !orphan && !until.IsZero() {
		s.Bound, s.Creator = true, by.Accessor()
		ends = sooner(ends, until)
	}
	if !ends.IsZero() {
		s.Life = int64(ends.Sub(at) / time.Second)
	}
	return s, ends
}

// renewable reports whether there is anything to renew, and the creator can be told from others.
func (s state) renewable() bool { return s.known() && (!s.Bound || s.Creator != "") }

// known reports whether there is anything that Vault can be asked about.
func (s state) known() bool { return s.Lease != "" || s.Token != "" }

// String is the form in which a state is kept; empty if there is nothing to renew or revoke.
func (s state) String() string {
	if !s.known() {
		return ""
	}
	raw, _ := json.Marshal(s) // Strings and numbers always encode.
	return string(raw)
}

func parse(text string) (s state, err error) {
	if text != "" && json.Unmarshal([]byte(text), &s) != nil {
		err = provider.NewError(provider.Invalid, "what is kept of the credentials has been damaged, so that they cannot be revoked or renewed; they end with their lease")
	}
	return s, err
}

// after is the time some seconds after another; zero, which is never, for 0 seconds.
func after(t time.Time, seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return t.Add(time.Duration(seconds) * time.Second)
}

// sooner is the sooner of two times, where zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
