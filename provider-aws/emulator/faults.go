package emulator

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A Fault describes how matching calls fail. The zero Fault matches every call and has no effect.
type Fault struct {
	// Operation, SecretID and AccessKeyID select calls; empty matches all. SecretID is the name of a secret or
	// parameter, in which "*" matches any text. A call matches if it names such a secret or parameter, by name
	// or ARN.
	Operation   string `json:",omitempty"`
	SecretID    string `json:",omitempty"`
	AccessKeyID string `json:",omitempty"`

	// Times is the number of calls, or entries, that fail; 0 means until removed.
	Times int `json:",omitempty"`

	// Latency delays the call.
	Latency time.Duration `json:",omitempty"`

	// Hang holds the call until the fault is removed or the caller closes the connection.
	Hang bool `json:",omitempty"`

	// Code and Message make the call fail with an API error before it has any effect. Status is the HTTP
	// status; the default is 500 for internal errors of the services, otherwise 400. A Status without a Code is
	// an answer with an empty body.
	Code    string `json:",omitempty"`
	Message string `json:",omitempty"`
	Status  int    `json:",omitempty"`

	// RetryAfter is added to the error, in whole seconds.
	RetryAfter time.Duration `json:",omitempty"`

	// Entry puts Code and Message into the answer of BatchGetSecretValue for each matching secret; the other
	// secrets are not affected. GetParameters lists such a parameter as invalid, and has no place for an error.
	// Only SecretID selects here.
	Entry bool `json:",omitempty"`

	// Drop makes a batch omit each matching entry, which AWS should never do. It needs Entry.
	Drop bool `json:",omitempty"`

	// Body damages the answer after the call had its effect.
	Body BodyFault `json:",omitempty"`

	// Page ends the page of a list or batch after KeepEntries entries.
	Page        PageFault `json:",omitempty"`
	KeepEntries int       `json:",omitempty"`
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
func DecryptionFailed(secretID string) Fault {
	return Fault{
		SecretID: secretID, Code: "DecryptionFailure",
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

// An activeFault is an injected fault.
type activeFault struct {
	Fault

	id      string
	left    int // of Times
	removed chan struct{}
}

func (f *activeFault) spent() bool { return f.Times > 0 && f.left == 0 }

type faultSet struct {
	mu     sync.RWMutex
	lastID int
	active []*activeFault
}

// Inject injects a fault. If several faults match a call, the oldest applies. remove ends the fault and
// releases the calls that hang in it. It can be called several times.
func (e *Emulator) Inject(f Fault) (remove func()) {
	id := e.faults.add(f)
	return func() { e.faults.remove(id) }
}

// ClearFaults removes all faults and releases the calls that hang.
func (e *Emulator) ClearFaults() { e.faults.remove("") }

func (s *faultSet) add(f Fault) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	id = strconv.Itoa(s.lastID)
	s.active = append(s.active, &activeFault{Fault: f, id: id, left: f.Times, removed: make(chan struct{})})
	return id
}

// remove ends one fault, or all if id is empty, and reports whether there was one.
func (s *faultSet) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.active)
	s.active = slices.DeleteFunc(s.active, func(f *activeFault) bool {
		if id != "" && f.id != id {
			return false
		}
		close(f.removed)
		return true
	})
	return len(s.active) < before
}

// takeIf returns the first fault that matches and is not used up, and counts its use.
func (s *faultSet) takeIf(match func(*activeFault) bool) *activeFault {
	s.mu.RLock()
	idle := len(s.active) == 0
	s.mu.RUnlock()
	if idle {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.active {
		if f.spent() || !match(f) {
			continue
		}
		f.left--
		return f
	}
	return nil
}

// errDropped stands for an entry that a batch omits.
var errDropped = errors.New("dropped")

// entryFault returns the error that a fault sets for one entry of a batch.
func (e *Emulator) entryFault(id string) error {
	f := e.faults.takeEntry(e.nameOf(id))
	switch {
	case f == nil:
		return nil
	case f.Drop:
		return errDropped
	}
	return f.asError()
}

// takeEntry returns the fault for one entry of a batch.
func (s *faultSet) takeEntry(name string) *activeFault {
	return s.takeIf(func(f *activeFault) bool { return f.Entry && matches(f.SecretID, name) })
}

// takeCall returns the fault for a call that names some secrets.
func (s *faultSet) takeCall(operation, accessKeyID string, names func() []string) *activeFault {
	return s.takeIf(func(f *activeFault) bool {
		if f.Entry || f.Operation != "" && f.Operation != operation || f.AccessKeyID != "" && f.AccessKeyID != accessKeyID {
			return false
		}
		return f.SecretID == "" || slices.ContainsFunc(names(), func(n string) bool { return glob(f.SecretID, n) })
	})
}
