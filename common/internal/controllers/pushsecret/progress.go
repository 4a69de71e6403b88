package pushsecret

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// waitsFor is how long a removal waits until other objects were compared. After that the secret stays.
	waitsFor = time.Minute
	// waitsAgain is the time until such a removal is made again. The next times grow.
	waitsAgain = 250 * time.Millisecond
)

// sourceRetry is how long an object waits whose sources cannot be pushed. A change of a source ends the wait.
const sourceRetry = 2 * time.Minute

// storeID identifies a store in the status.
type storeID struct{ apiVersion, kind, name string }

func idOf(s v1alpha1.PushStoreStatus) storeID { return storeID{s.APIVersion, s.Kind, s.Name} }

func byID(a, b v1alpha1.PushStoreStatus) int { return byStore(idOf(a), idOf(b)) }

func byStore(a, b storeID) int {
	return cmp.Or(cmp.Compare(a.apiVersion, b.apiVersion), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

// waiting is the wait of removals for the comparisons of other objects.
type waiting struct {
	// attempt is the attempt that waits.
	attempt kit.Attempt
	// since is when it began; zero if none waits. The removals are made again at again.
	since, again time.Time
	// generations are those of the objects that they wait for, by uid; nil if none was looked for yet.
	generations map[types.UID]int64
}

// storeState is the state of the pushes of one object to one store.
type storeState struct {
	running bool
	// cancel stops the running push.
	cancel func()
	// result is the result of the last push, until a walk over the object takes it.
	result *result
	// at is where the store keeps its secrets, as its client has told this process; zero if it has not. It is set by move.
	at location
	// wanted is the generation that must be compared, and done the one that was last compared.
	wanted, done int64
	// asked is true if the store must be compared although it is in sync, for an event or for the removal by another object.
	asked bool
	// attempts are those of pushes. The Metadata of an attempt is the version of what is pushed.
	attempts kit.Attempts
	wait     waiting
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

// busy reports whether a push runs, or has ended and no walk over the object has taken its result. Its end requeues the
// object.
func (s *storeState) busy() bool { return s.running || s.result != nil }

// begin returns how long an attempt must wait; 0 if it can begin now.
func (s *storeState) begin(a kit.Attempt, now time.Time) time.Duration {
	if s.wait.attempt != a {
		s.wait = waiting{}
	}
	wait, _ := s.attempts.Begin(a)
	return max(wait, s.wait.again.Sub(now))
}

// late reports whether removals no longer wait for other objects.
func (s *storeState) late(now time.Time, limit time.Duration) bool {
	return !s.wait.since.IsZero() && now.Sub(s.wait.since) >= limit
}

// due reports whether the store must be compared now, and otherwise how long to wait; 0 for never. hold is how long the sync windows
// hold back a comparison that is due. planned is the time in the status of a store that was in sync.
func (s *storeState) due(a kit.Attempt, inSync bool, planned *metav1.Time, sch schedule) (due bool, wait time.Duration, hold windows.Hold) {
	if wait := s.begin(a, sch.now); wait > 0 {
		return false, wait, hold
	}
	if !inSync || s.asked || sch.interval == 0 {
		return !inSync || s.asked, 0, hold
	}
	if planned == nil {
		planned = &metav1.Time{}
	}
	s.next = policy.Planned(s.next, planned.Time, sch.now, sch.now, sch.interval, sch.random())
	if wait := s.next.Sub(sch.now); wait > 0 {
		return false, wait, hold
	}
	if hold = sch.windows.Hold(sch.now, sch.random()); hold.Holds() {
		return false, hold.Wait(sch.now), hold
	}
	return true, 0, hold
}

// take returns the result of a push that has ended and plans the next attempt; nil if there is no new result.
func (s *storeState) take(sch schedule) *result {
	res := s.result
	if s.result = nil; res == nil {
		return nil
	}
	if res.refused != nil {
		s.attempts.Fail(sourceRetry)
		return res
	}
	if !res.waits {
		s.wait = waiting{}
	} else if s.wait.since.IsZero() {
		s.wait.attempt, s.wait.since = res.Attempt, sch.now
	}
	if res.waits && res.err == nil {
		s.wait.again = sch.now.Add(waitsAgain + sch.now.Sub(s.wait.since)/2)
		for _, limit := range []time.Duration{othersFor, waitsFor} { // The waits for some objects end then.
			if end := s.wait.since.Add(limit); end.After(sch.now) && end.Before(s.wait.again) {
				s.wait.again = end
			}
		}
		return res
	}
	s.broken = res.err != nil && provider.ClassOf(res.err) == provider.Invalid
	s.failing = res.err != nil && res.Request == removal
	if res.err != nil {
		s.attempts.Fail(res.retryAfter)
		return res
	}
	s.attempts.Succeed()
	s.next, s.good = time.Time{}, res.started
	if res.difference != nil {
		s.compared = res.Attempt
	}
	if sch.interval > 0 {
		s.next = res.started.Add(policy.Jitter(sch.interval, sch.random()))
	}
	return res
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

// open returns the stores with a running push, or with a result that no walk has taken.
func (p *progress) open() []storeID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(p.states)), func(id storeID) bool { return !p.states[id].busy() })
}

// begin records that a push begins, before it reads anything: otherwise an object could be released by a walk that knows of
// no push, while a push begins that does not know of the deletion. free is false if the store is busy; then asked is true if it
// must be compared afterwards. The push calls end.
func (p *progress) begin(id storeID, cancel func()) (free, asked bool) {
	p.with(id, func(s *storeState) {
		if free, asked = !s.busy(), s.asked; free {
			s.running, s.cancel = true, cancel
		}
	})
	return free, asked
}

// end records the end of a push, its result (nil if nothing was due), and the generation that it has compared (0 for none).
func (p *progress) end(id storeID, res *result, generation int64) {
	p.with(id, func(s *storeState) { s.running, s.result, s.done = false, res, max(s.done, generation) })
}

func (p *progress) forget(id storeID) {
	p.drop(func(is storeID, _ *storeState) bool { return is == id })
}

// retain removes the states of stores that are not named, except those with a running push or a result not taken.
func (p *progress) retain(named []storeID) {
	p.drop(func(id storeID, s *storeState) bool { return !s.busy() && !slices.Contains(named, id) })
}

// drop removes the states that match.
func (p *progress) drop(matches func(storeID, *storeState) bool) {
	p.mu.Lock()
	before := len(p.states)
	maps.DeleteFunc(p.states, matches)
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

// rest records that no push is due.
func (p *progress) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.states {
		if !s.running {
			s.wanted = 0
		}
	}
}

// unchecked reports whether this process has not compared a store. A push of a former process that was interrupted may then
// have created what the status does not record.
func (p *progress) unchecked(id storeID) (is bool) {
	p.with(id, func(s *storeState) { is = s.done == 0 })
	return is
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

// unfinished calls f for each store that was not compared yet. done is the generation that was last compared.
func (p *progress) unfinished(f func(id storeID, at location, done int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.states {
		if s.wanted > s.done {
			f(id, s.at, s.done)
		}
	}
}

// cancel stops all running pushes.
func (p *progress) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.states {
		if s.running {
			s.cancel()
		}
	}
}

// good returns when a store was last in sync, by its status or by this process.
func (p *progress) good(of v1alpha1.PushStoreStatus) (at time.Time) {
	p.with(idOf(of), func(s *storeState) { at = s.good })
	if t := of.RefreshTime; t != nil && t.After(at) {
		return t.Time // A former process wrote it.
	}
	return at
}
