package session

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxPath is the length in bytes from which on a path is none. Vault's storage ends near 32 KB, its
// users well before.
const maxPath = 2048

// Unfit says why a path cannot be part of an address at Vault; empty if it can. Whatever is left,
// such as "?", "#" or "%", is escaped and so stands for itself.
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
	case strings.Contains(path, ".."):
		return "has \"..\" in it, which Vault does not allow"
	}
	for s := range strings.SplitSeq(path, "/") {
		switch s {
		case "":
			return "has a slash too many"
		case ".":
			return "has a part that is \".\""
		}
	}
	return ""
}

// Shortened keeps messages readable.
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

// checkName returns a name that becomes one part of an address.
func checkName(field, name string) (string, error) {
	if why := Unfit(name); why != "" || strings.Contains(name, "/") {
		return "", provider.NewError(provider.Invalid, "%s: cannot be a part of a path at Vault; correct it", field)
	}
	return name, nil
}
