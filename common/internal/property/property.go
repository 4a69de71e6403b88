// Package property finds the member of a JSON document that a property means. Reads and pushes share it, so that a
// push writes the member that a read of the same property returns.
//
// A property that equals a top-level member is that member. Otherwise it is a path in gjson syntax: names that are
// separated by dots, in which \ makes the next character a part of the name. A path with a wildcard, a modifier or a
// pipe is a query.
package property

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// MaxLength is the maximum length of a property that is a path, in bytes.
const MaxLength = 512

// A Name is one part of a path.
type Name struct {
	Text string
	// Unusual is true for an empty name, and for one that starts with a #, which asks for the elements of a list. They are
	// names only in an object that has them.
	Unusual bool
}

// Split splits a property at its dots, except escaped ones, and removes the backslashes. query is true if it is a query.
func Split(property string) (names []Name, query bool) {
	start, query := 0, strings.HasPrefix(property, "..") // That would be JSON lines.
	end := func(i int) {
		n, q := parse(property[start:i])
		names, query = append(names, n), query || q
		start = i + 1
	}
	for i := 0; i < len(property); i++ {
		switch property[i] {
		case '\\':
			i++
		case '.':
			end(i)
		}
	}
	end(len(property))
	return names, query
}

// parse returns the name of one part of a path.
func parse(part string) (n Name, query bool) {
	if part == "" {
		return Name{Unusual: true}, false
	}
	switch part[0] {
	case '#':
		n.Unusual = true
	case '[', '{', '!':
		query = true
	case '@':
		name, _, _ := strings.Cut(part[1:], ":")
		query = gjson.ModifierExists(name, nil)
	}
	var text strings.Builder
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '\\':
			if i++; i == len(part) {
				continue
			}
		case '*', '?', '|':
			query = true
		}
		text.WriteByte(part[i])
	}
	n.Text = text.String()
	return n, query
}

// Escape returns the property that means a top-level member, whatever characters its name has.
func Escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if strings.IndexByte(`\.*?|`, c) >= 0 || i == 0 && strings.IndexByte(`#@[{!`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Member returns a member of an object. The error is of class Invalid if it occurs twice.
func Member(object gjson.Result, name string) (v gjson.Result, err error) {
	object.ForEach(func(k, value gjson.Result) bool {
		switch {
		case k.Str != name:
		case v.Exists():
			err = Twice(name)
		default:
			v = value
		}
		return err == nil
	})
	return v, err
}

// Twice returns the error for a member that occurs twice.
func Twice(name string) error {
	return provider.NewError(provider.Invalid, "the JSON member %.64q occurs twice in one object, so it is unclear which one counts; remove one of them at the provider", name)
}

// Walk follows names from the top of a document. list is true if a name asks for the elements of a list, which only a
// query can do.
func Walk(doc gjson.Result, names []Name) (v gjson.Result, list bool, err error) {
	v = doc
	for _, n := range names {
		switch {
		case v.IsObject():
			if v, err = Member(v, n.Text); err != nil {
				return gjson.Result{}, false, err
			}
		case v.IsArray() && strings.Contains(n.Text, "#"):
			return gjson.Result{}, true, nil
		case v.IsArray():
			v = element(v, n.Text)
		default:
			return gjson.Result{}, false, nil
		}
	}
	return v, false, nil
}

func element(list gjson.Result, index string) (v gjson.Result) {
	n, err := strconv.ParseUint(index, 10, 31)
	if err != nil {
		return v
	}
	list.ForEach(func(_, value gjson.Result) bool {
		if n == 0 {
			v = value
		}
		n--
		return !v.Exists()
	})
	return v
}
