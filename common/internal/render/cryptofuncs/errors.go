package cryptofuncs

import "fmt"

// An Error says what is wrong with an argument of a function and what to do about it. No part of an
// argument is ever in its text, nor the text of a library's error, which may hold one. So it may be
// shown in a condition, an event and a log.
type Error struct{ message string }

// Error returns the message.
func (e *Error) Error() string { return e.message }

// Safe returns the message, too. Having this method is the promise that it holds no value.
func (e *Error) Safe() string { return e.message }

// newError returns an Error with a formatted message. The arguments may be numbers, or words that
// are written in this package; never a part of what a function was given.
func newError(format string, args ...any) error {
	return &Error{message: fmt.Sprintf(format, args...)}
}
