package property

import (
	"slices"

	"github.com/tidwall/gjson"
)

// few is the number of names that a level compares one by one.
const few = 16

// A level is an object or list around the current place.
type level struct {
	object bool
	names  []string
	// more holds all names if they are many.
	more map[string]bool
}

// Unique returns an error of class Invalid if an object anywhere in a valid JSON document has a member twice. It takes
// one pass, whatever the nesting.
func Unique(doc []byte) error {
	levels, depth := []level{{}}, 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '{', '[':
			if depth++; depth == len(levels) {
				levels = append(levels, level{})
			}
			l := &levels[depth]
			l.object, l.names, l.more = doc[i] == '{', l.names[:0], nil
		case '}', ']':
			depth--
		case '"':
			end := endOfString(doc, i)
			if levels[depth].object && followedByColon(doc, end) {
				if name := gjson.ParseBytes(doc[i:end]).Str; !levels[depth].add(name) {
					return Twice(name)
				}
			}
			i = end - 1
		}
	}
	return nil
}

// add adds the name of a member, and reports whether it is new.
func (l *level) add(name string) bool {
	if l.more == nil && len(l.names) == few {
		l.more = map[string]bool{}
		for _, n := range l.names {
			l.more[n] = true
		}
	}
	if l.more != nil {
		if l.more[name] {
			return false
		}
		l.more[name] = true
		return true
	}
	if slices.Contains(l.names, name) {
		return false
	}
	l.names = append(l.names, name)
	return true
}

// endOfString returns the index after the string that starts at i.
func endOfString(doc []byte, i int) int {
	for i++; doc[i] != '"'; i++ {
		if doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func followedByColon(doc []byte, i int) bool {
	for ; i < len(doc); i++ {
		switch doc[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return doc[i] == ':'
		}
	}
	return false
}
