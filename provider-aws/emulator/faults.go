package emulator

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A Fault describes how matching calls fail. The zero Fault matches every call and has no effect.
type Fault struct {
	// Call and Key select calls; empty matches all. Call is an operation. Key is the name of a secret or parameter, in
	// which "*" matches any text. A call matches if it names such a secret or parameter, by name or ARN.
	Call string
	Key  string

	// Times is the number of calls, or entries, that fail; 0 means until removed.
	Times int

	// Latency delays the call.
	Latency time.Duration

	// Hang holds the call until the fault is removed or the caller closes the connection.
	Hang bool

	// Code and Message make the call fail with an API error before it has any effect. Status is the HTTP
	// status; the default is 500 for internal errors of the services, otherwise 400. A Status without a Code is
	// an answer with an empty body.
	Code    string
	Message string
	Status  int

	// RetryAfter is added to the error, in whole seconds.
	RetryAfter time.Duration

	// Entry puts Code and Message into the answer of BatchGetSecretValue for each matching secret; the other
	// secrets are not affected. GetParameters lists such a parameter as invalid, and has no place for an error.
	// Only Key selects here. For the batches of SQS, Key is a receipt, and a Status of 500 says that the caller is not at fault.
	Entry bool

	// Drop makes a batch omit each matching entry, which AWS should never do. It needs Entry.
	Drop bool

	// Body damages the answer after the call had its effect.
	Body BodyFault

	// Page ends the page of a list or batch after KeepEntries entries.
	Page        PageFault
	KeepEntries int
}

// A BodyFault is a way to damage the body of an answer.
type BodyFault string

// These are the ways to damage the body of an answer.
const (
	// BodyTruncated sends half of the body as a complete answer.
	BodyTruncated BodyFault = "truncated"
	// BodyAborted closes the connection in the middle of the body.
	BodyAborted BodyFault = "aborted"
	// BodyNone closes the connection without an answer.
	BodyNone BodyFault = "none"
)

// A PageFault is a way to damage a page.
type PageFault string

// These are the ways to damage a page.
const (
	// PageSplit moves the remaining entries to the next page.
	PageSplit PageFault = "split"
	// PageLost returns a token for a next page, which does not have the remaining entries.
	PageLost PageFault = "lost"
	// PageCut omits the remaining entries without a token.
	PageCut PageFault = "cut"
)

// Throttled returns the throttling error of Secrets Manager. It matches every call.
func Throttled() Fault {
	return Fault{Code: "ThrottlingException", Message: "Rate exceeded"}
}

// DecryptionFailed returns the error for a secret whose KMS key cannot be used.
func DecryptionFailed(key string) Fault {
	return Fault{
		Key: key, Code: "DecryptionFailure",
		Message: "Secrets Manager can't decrypt the protected secret text using the provided KMS key.",
	}
}

// internalErrors are the codes of the services' internal errors.
var internalErrors = []string{"InternalServiceError", "InternalServerError", "InternalFailure"}

// asError returns the API error that the fault describes.
func (f *Fault) asError() *apiError {
	err := &apiError{Status: f.Status, Code: f.Code, Message: f.Message, RetryAfter: f.RetryAfter}
	if err.Status == 0 {
		err.Status = http.StatusBadRequest
		if slices.Contains(internalErrors, f.Code) {
			err.Status = http.StatusInternalServerError
		}
	}
	return err
}

// Timing implements the constraint of fake.Faults.
func (f Fault) Timing() fake.Timing {
	return fake.Timing{Times: f.Times, Latency: f.Latency, Hang: f.Hang}
}

// errDropped stands for an entry that a batch omits.
var errDropped = errors.New("dropped")

// entryFault returns the error that a fault sets for one entry of a batch.
func (e *Emulator) entryFault(id string) error {
	f := e.Take(func(f Fault) bool { return f.Entry && matches(f.Key, e.nameOf(id)) })
	switch {
	case f == nil:
		return nil
	case f.Fault.Drop:
		return errDropped
	}
	return f.Fault.asError()
}

// applyFault delays a call or makes it fail as injected, and keeps the fault to apply to its answer.
func (e *Emulator) applyFault(q *request, ids []string) error {
	if err := fake.Pause(q.ctx, e.latency); err != nil {
		return err
	}
	var err error
	q.fault, err = e.Suffer(q.ctx, func(f Fault) bool {
		if f.Entry || f.Call != "" && f.Call != q.operation {
			return false
		}
		return f.Key == "" || slices.ContainsFunc(ids, func(id string) bool { return glob(f.Key, e.nameOf(id)) })
	})
	if err == nil && (q.fault.Code != "" || q.fault.Status != 0) {
		return q.fault.asError()
	}
	return err
}
