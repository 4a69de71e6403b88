package pushsecret

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The wait after a failure doubles from the first to the last.
const firstBackoff, lastBackoff = time.Second, 2 * time.Minute

// storeID names a store in the status.
type storeID struct{ apiVersion, kind, name string }

func idOf(s v1alpha1.PushStoreStatus) storeID { return storeID{s.APIVersion, s.Kind, s.Name} }

func byID(a, b v1alpha1.PushStoreStatus) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// attempt is what a push rests on: a failure is no reason to wait once any of it has changed.
type attempt struct {
	generation      int64
	request, source string
}

// storeState is what is remembered of the pushes of one object to one store.
type storeState struct {
	running bool
	// result is what came of the last push, until a pass has looked at it.
	result *result
	// names are the places to which the last push went.
	names []remoteName
	// left are the places that others have left to the object.
	left []remoteName
	// cancel ends what is running.
	cancel func()
	// attempt is what was tried last.
	attempt attempt
	// broken is true if the last failure was one that only a person can mend.
	broken bool
	// failures in a row, and no try before until.
	failures int
	until    time.Time
	// next is when the store is compared again; zero if that is not planned yet.
	next time.Time
	// good is when the store was in step last.
	good time.Time
}

// schedule is what the times of a pass are computed from.
type schedule struct {
	now time.Time
	// interval between two comparisons; 0 for none.
	interval time.Duration
	// random returns numbers in [0, 1) for jitter.
	random func() float64
}

// begin reports whether an attempt can be made now, or how long it is held back: 0 until what is running has ended.
func (s *storeState) begin(a attempt, now time.Time) (free bool, wait time.Duration) {
	if a != s.attempt {
		s.attempt, s.failures, s.until = a, 0, time.Time{}
	}
	if s.running {
		return false, 0
	}
	wait = s.until.Sub(now)
	return wait <= 0, max(0, wait)
}

// due reports whether the store is to be compared now, or else in how long; 0 for never. planned is when, by what the
// status says of a store that was in step.
func (s *storeState) due(a attempt, inStep bool, planned *metav1.Time, sch schedule) (bool, time.Duration) {
	if free, wait := s.begin(a, sch.now); !free {
		return false, wait
	}
	if !inStep || sch.interval == 0 {
		return !inStep, 0
	}
	if planned == nil {
		planned = &metav1.Time{}
	}
	s.next = policy.Planned(s.next, planned.Time, sch.now, sch.now, sch.interval, sch.random())
	wait := s.next.Sub(sch.now)
	return wait <= 0, max(0, wait)
}

// take returns what came of a push that has ended, and plans what follows from it; nil if there is nothing new.
func (s *storeState) take(sch schedule) *result {
	res := s.result
	if res == nil {
		return nil
	}
	s.result = nil
	if s.broken = res.err != nil && provider.ClassOf(res.err) == provider.Invalid; res.err != nil {
		s.failures++
		s.until = sch.now.Add(max(backoff(s.failures, sch.random()), res.retryAfter))
		return res
	}
	s.failures, s.until, s.next, s.good = 0, time.Time{}, time.Time{}, res.at
	if sch.interval > 0 {
		s.next = res.at.Add(policy.Jitter(sch.interval, sch.random()))
	}
	return res
}

func backoff(failures int, random float64) time.Duration {
	return policy.Jitter(min(firstBackoff<<min(failures-1, 10), lastBackoff), random)
}

// progress is what is remembered of the stores of one object. It is safe for concurrent use. The zero progress is empty.
type progress struct {
	mu     sync.Mutex
	states map[storeID]*storeState
}

// with uses what is remembered of a store.
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

// open returns the stores to which something is being pushed, or has been and was not looked at yet.
func (p *progress) open() []storeID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(p.states)), func(id storeID) bool {
		return !p.states[id].running && p.states[id].result == nil
	})
}

// inherit notes that others leave a place to the object.
func (p *progress) inherit(id storeID, n remoteName) {
	p.with(id, func(s *storeState) { s.left = append(s.left, n) })
}

// inherited returns, once, the places that others have left to the object. It returns none while something is being
// pushed: what comes of that does not know of them.
func (p *progress) inherited(id storeID) (names []remoteName) {
	p.with(id, func(s *storeState) {
		if !s.running && s.result == nil {
			names, s.left = s.left, nil
		}
	})
	return names
}

func (p *progress) forget(id storeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, id)
}

// retain forgets the stores that are not named, but for those of which a push was not looked at yet.
func (p *progress) retain(named []storeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.states, func(id storeID, s *storeState) bool {
		return !s.running && s.result == nil && !slices.Contains(named, id)
	})
}

// noWait has stores that failed tried again at once.
func (p *progress) noWait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.states {
		s.until = time.Time{}
	}
}

// names returns the places to which something was pushed last, by store.
func (p *progress) names() map[storeID][]remoteName {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[storeID][]remoteName, len(p.states))
	for id, s := range p.states {
		out[id] = s.names
	}
	return out
}

// cancel ends what is running.
func (p *progress) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.states {
		if s.running {
			s.cancel()
		}
	}
}

// good returns when a store was in step last, as far as its status or this process knows.
func (p *progress) good(of v1alpha1.PushStoreStatus) (at time.Time) {
	p.with(idOf(of), func(s *storeState) { at = s.good })
	if t := of.RefreshTime; t != nil && t.After(at) {
		return t.Time // A process before this one wrote it.
	}
	return at
}
