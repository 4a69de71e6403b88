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

// A Fault is what goes wrong with the calls that it matches. The zero Fault matches every call and
// does nothing to it.
type Fault struct {
	// Method and Secret select calls; empty matches all. Method is one of the gRPC service, or of
	// the logins: MethodToken, MethodExchange and MethodImpersonate. Secret is the id of a secret,
	// in which "*" stands for any text.
	Method string
	Secret string

	// Times is how many calls fail; 0 means until removed.
	Times int

	// Latency delays the call.
	Latency time.Duration

	// Hang holds the call until the fault is removed, or the caller gives up.
	Hang bool

	// Code and Message make the call fail before it does anything. Logins answer with the HTTP
	// status that belongs to Code.
	Code    codes.Code
	Message string

	// Reason and Metadata are sent along as an ErrorInfo, and RetryAfter as a RetryInfo.
	Reason     string
	Metadata   map[string]string
	RetryAfter time.Duration

	// Body damages the answer after the call was carried out.
	Body BodyFault
}

// A BodyFault is a way to damage an answer.
type BodyFault string

// The ways to damage an answer.
const (
	// BodyNoPayload leaves the value out, or, where one was sent, does as if its checksum had not been.
	BodyNoPayload BodyFault = "no-payload"
	// BodyBadChecksum changes the value, but not its checksum.
	BodyBadChecksum BodyFault = "bad-checksum"
	// BodyOtherName names another secret than the one that was asked for.
	BodyOtherName BodyFault = "other-name"
	// BodyNoExpiry leaves out of the answer of a login how long the token is good for.
	BodyNoExpiry BodyFault = "no-expiry"
	// BodyLost loses the answer: the call was carried out, and the caller hears that it was not available.
	BodyLost BodyFault = "lost"
	// BodySamePage promises the same page of a list again and again.
	BodySamePage BodyFault = "same-page"
)

// Throttled is what Secret Manager answers when calls come too fast. It matches every call.
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

// An activeFault is a fault on duty.
type activeFault struct {
	Fault

	left    int // of Times
	removed chan struct{}
}

type faultSet struct {
	mu     sync.Mutex
	active []*activeFault
}

// Inject puts a fault on duty. The oldest that matches a call wins. remove ends it and releases the
// calls that hang in it; it may be called again.
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

// take uses up one time of the first fault that is not spent and matches.
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

// suffer makes a call wait or fail as is injected for it, and returns what else is to go wrong.
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
