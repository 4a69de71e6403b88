package pushsecret

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// RemoveDelay is the time until something is removed that a spec no longer names. Objects of one commit, which may use it, are compared
// before that.
const RemoveDelay = 10 * time.Second

// sourceRetry is how long an object waits whose sources cannot be pushed. A change of a source ends the wait.
const sourceRetry = 2 * time.Minute

// storeID identifies a store in the status.
type storeID struct{ apiVersion, kind, name string }

func idOf(s v1alpha1.PushStoreStatus) storeID { return storeID{s.APIVersion, s.Kind, s.Name} }

func byID(a, b v1alpha1.PushStoreStatus) int { return byStore(idOf(a), idOf(b)) }

func byStore(a, b storeID) int {
	return cmp.Or(cmp.Compare(a.apiVersion, b.apiVersion), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// storeState is the state of the pushes of one object to one store.
type storeState struct {
	// at is where the store keeps its secrets, as its client has told this process; zero if it has not. It is set by move.
	at location
	// since is when this process first had a task at the store; zero if it had none.
	since time.Time
	// asked is true if the store must be compared although it is in sync, for an event or for the removal by another object.
	asked bool
	// attempts are those of pushes. The Metadata of an attempt is the version of what is pushed.
	attempts kit.Attempts
	// again is when a postponed removal is decided again.
	again time.Time
	// broken is true if only a user can fix the cause of the last failure. failing is true if the last push was a removal and has
	// failed, or if the store refuses the removal.
	broken, failing bool
	// next is the time of the next comparison; zero if none is planned yet.
	next time.Time
	// good is when the store was last in sync, or compared by a dry run.
	good time.Time
	// compared is the last dry run that compared all values.
	compared kit.Attempt
}

// schedule is the input for the times of a reconcile.
type schedule struct {
	now time.Time
	// interval is the time between two comparisons; 0 for none.
	interval time.Duration
	windows  windows.Windows
	// random returns numbers in [0, 1) for jitter.
	random func() float64
}

// due reports whether the store must be compared now, and otherwise how long to wait; 0 for never. hold is how long the sync windows
// hold back a comparison that is due. planned is the time in the status of a store that was in sync, and removes that of its next
// removal; zero for none.
func (s *storeState) due(a kit.Attempt, inSync bool, planned *metav1.Time, removes time.Time, sch schedule) (due bool, wait time.Duration, hold windows.Hold) {
	if wait, _ := s.attempts.Begin(a); wait > 0 {
		return false, wait, hold
	}
	if !inSync || s.asked {
		return true, 0, hold
	}
	if s.again.After(removes) && !removes.IsZero() {
		removes = s.again
	}
	if wait = removes.Sub(sch.now); wait <= 0 && !removes.IsZero() {
		return true, 0, hold
	}
	wait = max(wait, 0)
	if sch.interval == 0 {
		return false, wait, hold
	}
	if planned == nil {
		planned = &metav1.Time{}
	}
	s.next = policy.Planned(s.next, planned.Time, sch.now, sch.now, sch.interval, sch.random())
	if until := s.next.Sub(sch.now); until > 0 {
		return false, earlier(wait, until), hold
	}
	if hold = sch.windows.Hold(sch.now, sch.random()); hold.Holds() {
		return false, earlier(wait, hold.Wait(sch.now)), hold
	}
	return true, 0, hold
}

// earlier returns the shorter of two waits; 0 stands for no wait that ends.
func earlier(a, b time.Duration) time.Duration {
	if a > 0 && (b == 0 || a < b) {
		return a
	}
	return b
}

// take plans the next attempt after a push has ended.
func (s *storeState) take(res *result, sch schedule) {
	if res.refused != nil {
		s.attempts.Fail(sourceRetry)
		return
	}
	if s.again = (time.Time{}); res.again > 0 {
		s.again = sch.now.Add(res.again)
	}
	s.broken = res.err != nil && provider.ClassOf(res.err) == provider.Invalid
	s.failing = res.err != nil && res.Request == removal
	if res.err != nil {
		s.attempts.Fail(res.retryAfter)
		return
	}
	s.attempts.Succeed()
	s.next, s.good = time.Time{}, res.started
	if res.difference != nil {
		s.compared = res.Attempt
	}
	if sch.interval > 0 {
		s.next = res.started.Add(policy.Jitter(sch.interval, sch.random()))
	}
}

// progress is the state of the stores of one object. It is safe for concurrent use. The zero value is ready to use.
type progress struct {
	mu sync.Mutex
	// Bound: one per store in the spec or status of the object.
	states map[storeID]*storeState
	// onMove is called when it has become known or unknown where a store keeps its secrets. It may be nil.
	onMove func()
}

// with calls use with the state of a store, under the lock.
func (p *progress) with(id storeID, use func(*storeState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[id]
	if s == nil {
		s = &storeState{}
		if p.states == nil {
			p.states = map[storeID]*storeState{}
		}
		p.states[id] = s
	}
	use(s)
}

// retain removes the states of stores that are not named.
func (p *progress) retain(named []storeID) {
	p.mu.Lock()
	before := len(p.states)
	maps.DeleteFunc(p.states, func(id storeID, _ *storeState) bool { return !slices.Contains(named, id) })
	dropped := len(p.states) < before
	p.mu.Unlock()
	if dropped && p.onMove != nil {
		p.onMove()
	}
}

// move changes where a store keeps its secrets, and returns that.
func (p *progress) move(id storeID, to func(was location) location) (at location) {
	changed := false
	p.with(id, func(s *storeState) {
		at = to(s.at)
		changed = !at.equal(s.at)
		s.at = at
	})
	if changed && p.onMove != nil {
		p.onMove()
	}
	return at
}

// noWait ends the back-off of all stores.
func (p *progress) noWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.states {
		s.attempts.Free()
	}
}

// location returns where a store keeps its secrets; false if its client has not told this process.
func (p *progress) location(id storeID) (at location, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.states[id]; s != nil {
		at = s.at
	}
	return at, at.place != ""
}

// good returns when a store was last in sync, by its status or by this process.
func (p *progress) good(of v1alpha1.PushStoreStatus) (at time.Time) {
	p.with(idOf(of), func(s *storeState) { at = s.good })
	if t := of.RefreshTime; t != nil && t.After(at) {
		return t.Time // A former process wrote it.
	}
	return at
}
