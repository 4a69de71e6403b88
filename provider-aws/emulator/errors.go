package emulator

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// An apiError is an error of the AWS API. Without a Code the answer is only the HTTP status, like that of a
// load balancer.
type apiError struct {
	Status     int
	Code       string
	Message    string
	RetryAfter time.Duration
}

func (e *apiError) Error() string { return e.Code + ": " + e.Message }

// asAPIError turns any other error into the service's internal error. It does not show the text, which can
// contain anything.
func asAPIError(err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	return &apiError{Status: http.StatusInternalServerError, Code: "InternalServiceError", Message: "An error occurred on the server side."}
}

func badRequest(code, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalidParameter(format string, args ...any) *apiError {
	return badRequest("InvalidParameterException", format, args...)
}

func invalidRequest(format string, args ...any) *apiError {
	return badRequest("InvalidRequestException", format, args...)
}

// invalidField returns the error of the service's model validation. It does not quote the values of sensitive
// fields.
func invalidField(field, constraint string) *apiError {
	return badRequest("ValidationException",
		"1 validation error detected: Value at '%s' failed to satisfy constraint: %s", field, constraint)
}

func notFound() *apiError {
	return badRequest("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
}

func noSuchValue(what, which string) *apiError {
	return badRequest("ResourceNotFoundException", "Secrets Manager can't find the specified secret value for %s: %s", what, which)
}

func markedForDeletion() *apiError {
	return invalidRequest("You can't perform this operation on the secret because it was marked for deletion.")
}

// accessDenied returns the error for a call that no policy allows. For actions without a single resource, the
// text names none.
func accessDenied(p *principal, action, resource string) *apiError {
	on := ""
	if resource != "" {
		on = " on resource: " + resource
	}
	return badRequest("AccessDeniedException",
		"User: %s is not authorized to perform: %s%s because no identity-based policy allows the %s action", p.arn, action, on, action)
}
