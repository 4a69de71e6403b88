package fake

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// Claims are the claims of a JSON web token that emulators check.
type Claims struct {
	KeyID    string    `json:"kid"` // It is in the header.
	Issuer   string    `json:"iss"`
	Subject  string    `json:"sub"`
	Audience OneOrMore `json:"aud"`
	Scope    string    `json:"scope"`
	Issued   float64   `json:"iat"`
	Expires  float64   `json:"exp"`
}

// OneOrMore is one text or a list of them.
type OneOrMore []string

// UnmarshalJSON implements json.Unmarshaler.
func (m *OneOrMore) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil {
		*m = OneOrMore{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(m))
}

// ParseToken decodes a JSON web token without verifying it; ok is false if it is none.
func ParseToken(token string) (c Claims, ok bool) {
	parts := strings.Split(token, ".")
	for _, part := range parts[:min(2, len(parts))] {
		b, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || json.Unmarshal(b, &c) != nil {
			return c, false
		}
	}
	return c, len(parts) == 3
}

// NewToken returns an unsigned JSON web token, for tests without an issuer.
func NewToken(issuer, subject, audience string, expires time.Time) string {
	payload, err := json.Marshal(map[string]any{"iss": issuer, "sub": subject, "aud": []string{audience}, "exp": expires.Unix()})
	if err != nil {
		panic(err) // Strings and a number can always be encoded.
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + enc.EncodeToString(payload) + "."
}
