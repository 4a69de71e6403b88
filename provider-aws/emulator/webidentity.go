package emulator

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"net/url"
	"slices"
	"strings"
	"time"
)

type assumeRoleWithWebIdentityResult struct {
	XMLName                     xml.Name `xml:"AssumeRoleWithWebIdentityResult"`
	Credentials                 *sessionCredentials
	AssumedRoleUser             assumedRoleUser
	SubjectFromWebIdentityToken string
	Audience                    string
	Provider                    string
}

// claims are the claims of a web identity token that a trust policy checks.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
	Expires  float64  `json:"exp"`
}

// audience is one string or a list of them.
type audience []string

func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

func parseToken(token string) (claims, error) {
	var c claims
	bad := badRequest("InvalidIdentityToken",
		"The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, bad
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, bad
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, bad
	}
	return c, nil
}

func (e *Emulator) assumeRoleWithWebIdentity(_ *request, form url.Values) (any, error) {
	token := form.Get("WebIdentityToken")
	c, err := parseToken(token)
	if err != nil {
		return nil, err
	}
	if now := e.now().Unix(); now >= int64(c.Expires) {
		return nil, badRequest("ExpiredTokenException",
			"Token expired: current date/time %d must be before the expiration date/time %d", now, int64(c.Expires))
	}
	if e.verifyToken != nil {
		if err := e.verifyToken(token); err != nil {
			return nil, badRequest("InvalidIdentityToken", "The signature of the ID Token could not be verified.")
		}
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
func (r Role) admits(c claims) (string, error) {
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

// NewToken returns an unsigned web identity token for
// AssumeRoleWithWebIdentity, for tests without an identity provider.
func NewToken(issuer, subject, audience string, expires time.Time) string {
	payload, err := json.Marshal(map[string]any{"iss": issuer, "sub": subject, "aud": []string{audience}, "exp": expires.Unix()})
	if err != nil {
		panic(err) // strings and a number can always be encoded
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + enc.EncodeToString(payload) + "."
}
