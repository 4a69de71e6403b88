package emulator

import "time"

// A Call is one request. It contains no value.
type Call struct {
	Time   time.Time
	Method string // the method of the gRPC service, or one of the logins
	Name   string // the resource that the request names
	Caller string // the email or subject, if it is known
}

// CallName returns the method.
func (c Call) CallName() string { return c.Method }
