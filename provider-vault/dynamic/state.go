package dynamic

import (
	"encoding/json"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// A state identifies created credentials, and the token whose end revokes them. Accessors and lease ids are not
// secret: using them needs a token with a policy.
type state struct {
	// Lease is the id of the lease.
	Lease string `json:"lease,omitempty"`
	// Token is the accessor of the token that was created.
	Token string `json:"token,omitempty"`
	// Bound is set if the credentials are revoked together with the token that created them, because that token
	// expires.
	Bound bool `json:"bound,omitempty"`
	// Creator is the accessor of the token that created the credentials; empty for a batch token.
	Creator string `json:"creator,omitempty"`
	// Lifetime is how long the credentials were valid when they were created, in seconds; 0 means forever.
	Lifetime int64 `json:"life,omitempty"`
}

// stateOf returns the state of the credentials in an answer that arrived at a time, and when they expire.
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
		return s, ends // Values without a lease and a token cannot be renewed or revoked.
	}
	if until := by.Ends(); !orphan && !until.IsZero() {
		s.Bound, s.Creator = true, by.Accessor()
		ends = sooner(ends, until)
	}
	if !ends.IsZero() {
		s.Lifetime = int64(ends.Sub(at) / time.Second)
	}
	return s, ends
}

// renewable reports whether there is something to renew, and whether the token that created it can be
// identified.
func (s state) renewable() bool { return s.known() && (!s.Bound || s.Creator != "") }

// known reports whether Vault can identify the credentials.
func (s state) known() bool { return s.Lease != "" || s.Token != "" }

// String returns the stored form of a state; empty if there is nothing to renew or revoke.
func (s state) String() string {
	if !s.known() {
		return ""
	}
	raw, _ := json.Marshal(s) // Strings and numbers can always be encoded.
	return string(raw)
}

func parse(text string) (s state, err error) {
	if text != "" && json.Unmarshal([]byte(text), &s) != nil {
		err = provider.NewError(provider.Invalid, "the stored record of the credentials is damaged, so they cannot be revoked or renewed; they expire with their lease")
	}
	return s, err
}

// after returns t plus some seconds, or the zero time, which means never, for 0 seconds.
func after(t time.Time, seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return t.Add(time.Duration(seconds) * time.Second)
}

// sooner returns the earlier of two times. The zero time means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
