package emulator

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A Fault describes how matching calls fail. The zero Fault matches every call and has no effect.
type Fault struct {
	// Method and Secret select calls; empty matches all. Method is one of the gRPC service, or one of the
	// logins: MethodToken, MethodExchange and MethodImpersonate. Secret is the id of a secret, in which "*"
	// matches any text.
	Method string
	Secret string

	// Times is the number of calls that fail; 0 means until removed.
	Times int

	// Latency delays the call.
	Latency time.Duration

	// Hang holds the call until the fault is removed or the caller closes the connection.
	Hang bool

	// Code and Message make the call fail before it has any effect. Logins return the HTTP status for Code.
	Code    codes.Code
	Message string

	// Reason and Metadata are added to the error as an ErrorInfo, and RetryAfter as a RetryInfo.
	Reason     string
	Metadata   map[string]string
	RetryAfter time.Duration

	// Body damages the answer after the call had its effect.
	Body BodyFault
}

// A BodyFault is a way to damage an answer.
type BodyFault string

// These are the ways to damage an answer.
const (
	// BodyNoPayload omits the value in the answer. For a write it makes the emulator ignore the checksum.
	BodyNoPayload BodyFault = "no-payload"
	// BodyBadChecksum changes the value, but not its checksum.
	BodyBadChecksum BodyFault = "bad-checksum"
	// BodyOtherName names another secret than the requested one.
	BodyOtherName BodyFault = "other-name"
	// BodyNoExpiry omits the validity of the token in the answer to a login.
	BodyNoExpiry BodyFault = "no-expiry"
	// BodyLost discards the answer: the call has had its effect, but the caller gets Unavailable.
	BodyLost BodyFault = "lost"
	// BodySamePage returns the token of the same page again and again.
	BodySamePage BodyFault = "same-page"
)

// Throttled returns the throttling error of Secret Manager. It matches every call.
func Throttled() Fault {
	return Fault{Code: codes.ResourceExhausted, Message: "Quota exceeded for quota metric", Reason: "RATE_LIMIT_EXCEEDED"}
}

func (f *Fault) asError() error {
	s := status.New(f.Code, f.Message)
	var details []protoadapt.MessageV1
	if f.Reason != "" {
		details = append(details, &errdetails.ErrorInfo{Reason: f.Reason, Domain: "googleapis.com", Metadata: f.Metadata})
	}
	if f.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.RetryAfter)})
	}
	if with, err := s.WithDetails(details...); err == nil {
		s = with
	}
	return s.Err()
}

// An activeFault is an injected fault.
type activeFault struct {
	Fault

	left    int // of Times
	removed chan struct{}
}

type faultSet struct {
	mu     sync.Mutex
	active []*activeFault
}

// Inject injects a fault. If several faults match a call, the oldest applies. remove ends the fault and
// releases the calls that hang in it. It can be called several times.
func (e *Emulator) Inject(f Fault) (remove func()) {
	a := &activeFault{Fault: f, left: f.Times, removed: make(chan struct{})}
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	e.faults.active = append(e.faults.active, a)
	return sync.OnceFunc(func() {
		e.faults.mu.Lock()
		defer e.faults.mu.Unlock()
		e.faults.active = slices.DeleteFunc(e.faults.active, func(o *activeFault) bool { return o == a })
		close(a.removed)
	})
}

// take returns the first fault that matches and is not used up, and counts its use.
func (s *faultSet) take(method, secret string) *activeFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.active {
		if f.Times > 0 && f.left == 0 || f.Method != "" && f.Method != method || f.Secret != "" && !matches(f.Secret, secret) {
			continue
		}
		f.left--
		return f
	}
	return nil
}

func matches(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return ok && err == nil
}

// suffer makes a call wait or fail as injected, and returns the fault to apply to its answer.
func (e *Emulator) suffer(ctx context.Context, method, secret string) (Fault, error) {
	if err := pause(ctx, e.latency); err != nil {
		return Fault{}, err
	}
	f := e.faults.take(method, secret)
	if f == nil {
		return Fault{}, nil
	}
	if err := pause(ctx, f.Latency); err != nil {
		return Fault{}, err
	}
	if f.Hang {
		select {
		case <-ctx.Done():
			return Fault{}, ctx.Err()
		case <-f.removed:
		}
	}
	if f.Code != codes.OK {
		return Fault{}, f.asError()
	}
	return f.Fault, nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
