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
	if !utf8.ValidString(text) || halfSurrogate(text) {
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

// halfSurrogate reports whether valid JSON has an escape for half of a surrogate pair.
func halfSurrogate(text string) bool {
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			return false
		}
		text = text[i+1:]
		if text[0] != 'u' {
			text = text[1:]
			continue
		}
		first := unit(text[1:5])
		text = text[5:]
		switch {
		case first < 0xd800 || first > 0xdfff:
			continue
		case first > 0xdbff || !strings.HasPrefix(text, `\u`):
			return true
		}
		if second := unit(text[2:6]); second < 0xdc00 || second > 0xdfff {
			return true
		}
		text = text[6:]
	}
}

// unit returns the code unit of four hexadecimal digits.
func unit(digits string) uint64 {
	n, _ := strconv.ParseUint(digits, 16, 16) // The document is valid.
	return n
}
