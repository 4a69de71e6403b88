// Package fips reports the FIPS 140-3 mode of the process, and recognizes what Go refuses under GODEBUG=fips140=only. See
// https://go.dev/doc/security/fips140.
package fips

import (
	"crypto/fips140"
	"strings"
)

// Refusal is the reason of a refused call for users. It contains no value.
const Refusal = "it needs an algorithm, key size or salt size that GODEBUG=fips140=only does not allow; use an approved one, or set fips140=on"

// Mode returns the value of GODEBUG=fips140 that is in force: off, on or only.
func Mode() string {
	switch {
	case fips140.Enforced():
		return "only"
	case fips140.Enabled():
		return "on"
	}
	return "off"
}

// Refused reports whether an error, or the value of a panic, is from a call that Go refused under GODEBUG=fips140=only. Go
// has no type for it, but all texts have the same end.
func Refused(v any) bool {
	text, _ := v.(string)
	if err, ok := v.(error); ok {
		text = err.Error()
	}
	return fips140.Enforced() && strings.Contains(text, "not allowed in FIPS 140-only mode")
}
