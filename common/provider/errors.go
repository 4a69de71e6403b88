package provider

import (
	"context"
	stderrors "errors"
	"net"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Class says what an error means for the objects that need the read. The messages of conditions start with it.
type Class string

const (
	// NotFound means that the provider definitely says that the secret, version or property does not exist. Only this
	// class can cause the removal of a key or a Secret.
	NotFound Class = "NotFound"
	// Denied means that the login failed, or that the identity does not have the permission.
	Denied Class = "Denied"
	// Throttled means that the provider asks to retry later.
	Throttled Class = "Throttled"
	// Unavailable means that there was no answer, or none that can be relied on. Every unknown error has this class.
	Unavailable Class = "Unavailable"
	// Invalid means that the user must change the spec or the remote value.
	Invalid Class = "Invalid"
	// Template means that a template fails, or that its output is not valid.
	Template Class = "Template"
	// Conflict means that another writer has changed the remote secret in the meantime.
	Conflict Class = "Conflict"
)

// An Error is an error with a class. Its message is shown to users, so it must not contain a secret value or a
// credential.
type Error struct {
	Class   Class
	Message string
	// RetryAfter is the time to wait that a Throttled provider asks for; zero if it does not. A value above
	// MaxRetryAfter counts as MaxRetryAfter.
	RetryAfter time.Duration
}

// Error returns the message, without the class.
func (e *Error) Error() string { return e.Message }

// Warnings are returned by Check for a store that works, but needs the user's attention. They become events. Like the
// message of an Error they must not contain a value or a credential.
type Warnings []string

// Error implements error.
func (w Warnings) Error() string { return strings.Join(w, "; ") }

// NewError returns an Error with a formatted message.
func NewError(c Class, format string, args ...any) *Error {
	return &Error{Class: c, Message: errors.Errorf(format, args...).Error()}
}

// Field adds the field of the spec to an error of Credentials. Errors of Credentials cannot know the field and start
// with the word auth; Field replaces that by field. It does not show the text of an error of another type.
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

// ClassOf returns the class of the first Error in err's chain, or Unavailable without one. Of joined errors, NotFound
// counts only if all of them are NotFound.
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

// IsNotFound reports whether err is a provider's definite "does not exist".
func IsNotFound(err error) bool { return err != nil && ClassOf(err) == NotFound }

// RetryAfter returns the time to wait that a Throttled provider asks for, at most MaxRetryAfter; zero if it does not.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) && e != nil {
		return max(0, min(e.RetryAfter, MaxRetryAfter))
	}
	return 0
}

// Safe returns an Error whose message can be shown to users. It returns an Error unchanged. It replaces the text of
// any other error by the kind of failure, because SDKs put requests and answers into their errors.
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
		var lacks unsupportedError
		_ = errors.As(err, &lacks) // Another text is not known to be safe.
		return NewError(Invalid, "%s", lacks.Error())
	case errors.As(err, &dns):
		return NewError(Unavailable, "cannot resolve the provider's address %q", dns.Name)
	case errors.As(err, &op):
		return NewError(Unavailable, "cannot reach the provider: %s %s failed", op.Op, op.Net)
	}
	return NewError(Unavailable, "the provider's response could not be used (%T)", err)
}
