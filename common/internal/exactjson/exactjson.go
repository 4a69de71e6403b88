// Package exactjson refuses JSON that can be read in more than one way, or not without a change.
//
// encoding/json and gjson accept such documents, and read different values. Of two members with one name encoding/json
// reads the last, and gjson the first. Both replace bytes that are not Unicode text by U+FFFD.
package exactjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The errors of Check. They contain no value.
var (
	// ErrSyntax is for data that is not JSON.
	ErrSyntax = errors.New("it is not JSON")
	// ErrText is for JSON with bytes that are not UTF-8, or with half of a surrogate pair, such as "\ud800".
	ErrText = errors.New("it is JSON with a string that is not Unicode text")
)

// A DuplicateError is for an object with two members of one name.
type DuplicateError struct{ Name string }

// Error names the member.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("it is JSON with two members %.64q in one object; store each member once", e.Name)
}

// Check returns an error if data is not JSON with exactly one meaning: ErrSyntax, ErrText or a *DuplicateError.
func Check(data []byte) error {
	if !json.Valid(data) {
		return ErrSyntax
	}
	text := string(data)
	if !utf8.ValidString(text) || HalfSurrogate(text) {
		return ErrText
	}
	return duplicate(json.NewDecoder(strings.NewReader(text)))
}

// duplicate returns a *DuplicateError for the first name that occurs twice in one object of a valid document.
func duplicate(d *json.Decoder) error {
	d.UseNumber()
	// open has the names of each object that is being read, and nil for each list.
	var open []map[string]bool
	// name is true if the next token is the name of a member.
	name := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return ErrSyntax
		}
		switch token := token.(type) {
		case json.Delim:
			switch token {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			name = len(open) > 0 && open[len(open)-1] != nil
			continue
		case string:
			if name {
				if open[len(open)-1][token] {
					return &DuplicateError{Name: token}
				}
				open[len(open)-1][token] = true
				name = false
				continue
			}
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// HalfSurrogate reports whether a part of valid JSON has an escape for half of a surrogate pair.
func HalfSurrogate(text string) bool {
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return false
		}
		first, ok := unit(text[i:])
		if !ok {
			text = text[i+2:]
			continue
		}
		text = text[i+6:]
		if first < 0xd800 || first > 0xdfff {
			continue
		}
		second, ok := unit(text)
		if first > 0xdbff || !ok || second < 0xdc00 || second > 0xdfff {
			return true
		}
		text = text[6:]
	}
}

// unit returns the code unit of the escape at the start of a text, such as \u00e9.
func unit(text string) (uint64, bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return n, err == nil
}
