package fake

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// maxLog is the minimum number of calls that a log keeps. The oldest are removed first. The counts have no limit.
const maxLog = 10000

// A CallLog has the calls that a service has received, including those that failed. It is safe for concurrent use. The
// zero CallLog is empty. A service embeds it.
type CallLog[C interface{ CallName() string }] struct {
	mu      sync.Mutex
	counts  map[string]int
	entries []C
	changed chan struct{} // It is closed when a call is added. It is nil if nothing waits for it.
}

// Record adds a call when it starts, whatever its result.
func (l *CallLog[C]) Record(c C) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[c.CallName()]++
	if len(l.entries) >= 2*maxLog {
		l.entries = append(l.entries[:0], l.entries[len(l.entries)-maxLog:]...)
	}
	l.entries = append(l.entries, c)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Calls returns the latest calls, oldest first: all calls, or only those named.
func (l *CallLog[C]) Calls(only ...string) []C {
	l.mu.Lock()
	defer l.mu.Unlock()
	var calls []C
	for _, c := range l.entries {
		if len(only) == 0 || slices.Contains(only, c.CallName()) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Count returns the number of all calls, or only of those named.
func (l *CallLog[C]) Count(only ...string) int {
	n, _ := l.count(false, only)
	return n
}

// count returns the number of calls and, if wait is set, a channel that is closed at the next call.
func (l *CallLog[C]) count(wait bool, only []string) (n int, next <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, c := range l.counts {
		if len(only) == 0 || slices.Contains(only, name) {
			n += c
		}
	}
	if wait && l.changed == nil {
		l.changed = make(chan struct{})
	}
	return n, l.changed
}

// Counts returns the number of calls by name.
func (l *CallLog[C]) Counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// Wait waits until there have been n calls of those named, or returns an error when ctx ends. A call that hangs counts.
func (l *CallLog[C]) Wait(ctx context.Context, n int, only ...string) error {
	for {
		got, next := l.count(true, only)
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

// Reset empties the log and the counts.
func (l *CallLog[C]) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts, l.entries = nil, nil
}
