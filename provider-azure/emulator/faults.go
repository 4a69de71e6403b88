package emulator

import (
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A Fault describes how matching calls fail. The zero Fault matches every call and has no effect.
type Fault struct {
	// Call and Key select calls; empty matches all. Key is the name of a secret, in which "*" matches any text.
	Call string
	Key  string

	// Times is the number of calls that fail; 0 means until removed.
	Times int

	// Latency delays the call.
	Latency time.Duration

	// Hang holds the call until the fault is removed or the caller closes the connection.
	Hang bool

	// Status makes the call fail with this HTTP status, before it has any effect. Code and Inner are the code of the error and
	// that of its cause, and Message its text.
	Status               int
	Code, Inner, Message string
	// RetryAfter is the header Retry-After, in whole seconds; 0 omits it.
	RetryAfter time.Duration

	// Body damages the answer after the call had its effect.
	Body BodyFault
}

// A BodyFault is a way to damage an answer.
type BodyFault string

// These are the ways to damage an answer.
const (
	// BodyNoValue omits the value of a secret, or the entries of a list.
	BodyNoValue BodyFault = "no-value"
	// BodyOtherName names another secret than the requested one.
	BodyOtherName BodyFault = "other-name"
	// BodyNoVersion names no version of a secret.
	BodyNoVersion BodyFault = "no-version"
	// BodySamePage links each page of a list to itself.
	BodySamePage BodyFault = "same-page"
	// BodyOtherHost links the next page of a list to another host.
	BodyOtherHost BodyFault = "other-host"
	// BodyHuge makes a value larger than any that Key Vault has.
	BodyHuge BodyFault = "huge"
	// BodyLost discards the answer, and closes the connection.
	BodyLost BodyFault = "lost"
)

// Throttled returns the throttling error of Key Vault. It matches every call.
func Throttled(after time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, Code: "Throttled", Message: "Request was not processed because too many requests were received.", RetryAfter: after}
}

// Timing implements the constraint of fake.Faults.
func (f Fault) Timing() fake.Timing {
	return fake.Timing{Times: f.Times, Latency: f.Latency, Hang: f.Hang}
}

func (f Fault) matches(call, key string) bool {
	ok, err := path.Match(f.Key, key)
	return (f.Call == "" || f.Call == call) && (f.Key == "" || ok && err == nil)
}

// A failure is an answer of Key Vault without a result.
type failure struct {
	status               int
	code, inner, message string
	retryAfter           time.Duration
}

func (f *failure) write(w http.ResponseWriter) {
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.retryAfter/time.Second)))
	}
	e := map[string]any{"code": f.code, "message": f.message}
	if f.inner != "" {
		e["innererror"] = map[string]any{"code": f.inner}
	}
	respond(w, f.status, map[string]any{"error": e})
}

func notFound(name string) *failure {
	return &failure{status: http.StatusNotFound, code: "SecretNotFound", message: "A secret with (name/id) " + name + " was not found in this key vault."}
}

func badParameter(text string) *failure {
	return &failure{status: http.StatusBadRequest, code: "BadParameter", message: text}
}
