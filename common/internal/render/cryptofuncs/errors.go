package cryptofuncs

import (
	"fmt"

	"github.com/direct-secrets/direct-secrets/common/internal/fips"
)

// An Error describes what is wrong with an argument of a function and how to fix it. Its text never contains a part
// of an argument, or the text of a library's error, which might contain one. So it can be shown in conditions, events
// and logs.
type Error struct{ message string }

// Error returns the message.
func (e *Error) Error() string { return e.message }

// Safe returns the message, too. This method promises that it contains no value.
func (e *Error) Safe() string { return e.message }

// newError returns an Error with a formatted message. The arguments are numbers, or words from this package; never a
// part of a function's argument.
func newError(format string, args ...any) error {
	return &Error{message: fmt.Sprintf(format, args...)}
}

// orRefusal returns otherwise, or that Go refuses the call in FIPS 140-3 mode if that is the error of the library.
func orRefusal(err, otherwise error) error {
	if fips.Refused(err) {
		return newError(fips.Refusal)
	}
	return otherwise
}
