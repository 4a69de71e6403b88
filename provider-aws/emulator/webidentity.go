package emulator

import (
	"encoding/xml"
	"net/url"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

type assumeRoleWithWebIdentityResult struct {
	XMLName                     xml.Name `xml:"AssumeRoleWithWebIdentityResult"`
	Credentials                 *sessionCredentials
	AssumedRoleUser             assumedRoleUser
	SubjectFromWebIdentityToken string
	Audience                    string
	Provider                    string
}

func (e *Emulator) assumeRoleWithWebIdentity(_ *request, form url.Values) (any, error) {
	c, ok := fake.ParseToken(form.Get("WebIdentityToken"))
	if !ok {
		return nil, badRequest("InvalidIdentityToken", "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)")
	}
	if now := e.now().Unix(); now >= int64(c.Expires) {
		return nil, badRequest("ExpiredTokenException",
			"Token expired: current date/time %d must be before the expiration date/time %d", now, int64(c.Expires))
	}
	r, known := e.identities.role(form.Get("RoleArn"))
	if !known {
		return nil, forbidden("Not authorized to perform sts:AssumeRoleWithWebIdentity")
	}
	aud, err := r.admits(c)
	if err != nil {
		return nil, err
	}
	d, err := sessionDuration(form, r)
	if err != nil {
		return nil, err
	}
	s := Session{Name: form.Get("RoleSessionName"), Subject: c.Subject, Audience: aud}
	creds := e.open(r, s, d)
	return &assumeRoleWithWebIdentityResult{
		Credentials: creds, AssumedRoleUser: e.userOf(creds),
		SubjectFromWebIdentityToken: c.Subject, Audience: aud, Provider: c.Issuer,
	}, nil
}

// admits returns the audience with which the role accepts a token. A token for another audience is rejected by
// the identity provider, before the trust policy.
func (r Role) admits(c fake.Claims) (string, error) {
	wrongAudience := len(r.WebIdentities) > 0
	for _, w := range r.WebIdentities {
		i := slices.IndexFunc(c.Audience, func(a string) bool { return matches(w.Audience, a) })
		if i < 0 {
			continue
		}
		wrongAudience = false
		if matches(w.Subject, c.Subject) && matches(w.Issuer, c.Issuer) {
			return c.Audience[i], nil
		}
	}
	if wrongAudience {
		return "", badRequest("InvalidIdentityToken", "Incorrect token audience")
	}
	return "", forbidden("Not authorized to perform sts:AssumeRoleWithWebIdentity")
}

func matches(pattern, text string) bool { return pattern == "" || glob(pattern, text) }
