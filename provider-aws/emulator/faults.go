package emulator

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A Fault is what goes wrong with the calls that it matches. The zero Fault
// matches every call and does nothing to it.
type Fault struct {
	// Operation, SecretID and AccessKeyID select calls; empty matches all.
	// SecretID is the name of a secret or parameter, in which "*" stands for
	// any text; a call matches if it names such a one, by name or ARN.
	Operation   string `json:",omitempty"`
	SecretID    string `json:",omitempty"`
	AccessKeyID string `json:",omitempty"`

	// Times is how many calls, or entries, fail; 0 means until removed.
	Times int `json:",omitempty"`

	// Latency delays the call.
	Latency time.Duration `json:",omitempty"`

	// Hang holds the call until the fault is removed, or the caller gives up.
	Hang bool `json:",omitempty"`

	// Code and Message make the call fail with an API error before it does
	// anything. Status is its HTTP status; the default is 500 for internal
	// errors of the services, else 400. With a Status and no Code the answer is
	// that status with an empty body.
	Code    string `json:",omitempty"`
	Message string `json:",omitempty"`
	Status  int    `json:",omitempty"`

	// RetryAfter is sent along with the error, in whole seconds.
	RetryAfter time.Duration `json:",omitempty"`

	// Entry has BatchGetSecretValue answer, with Code and Message in the
	// place of each matching secret; the other secrets are not affected.
	// GetParameters lists such a parameter as invalid, and has no place for
	// more. Only SecretID selects here.
	Entry bool `json:",omitempty"`

	// Drop has a batch leave each matching entry out, which AWS never should.
	// It needs Entry.
	Drop bool `json:",omitempty"`

	// Body damages the answer after the call was carried out.
	Body BodyFault `json:",omitempty"`

	// Page ends the page of a list or batch after KeepEntries entries.
	Page        PageFault `json:",omitempty"`
	KeepEntries int       `json:",omitempty"`
}

// A BodyFault is a way to damage an answer.
type BodyFault string

// The ways to damage an answer.
const (
	// BodyTruncated sends half of the body as if it were all.
	BodyTruncated BodyFault = "truncated"
	// BodyAborted breaks the connection in the middle of the body.
	BodyAborted BodyFault = "aborted"
	// BodyNone breaks the connection instead of an answer.
	BodyNone BodyFault = "none"
)

// A PageFault is a way to damage a page.
type PageFault string

// The ways to damage a page.
const (
	// PageSplit leaves the remaining entries to the next page.
	PageSplit PageFault = "split"
	// PageLost promises a next page that does not have the remaining entries.
	PageLost PageFault = "lost"
	// PageCut leaves the remaining entries out and promises nothing.
	PageCut PageFault = "cut"
)

// Throttled is the error that Secrets Manager answers with when calls come
// too fast. It matches every call.
func Throttled() Fault {
	return Fault{Code: "ThrottlingException", Message: "Rate exceeded"}
}

// DecryptionFailed is the error of a secret whose KMS key cannot be used.
func DecryptionFailed(secretID string) Fault {
	return Fault{
		SecretID: secretID, Code: "DecryptionFailure",
		Message: "Secrets Manager can't decrypt the protected secret text using the provided KMS key.",
	}
}

// internalErrors are the codes of the services' own failures.
var internalErrors = []string{"InternalServiceError", "InternalServerError", "InternalFailure"}

// asError is the API error that the fault describes.
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

// An activeFault is a fault on duty.
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

// Inject puts a fault on duty. The oldest that matches a call wins. remove
// ends it and releases the calls that hang in it; it may be called again.
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

// remove ends one fault, or all without an id, and tells whether there was one.
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

// takeIf uses up one time of the first fault that is not spent and matches.
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

// errDropped stands for an entry that a batch leaves out.
var errDropped = errors.New("dropped")

// entryFault is what a fault says of one entry of a batch.
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
