package emulator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Role is a role that callers can assume with STS. It trusts no caller unless Principals, ExternalID or
// WebIdentities is set. In all of them "*" matches any text.
type Role struct {
	ARN string

	// Principals are the ARNs of users and roles that can assume the role. If it is empty and ExternalID is
	// set, any caller can.
	Principals []string

	// ExternalID, if set, is required in AssumeRole.
	ExternalID string

	// MFA requires users to show their MFA device.
	MFA bool

	// WebIdentities are the tokens that AssumeRoleWithWebIdentity accepts.
	WebIdentities []WebIdentity

	// MaxSessionDuration is the maximum that callers can request; the default is one hour.
	MaxSessionDuration time.Duration

	// Deny lists the actions that sessions are not allowed to do; everything else is allowed.
	Deny []Deny

	// Policy limits what sessions can do with secrets and parameters; nil allows everything that Deny does not list.
	Policy *Policy
}

// A WebIdentity selects tokens by their claims. An empty field accepts all.
type WebIdentity struct {
	Issuer   string
	Subject  string
	Audience string
}

// AddRole adds a role, or replaces the one with the same ARN.
func (e *Emulator) AddRole(r Role) {
	if r.MaxSessionDuration == 0 {
		r.MaxSessionDuration = time.Hour
	}
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	if e.identities.roles == nil {
		e.identities.roles = map[string]Role{}
	}
	e.identities.roles[r.ARN] = r
}

func (i *identities) role(arn string) (Role, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	r, ok := i.roles[arn]
	return r, ok
}

// trusts reports whether a caller can assume the role.
func (r Role) trusts(p *principal, externalID string) bool {
	if r.ExternalID != "" && r.ExternalID != externalID {
		return false
	}
	if len(r.Principals) == 0 {
		return r.ExternalID != ""
	}
	return slices.ContainsFunc(r.Principals, func(pattern string) bool {
		return glob(pattern, p.arn) || p.ofRole() && glob(pattern, p.session.RoleARN)
	})
}

// A Session is a session that STS has issued, for tests to inspect. Without a RoleARN it is the session of a
// user.
type Session struct {
	AccessKeyID       string
	RoleARN           string
	Name              string
	AssumedRoleARN    string
	ExternalID        string
	Tags              map[string]string // including inherited ones
	TransitiveTagKeys []string
	Subject           string // of a web identity
	Audience          string
	SourceAccessKeyID string   // of the caller of AssumeRole
	Chain             []string // the ARNs of the assumed roles, this one last
	Issued            time.Time
	Expires           time.Time
}

// Sessions returns the sessions that STS has issued since the start or the last Reset, in order.
func (e *Emulator) Sessions() []Session {
	e.identities.mu.RLock()
	defer e.identities.mu.RUnlock()
	return slices.Clone(e.identities.sessions)
}

// ExpireSessions expires all sessions.
func (e *Emulator) ExpireSessions() {
	now := e.now()
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	for id, p := range e.identities.principals {
		if p.session == nil || p.expired(now) {
			continue
		}
		ended := *p // calls in progress keep their principal
		ended.expires = now
		e.identities.principals[id] = &ended
	}
}

// open starts a session of a role and returns its credentials.
func (e *Emulator) open(r Role, s Session, d time.Duration) *sessionCredentials {
	s.RoleARN = r.ARN
	s.AssumedRoleARN = "arn:aws:sts::" + accountOf(r.ARN, e.account) + ":assumed-role/" + r.ARN[strings.LastIndex(r.ARN, "/")+1:] + "/" + s.Name
	s.Chain = append(slices.Clone(s.Chain), r.ARN)
	s.Tags = maps.Clone(s.Tags)
	return e.record(principal{
		arn: s.AssumedRoleARN, userID: "AROA" + strings.ToUpper(hashString([]byte(r.ARN))) + ":" + s.Name, deny: r.Deny, policy: r.Policy,
	}, s, d)
}

// record makes the credentials of a session valid and stores the session.
func (e *Emulator) record(p principal, s Session, d time.Duration) *sessionCredentials {
	s.AccessKeyID = "ASIA" + strings.ToUpper(strings.ReplaceAll(newUUID(), "-", "")[:16])
	s.Issued = e.now()
	s.Expires = s.Issued.Add(d)
	p.secretAccessKey, p.sessionToken, p.expires, p.session = newUUID(), "session-"+newUUID(), s.Expires, &s
	e.identities.addPrincipal(s.AccessKeyID, &p)
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	e.identities.sessions = append(e.identities.sessions, s)
	return &sessionCredentials{
		AccessKeyID: s.AccessKeyID, SecretAccessKey: p.secretAccessKey, SessionToken: p.sessionToken, Expiration: iso8601(s.Expires),
	}
}

type sessionCredentials struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      string
}

// accountOf returns the account in an ARN, or otherwise.
func accountOf(arn, otherwise string) string {
	if parts := strings.SplitN(arn, ":", 6); len(parts) == 6 && parts[4] != "" {
		return parts[4]
	}
	return otherwise
}

func forbidden(message string) *apiError {
	return &apiError{Status: http.StatusForbidden, Code: "AccessDenied", Message: message}
}
