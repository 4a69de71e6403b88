package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Fingerprint returns a version of values, for a service whose own versions also change with labels or tags: 32 hexadecimal digits of a
// hash of v as JSON. The hash is keyed with the ID of the secret, so that a status that has only HashedID reveals no value.
func Fingerprint(id string, v any) string {
	h := hmac.New(sha256.New, []byte(id))
	h.Write(EncodeJSON(v))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// HashedID returns what a status has in place of an ID that is the key of fingerprints: 32 hexadecimal digits.
func HashedID(id string) string {
	h := sha256.Sum256([]byte("id of " + id))
	return hex.EncodeToString(h[:16])
}
