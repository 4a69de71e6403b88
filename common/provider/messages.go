package provider

import (
	"fmt"
	"slices"
	"strings"
)

// About describes a secret in messages. noun is what the service calls one, such as "secret".
func (r Ref) About(noun string) string {
	if r.Version != "" {
		return fmt.Sprintf("%s %q version %q", noun, r.Key, r.Version)
	}
	return fmt.Sprintf("%s %q", noun, r.Key)
}

// Quoted quotes a text for a message, or its beginning if it is long.
func Quoted(text string) string {
	const most = 64
	if len(text) > most {
		return fmt.Sprintf("%q… (%d characters)", strings.ToValidUTF8(text[:most], ""), len(text))
	}
	return fmt.Sprintf("%q", text)
}

// A Choice is one of several fields of which exactly one must be set.
type Choice struct {
	Field string
	Set   bool
}

// ExactlyOne returns the field that is set. at is the field of the spec with the others in it. The error has class Invalid, and names all.
func ExactlyOne(at string, of ...Choice) (field string, err error) {
	var names []string
	set := slices.DeleteFunc(slices.Clone(of), func(c Choice) bool {
		names = append(names, c.Field)
		return !c.Set
	})
	if len(set) != 1 {
		last := len(names) - 1
		return "", NewError(Invalid, "%s: set exactly one of %s and %s", at, strings.Join(names[:last], ", "), names[last])
	}
	return set[0].Field, nil
}
