package emulator

import (
	"encoding/xml"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

const (
	// defaultSession is also the maximum of a session that is opened with another one.
	defaultSession = time.Hour
	minSession     = 15 * time.Minute
)

var sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)

type assumedRoleUser struct {
	Arn           string
	AssumedRoleID string `xml:"AssumedRoleId"`
}

type assumeRoleResult struct {
	XMLName         xml.Name `xml:"AssumeRoleResult"`
	Credentials     *sessionCredentials
	AssumedRoleUser assumedRoleUser
}

func (e *Emulator) assumeRole(q *request, form url.Values) (any, error) {
	role, externalID := form.Get("RoleArn"), form.Get("ExternalId")
	if err := checkRole(role); err != nil {
		return nil, err
	}
	r, known := e.identities.role(role)
	if !known || !r.trusts(q.caller, externalID) || q.caller.denies("sts:AssumeRole", "") {
		return nil, forbidden("User: " + q.caller.arn + " is not authorized to perform: sts:AssumeRole on resource: " + role)
	}
	if len(members(form, "Tags", ".Key", ".Value")) > 0 && q.caller.denies("sts:TagSession", "") {
		return nil, forbidden("User: " + q.caller.arn + " is not authorized to perform: sts:TagSession on resource: " + role)
	}
	s := Session{Name: form.Get("RoleSessionName"), ExternalID: externalID, SourceAccessKeyID: accessKeyOf(q.http)}
	if q.caller.ofRole() {
		s.Chain, r.MaxSessionDuration = q.caller.session.Chain, min(r.MaxSessionDuration, defaultSession)
	}
	d, err := sessionDuration(form, r)
	if err != nil {
		return nil, err
	}
	if err := s.tag(form); err != nil {
		return nil, err
	}
	if err := q.caller.showMFA(form, r.MFA); err != nil {
		return nil, err
	}
	c := e.open(r, s, d)
	return &assumeRoleResult{Credentials: c, AssumedRoleUser: e.userOf(c)}, nil
}

// checkRole returns the error of STS for a text that is no ARN.
func checkRole(role string) error {
	if a, err := arn.Parse(role); err != nil || a.Partition == "" || a.Service == "" || a.Resource == "" {
		return badRequest("ValidationError", "%s is invalid", role)
	}
	return nil
}

func (e *Emulator) userOf(c *sessionCredentials) assumedRoleUser {
	p := e.identities.principal(c.AccessKeyID)
	return assumedRoleUser{Arn: p.arn, AssumedRoleID: p.userID}
}

// sessionDuration returns the duration of a session. It also checks the session's name, because every way to
// assume a role needs both.
func sessionDuration(form url.Values, r Role) (time.Duration, error) {
	if !sessionName.MatchString(form.Get("RoleSessionName")) {
		return 0, badRequest("ValidationError", "1 validation error detected: Value at 'roleSessionName' failed to satisfy constraint: "+
			`Member must satisfy regular expression pattern: [\w+=,.@-]*`)
	}
	return durationOf(form, min(defaultSession, r.MaxSessionDuration), r.MaxSessionDuration, "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
}

// durationOf returns the requested duration, or the normal one.
func durationOf(form url.Values, normal, maximum time.Duration, exceeded string) (time.Duration, error) {
	if !form.Has("DurationSeconds") {
		return normal, nil
	}
	n, err := strconv.Atoi(form.Get("DurationSeconds"))
	if d := time.Duration(n) * time.Second; err == nil && d >= minSession && d <= maximum {
		return d, nil
	}
	return 0, badRequest("ValidationError", "%s", exceeded)
}

// tag gives the session the requested tags. The emulator does not pass on transitive ones to another session.
func (s *Session) tag(form url.Values) error {
	s.Tags = map[string]string{}
	for _, t := range members(form, "Tags", ".Key", ".Value") {
		if s.hasTag(t[0]) {
			return badRequest("InvalidParameterValue", "Duplicate tag keys found. Please note that Tag keys are case insensitive.")
		}
		s.Tags[t[0]] = t[1]
	}
	for _, k := range members(form, "TransitiveTagKeys", "") {
		if !s.hasTag(k[0]) {
			return badRequest("InvalidParameterValue", "The specified transitive tag key must be included in the requested tags.")
		}
		s.TransitiveTagKeys = append(s.TransitiveTagKeys, k[0])
	}
	return nil
}

// hasTag reports whether the session has a tag. The keys of tags are case insensitive.
func (s *Session) hasTag(key string) bool {
	for k := range s.Tags {
		if strings.EqualFold(k, key) {
			return true
		}
	}
	return false
}
