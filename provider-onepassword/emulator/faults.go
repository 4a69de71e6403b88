package emulator

import (
	"net/http"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A Fault describes how matching calls fail. The zero Fault matches every call and has no effect.
type Fault struct {
	// Call and Key select calls; empty matches all. Call is the name of a call, such as GetItem. Key is the title of an item.
	Call string
	Key  string

	// Times is the number of calls that fail; 0 means until removed.
	Times int

	// Latency delays the call.
	Latency time.Duration

	// Hang holds the call until the fault is removed or the caller closes the connection.
	Hang bool

	// Status makes the call fail before it has any effect.
	Status int

	// Empty answers with an empty object, after the call had its effect.
	Empty bool
	// Body is the body of the answer instead of the own one, after the call had its effect.
	Body []byte
}

// Throttled returns the fault of too many calls. It matches every call.
func Throttled() Fault { return Fault{Status: http.StatusTooManyRequests} }

// Timing implements the constraint of fake.Faults.
func (f Fault) Timing() fake.Timing {
	return fake.Timing{Times: f.Times, Latency: f.Latency, Hang: f.Hang}
}
