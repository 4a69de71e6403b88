package emulator

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxCallLog is the minimum number of calls that the log keeps. The oldest are removed first. The counts have
// no limit.
const maxCallLog = 10000

// A Call is one request to the AWS API. It contains no value.
type Call struct {
	Time        time.Time
	Service     string // secretsmanager, ssm, ecr, ecr-public or sts
	Operation   string
	SecretIDs   []string `json:",omitempty"` // as named in the request
	AccessKeyID string   `json:",omitempty"`
}

type callLog struct {
	mu      sync.Mutex
	counts  map[string]int
	entries []Call
	waiting []chan struct{}
}

func (l *callLog) add(c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[c.Operation]++
	if len(l.entries) >= 2*maxCallLog {
		l.entries = append(l.entries[:0], l.entries[len(l.entries)-maxCallLog:]...)
	}
	l.entries = append(l.entries, c)
	for _, w := range l.waiting {
		close(w)
	}
	l.waiting = nil
}

// Calls returns how many times an operation was called, including calls that failed. The empty operation counts
// all calls.
func (e *Emulator) Calls(operation string) int {
	n, _ := e.calls.count(operation, false)
	return n
}

// count returns the number of calls and, if wait is set, a channel that closes at the next call.
func (l *callLog) count(operation string, wait bool) (n int, next <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if operation == "" {
		for _, c := range l.counts {
			n += c
		}
	} else {
		n = l.counts[operation]
	}
	if wait {
		w := make(chan struct{})
		l.waiting = append(l.waiting, w)
		next = w
	}
	return n, next
}

// WaitForCalls waits until an operation was called n times in all, or returns the error of ctx.
func (e *Emulator) WaitForCalls(ctx context.Context, operation string, n int) error {
	for {
		got, next := e.calls.count(operation, true)
		if got >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
}

// CallCounts returns the counts of all operations.
func (e *Emulator) CallCounts() map[string]int {
	e.calls.mu.Lock()
	defer e.calls.mu.Unlock()
	return maps.Clone(e.calls.counts)
}

// CallLog returns the latest calls, oldest first.
func (e *Emulator) CallLog() []Call {
	e.calls.mu.Lock()
	defer e.calls.mu.Unlock()
	return slices.Clone(e.calls.entries)
}

// Reset clears the calls and the recorded sessions. Secrets, roles, credentials and faults stay, and the
// credentials of sessions remain valid.
func (e *Emulator) Reset() {
	e.calls.mu.Lock()
	e.calls.counts, e.calls.entries = nil, nil
	e.calls.mu.Unlock()

	e.identities.mu.Lock()
	e.identities.sessions = nil
	e.identities.mu.Unlock()
}
