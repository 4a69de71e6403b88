package emulator

import (
	"context"
	"path"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A Fault describes how matching calls fail. The zero Fault matches every call and has no effect.
type Fault struct {
	// Call and Key select calls; empty matches all. Call is a method of the gRPC service, or one of the logins:
	// MethodToken, MethodExchange and MethodImpersonate. Key is the id of a secret, in which "*" matches any text.
	Call string
	Key  string

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

// Timing implements the constraint of fake.Faults.
func (f Fault) Timing() fake.Timing {
	return fake.Timing{Times: f.Times, Latency: f.Latency, Hang: f.Hang}
}

func matches(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return ok && err == nil
}

// suffer makes a call wait or fail as injected, and returns the fault to apply to its answer.
func (e *Emulator) suffer(ctx context.Context, method, secret string) (Fault, error) {
	f, err := e.Suffer(ctx, func(f Fault) bool {
		return (f.Call == "" || f.Call == method) && (f.Key == "" || matches(f.Key, secret))
	})
	if err == nil && f.Code != codes.OK {
		err = f.asError()
	}
	return f, err
}
