package fake

import (
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Call is one of the functions of a provider.
type Call = string

// The calls have the names that they have in the metrics.
const (
	CallConnect  Call = "Connect"
	CallGet      Call = "Get"
	CallGetBatch Call = "GetBatch"
	CallFind     Call = "Find"
	CallCheck    Call = "Check"
	CallClose    Call = "Close"
	CallName     Call = "Name"
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

// CallName implements the constraint of CallLog.
func (r Record) CallName() string { return r.Call }

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
