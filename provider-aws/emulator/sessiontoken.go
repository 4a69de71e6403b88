package emulator

import (
	"encoding/xml"
	"net/url"
	"slices"
	"sync"
	"time"
)

type getSessionTokenResult struct {
	XMLName     xml.Name `xml:"GetSessionTokenResult"`
	Credentials *sessionCredentials
}

// getSessionToken opens a session for a user's access key. It needs no permission, as in AWS.
func (e *Emulator) getSessionToken(q *request, form url.Values) (any, error) {
	if q.caller.session != nil {
		return nil, forbidden("Cannot call GetSessionToken with session credentials")
	}
	d, err := durationOf(form, 12*time.Hour, 36*time.Hour, "1 validation error detected: Value at 'durationSeconds' failed to satisfy constraint")
	if err != nil {
		return nil, err
	}
	if err := q.caller.showMFA(form, false); err != nil {
		return nil, err
	}
	user := principal{arn: q.caller.arn, userID: q.caller.userID, deny: q.caller.deny, mfa: q.caller.mfa}
	return &getSessionTokenResult{Credentials: e.record(user, Session{SourceAccessKeyID: accessKeyOf(q.http)}, d)}, nil
}

// ofRole reports whether this is a session of a role.
func (p *principal) ofRole() bool { return p.session != nil && p.session.RoleARN != "" }

// An mfaDevice has codes, each of which works once.
type mfaDevice struct {
	serial string

	mu    sync.Mutex
	codes []string
}

// take uses up a code, and reports whether it was valid.
func (d *mfaDevice) take(code string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.codes, code)
	if i < 0 {
		return false
	}
	d.codes = slices.Delete(d.codes, i, i+1)
	return true
}

// showMFA checks the MFA device that a call shows, if it shows one or must.
func (p *principal) showMFA(form url.Values, must bool) error {
	serial, code := form.Get("SerialNumber"), form.Get("TokenCode")
	switch {
	case serial == "" && code == "" && !must:
		return nil
	case serial == "" || p.mfa == nil || p.mfa.serial != serial:
		return forbidden("MultiFactorAuthentication failed, unable to validate MFA code.  Please verify your MFA serial number is valid and associated with this user.")
	case !p.mfa.take(code):
		return forbidden("MultiFactorAuthentication failed with invalid MFA one time pass code. ")
	}
	return nil
}
