package fake

import (
	"context"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Call is one of the functions of a provider.
type Call string

// The calls, named as the metrics name them.
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

// A Record is a call that was made. It is written when the call begins, whatever becomes of it.
type Record struct {
	Call Call
	Time time.Time
	// Refs that Get and GetBatch were asked for, the secret of a write, and the credential of Renew and Cleanup.
	Refs []provider.Ref
	// Query that Find was asked for.
	Query provider.Query
	// Store is the object that Connect was called for, as namespace/name.
	Store string
}

// Calls returns the log, oldest first: all of it, or only the calls named.
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

// Count returns how many calls the log holds: all, or only of those named.
func (b *Backend) Count(only ...Call) int { return len(b.Calls(only...)) }

// Reads returns how many calls read secrets: Get, GetBatch and Find.
func (b *Backend) Reads() int { return b.Count(CallGet, CallGetBatch, CallFind) }

// ReadsOf returns how often Get and GetBatch were asked for a key.
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

// Writes returns how many calls changed something, or tried to.
func (b *Backend) Writes() int { return b.Count(CallCreate, CallUpdate, CallMark, CallDelete) }

// Connects returns how many clients were asked for.
func (b *Backend) Connects() int { return b.Count(CallConnect) }

// Closes returns how many clients were closed.
func (b *Backend) Closes() int { return b.Count(CallClose) }

// Reset empties the log, and so the counters. Secrets and faults stay.
func (b *Backend) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = nil
}

// Wait returns once the log holds n calls of those named, or with an error when ctx ends. A call
// that hangs counts.
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
