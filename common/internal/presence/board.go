package presence

import (
	"cmp"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Board knows who runs. It is safe for concurrent use. The zero Board is that of an operator whose presence
// is off: it knows nobody, and says of nobody that it is missing.
//
// Whether a Lease has lapsed is judged by when this process has last seen it change, never by the time
// that it states: clocks of machines differ. A Board that does not see its own operator's Lease change any
// more is blind, for example while a watch is broken, and then takes nobody for gone.
type Board struct {
	on   bool
	self Member
	own  string
	// catalog holds the modules that can be installed.
	catalog Catalog
	timing  Timing
	now     func() time.Time
	// started is when the Board was made.
	started time.Time

	mu   sync.Mutex
	told []func()
	// seen holds by name what is known of each Lease.
	seen map[string]*sighting
	// sighted is since when the board sees; zero while it is blind.
	sighted time.Time
}

// sighting is what is known of a Lease.
type sighting struct {
	member   Member
	version  string
	changed  time.Time
	duration time.Duration
	// lapsed is when the Lease ran out; zero while it counts.
	lapsed  time.Time
	deleted bool
}

func newBoard(self Member, t Timing, now func() time.Time) *Board {
	return &Board{on: true, self: self, own: leaseName(self), timing: t, now: now, started: now(), seen: map[string]*sighting{}}
}

// On reports whether the operator tells of itself, and knows of others.
func (b *Board) On() bool { return b.on }

// Sees reports whether the Board knows who runs.
func (b *Board) Sees() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on && !b.sighted.IsZero()
}

// Settling reports whether the Board has yet to see who runs, shortly after the start. One that never sees, for want
// of rights, does not settle for ever.
func (b *Board) Settling() bool {
	return b.on && !b.Sees() && b.now().Sub(b.started) < b.timing.Settle
}

// Hint says that no running module serves a reference, and what to do about it.
func (b *Board) Hint(ref *v1alpha1.StoreRef) string { return b.catalog.hint(ref) }

// Self returns what this operator tells of itself.
func (b *Board) Self() Member { return b.self }

// OnChange has f called when a member comes, goes, or tells something else. f must not block. Calls may
// overlap.
func (b *Board) OnChange(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, f)
}

// Serving returns the running members that serve a reference of an object in namespace. Members with
// chosen namespaces serve no cluster Kinds.
func (b *Board) Serving(ref *v1alpha1.StoreRef, namespace string) []Member {
	return b.running(func(m *Member) bool {
		k, knows := m.knows(ref)
		return knows && m.covers(namespace) && (!k.Cluster || len(m.Namespaces) == 0)
	})
}

// Running returns the first running member that serves a namespace and matches; false if there is none.
func (b *Board) Running(namespace string, matches func(Member) bool) (Member, bool) {
	all := b.running(func(m *Member) bool { return m.covers(namespace) && matches(*m) })
	if len(all) == 0 {
		return Member{}, false
	}
	return all[0], true
}

// Missing reports whether to say that nobody serves ref, for an object in namespace that waits since a
// time. If not, wait is when to ask again; 0 if somebody is there. Somebody is there, too, who knows
// the Kind but may not serve it, as cluster Kinds in a namespaced install: it says so by itself.
func (b *Board) Missing(ref *v1alpha1.StoreRef, namespace string, since time.Time) (missing bool, wait time.Duration) {
	return b.missing(ref, since, func(m *Member) bool { return m.covers(namespace) })
}

// MissingClass is Missing for a store of a class, which another class serves in vain.
func (b *Board) MissingClass(ref *v1alpha1.StoreRef, class, namespace string, since time.Time) (missing bool, wait time.Duration) {
	return b.missing(ref, since, func(m *Member) bool { return m.Class == class && m.covers(namespace) })
}

// missing is Missing among those members for which which is true.
func (b *Board) missing(ref *v1alpha1.StoreRef, since time.Time, which func(*Member) bool) (missing bool, wait time.Duration) {
	if !b.on || ref == nil {
		return false, 0
	}
	concerns := func(m *Member) bool {
		_, knows := m.knows(ref)
		return knows && which(m)
	}
	if len(b.running(concerns)) > 0 {
		return false, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sighted.IsZero() {
		return false, b.timing.Settle
	}
	at := later(since, b.sighted).Add(b.timing.Settle)
	for _, s := range b.seen {
		if concerns(&s.member) {
			at = later(at, s.lapsed.Add(b.timing.Rollout))
		}
	}
	if wait = at.Sub(b.now()); wait > 0 {
		return false, wait
	}
	return true, 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// running returns the members that run and for which which is true, in a fixed order.
func (b *Board) running(which func(*Member) bool) []Member {
	if !b.on {
		return nil
	}
	var out []Member
	if which(&b.self) {
		out = append(out, b.self)
	}
	b.mu.Lock()
	for name, s := range b.seen {
		if name != b.own && s.lapsed.IsZero() && which(&s.member) {
			out = append(out, s.member)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Class, b.Class), slices.Compare(a.Namespaces, b.Namespaces))
	})
	return out
}

// knows returns the Kind that a reference names; false if this member does not serve it.
func (m *Member) knows(ref *v1alpha1.StoreRef) (Kind, bool) {
	for _, k := range m.Kinds {
		if ref.Matches(schema.GroupKind{Group: k.Group, Kind: k.Kind}) {
			return k, true
		}
	}
	return Kind{}, false
}

func (m *Member) covers(namespace string) bool {
	return len(m.Namespaces) == 0 || slices.Contains(m.Namespaces, namespace)
}

// see notes a Lease as it is now.
func (b *Board) see(l *coordinationv1.Lease) {
	m, ok := Decode(l)
	if !ok {
		b.gone(l.Name) // What cannot be read tells of nobody.
		return
	}
	m, now := m.normal(), b.now()
	b.mu.Lock()
	s := b.seen[l.Name]
	if s != nil && s.version == l.ResourceVersion {
		b.mu.Unlock()
		return // The cache tells again what it holds.
	}
	changed := s == nil || !s.lapsed.IsZero() || !equality.Semantic.DeepEqual(s.member, m)
	b.seen[l.Name] = &sighting{member: m, version: l.ResourceVersion, changed: now, duration: durationOf(l, b.timing.Duration)}
	if l.Name == b.own && b.sighted.IsZero() {
		b.sighted = now
		for _, s := range b.seen { // Their renewals may have been missed.
			s.changed = now
		}
	}
	b.mu.Unlock()
	if changed {
		b.tell()
	}
}

// gone notes that a Lease is no more.
func (b *Board) gone(name string) {
	b.mu.Lock()
	s := b.seen[name]
	changed := s != nil && s.lapsed.IsZero()
	if s != nil {
		s.deleted = true
		if changed {
			s.lapsed, s.version = b.now(), ""
		}
	}
	b.mu.Unlock()
	if changed {
		b.tell()
	}
}

// look looks for Leases that have lapsed.
func (b *Board) look() {
	changed := false
	b.mu.Lock()
	now := b.now()
	if s := b.seen[b.own]; s == nil || now.Sub(s.changed) >= s.duration {
		b.sighted = time.Time{}
	}
	for name, s := range b.seen {
		switch {
		case b.sighted.IsZero():
		case s.lapsed.IsZero() && now.Sub(s.changed) >= s.duration:
			s.lapsed, changed = now, true
		case s.deleted && now.Sub(s.lapsed) >= b.timing.Rollout:
			delete(b.seen, name) // It counts no more.
		}
	}
	b.mu.Unlock()
	if changed {
		b.tell()
	}
}

func (b *Board) tell() {
	b.mu.Lock()
	told := slices.Clone(b.told)
	b.mu.Unlock()
	for _, f := range told {
		f()
	}
}
