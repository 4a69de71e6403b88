package session

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxPath is the length at which paths are rejected, in bytes. Vault's storage allows about 32 KB, but other
// limits are lower.
const maxPath = 2048

// Unfit returns why a path cannot be part of an address at Vault, or "" if it can. All other characters, such
// as "?", "#" or "%", are escaped and keep no special meaning.
func Unfit(path string) string {
	switch {
	case path == "":
		return "is empty"
	case len(path) > maxPath:
		return "is too long"
	case !utf8.ValidString(path):
		return "is not UTF-8"
	case strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has a character that cannot be printed"
	}
	for s := range strings.SplitSeq(path, "/") {
		switch s {
		case "":
			return "has a slash too many"
		case ".", "..":
			return "has \"" + s + "\" between two slashes"
		}
	}
	return ""
}

// Shortened cuts a text for use in a message.
func Shortened(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// CheckMount returns a mount path without slashes around it.
func CheckMount(field, path string) (string, error) {
	path = strings.Trim(path, "/")
	if why := Unfit(path); why != "" {
		return "", provider.NewError(provider.Invalid, "%s: %s; write it as secret or team/kv", field, why)
	}
	return path, nil
}

// checkName returns a name that is used as one part of an address.
func checkName(field, name string) (string, error) {
	if why := Unfit(name); why != "" || strings.Contains(name, "/") {
		return "", provider.NewError(provider.Invalid, "%s: is not valid in a path of Vault; correct it", field)
	}
	return name, nil
}
