package fake

import (
	"context"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Call is one of the functions of a provider.
type Call string

// The calls have the names that they have in the metrics.
const (
	CallConnect  Call = "Connect"
	CallGet      Call = "Get"
	CallGetBatch Call = "GetBatch"
	CallFind     Call = "Find"
	CallCheck    Call = "Check"
	CallClose    Call = "Close"
	CallObserve  Call = "Observe"
	CallCreate   Call = "Create"
	CallUpdate   Call = "Update"
	CallMark     Call = "Mark"
	CallDelete   Call = "Delete"
	CallGenerate Call = "Generate"
	CallRenew    Call = "Renew"
	CallCleanup  Call = "Cleanup"
)

// A Record is a call. It is added when the call starts, whatever its result.
type Record struct {
	Call Call
	Time time.Time
	// Refs are the arguments of Get and GetBatch, the secret of a write, or the credential of Renew and Cleanup.
	Refs []provider.Ref
	// Query is the argument of Find.
	Query provider.Query
	// Store is the object of Connect, as namespace/name.
	Store string
}

// Calls returns the log, oldest first: all calls, or only those named.
func (b *Backend) Calls(only ...Call) []Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Record
	for _, r := range b.records {
		if len(only) == 0 || slices.Contains(only, r.Call) {
			out = append(out, r)
		}
	}
	return out
}

// Count returns the number of calls in the log: all, or only of those named.
func (b *Backend) Count(only ...Call) int { return len(b.Calls(only...)) }

// Reads returns the number of calls that read secrets: Get, GetBatch and Find.
func (b *Backend) Reads() int { return b.Count(CallGet, CallGetBatch, CallFind) }

// ReadsOf returns how often Get and GetBatch have read a key.
func (b *Backend) ReadsOf(key string) int {
	n := 0
	for _, r := range b.Calls(CallGet, CallGetBatch) {
		for _, ref := range r.Refs {
			if ref.Key == key {
				n++
			}
		}
	}
	return n
}

// Writes returns the number of calls that write, including failed ones.
func (b *Backend) Writes() int { return b.Count(CallCreate, CallUpdate, CallMark, CallDelete) }

// Connects returns the number of calls of Connect.
func (b *Backend) Connects() int { return b.Count(CallConnect) }

// Closes returns the number of closed clients.
func (b *Backend) Closes() int { return b.Count(CallClose) }

// Reset empties the log, and so the counters. It keeps secrets and faults.
func (b *Backend) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = nil
}

// Wait waits until the log has n calls of those named, or returns an error when ctx ends. A call that hangs counts.
func (b *Backend) Wait(ctx context.Context, n int, only ...Call) error {
	for {
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		if b.Count(only...) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (b *Backend) record(r Record) {
	r.Time = time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, r)
	close(b.changed)
	b.changed = make(chan struct{})
}
