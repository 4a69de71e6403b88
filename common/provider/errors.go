package provider

import (
	"context"
	stderrors "errors"
	"net"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Class says what an error means for the objects that depend on a read. Conditions begin with it.
type Class string

const (
	// NotFound means that the provider says definitely that the secret, version or property does not exist.
	// Only this class may ever remove a key or a Secret.
	NotFound Class = "NotFound"
	// Denied means that the identity may not do this, or the login failed.
	Denied Class = "Denied"
	// Throttled means that the provider asks to come back later.
	Throttled Class = "Throttled"
	// Unavailable means that there was no answer, or one that proves nothing. Every unknown error is of this class.
	Unavailable Class = "Unavailable"
	// Invalid means that a person must change the spec or the remote value.
	Invalid Class = "Invalid"
	// Template means that a template fails, or that what it yields is unfit.
	Template Class = "Template"
	// Conflict means that somebody else changed the remote secret meanwhile.
	Conflict Class = "Conflict"
)

// An Error is an error with a class. Its message is shown to users, so it must hold no value of
// any secret and no credential.
type Error struct {
	Class   Class
	Message string
	// RetryAfter is how long a Throttled provider asks to wait; zero if it does not say. More than MaxRetryAfter
	// counts as that.
	RetryAfter time.Duration
}

// Error returns the message; the class is not part of it.
func (e *Error) Error() string { return e.Message }

// Warnings are what Check returns of a store that works, but that a person should look at nonetheless:
// they become events. Like the message of an Error they hold no value and no credential.
type Warnings []string

// Error implements error.
func (w Warnings) Error() string { return strings.Join(w, "; ") }

// NewError returns an Error with a formatted message.
func NewError(c Class, format string, args ...any) *Error {
	return &Error{Class: c, Message: errors.Errorf(format, args...).Error()}
}

// Field says in which field of the spec an error of Credentials has its cause. The name of the field
// takes the place of the word auth, with which those begin that cannot know it. The text of an error
// that is none of this package is withheld.
func Field(field string, err error) error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e) || e == nil:
		return NewError(Unavailable, "%s: cannot be read", field)
	}
	return &Error{Class: e.Class, RetryAfter: e.RetryAfter, Message: field + ": " + strings.TrimPrefix(e.Message, "auth: ")}
}

// ClassOf returns the class of err: that of the first Error in its chain, else Unavailable. Of
// several errors that were joined, NotFound is the weakest: it counts only if it is all there is.
func ClassOf(err error) Class {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) && len(joined.Unwrap()) > 0 {
		class := NotFound
		for _, e := range joined.Unwrap() {
			if c := ClassOf(e); c != NotFound {
				class = c
			}
		}
		return class
	}
	var e *Error
	switch {
	case errors.As(err, &e) && e != nil && e.Class != "":
		return e.Class
	case errors.Is(err, stderrors.ErrUnsupported):
		return Invalid
	}
	return Unavailable
}

// IsNotFound reports whether err is the provider's definite "does not exist".
func IsNotFound(err error) bool { return err != nil && ClassOf(err) == NotFound }

// RetryAfter returns how long a Throttled provider asks to wait, at most MaxRetryAfter; zero if it does not say.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) && e != nil {
		return max(0, min(e.RetryAfter, MaxRetryAfter))
	}
	return 0
}

// Safe returns an Error whose message may be shown. An Error is returned as it is. Of any other
// error the text is withheld, because SDKs put requests and answers into theirs; what remains is
// the kind of failure.
func Safe(err error) *Error {
	var e *Error
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e != nil && e.Class == ClassOf(err):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return NewError(Unavailable, "the provider did not answer in time")
	case errors.Is(err, context.Canceled):
		return NewError(Unavailable, "the call was cancelled")
	case errors.Is(err, stderrors.ErrUnsupported):
		return NewError(Invalid, "not implemented: this store cannot do that")
	case errors.As(err, &dns):
		return NewError(Unavailable, "cannot resolve the provider's address %q", dns.Name)
	case errors.As(err, &op):
		return NewError(Unavailable, "cannot reach the provider: %s %s failed", op.Op, op.Net)
	}
	return NewError(Unavailable, "the provider's answer could not be used (%T)", err)
}
