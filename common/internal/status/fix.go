package status

import (
	"strings"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// fixes are what a user can do about an error of a class, for messages that do not name it.
var fixes = map[provider.Class]string{
	provider.NotFound: "create it, or correct the key, property or version in the spec",
	provider.Denied:   "allow the login of the store to do this; the page of the store's Kind lists the permissions",
	provider.Template: "correct the template; dsctl render tries it offline",
}

// FixOf returns what a user can do about an error of a class; empty if the message must say it, or nothing need be done.
func FixOf(class provider.Class) string { return fixes[class] }

// WithFix returns the message of an error with what a user can do about it.
func WithFix(class provider.Class, message string) string {
	if fix := fixes[class]; fix != "" && FixIn(message) == "" {
		return message + "; " + fix
	}
	return message
}

// FixIn returns what a message says that a user can do: the text after the first semicolon; empty if there is none. Names are
// quoted, and their authors can be tenants: a semicolon within quotation marks does not count.
func FixIn(message string) string {
	quoted, escaped := false, false
	for i, r := range message {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(message[i:], "; "):
			return message[i+len("; "):]
		}
	}
	return ""
}
