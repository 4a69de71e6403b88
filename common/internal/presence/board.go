package presence

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A Board knows which operators run. It is safe for concurrent use. The zero value is for an operator with presence
// off: it knows no other operators, and never reports one as missing.
//
// A Lease has lapsed if this process has not seen it change for its duration. The time in the Lease is not used,
// because clocks of machines differ. While a Board does not see changes of its own operator's Lease, for example
// because a watch is broken, it reports no operator as missing.
type Board struct {
	// Classes has the stores of this operator's Kinds whose class no running operator serves. It can be used with presence
	// off, too.
	Classes MissingClasses

	on   bool
	self Member
	own  string
	// catalog holds the modules that can be installed.
	catalog Catalog
	timing  Timing
	now     func() time.Time
	// started is when the Board was created.
	started time.Time
	// leases has the Leases of all members.
	leases cache.Cache

	mu          sync.Mutex
	subscribers []func()
	// seen holds the state of each Lease, by name.
	// Bound: one per Lease of an operator, which tenants cannot create.
	seen map[string]*sighting
	// sighted is since when the Board sees its own Lease change; zero while it does not.
	sighted time.Time
}

// sighting is the state of a Lease.
type sighting struct {
	member   Member
	version  string
	changed  time.Time
	duration time.Duration
	// lapsed is when the Lease lapsed; zero while it is valid.
	lapsed  time.Time
	deleted bool
}

func newBoard(self Member, t Timing, now func() time.Time) *Board {
	return &Board{on: true, self: self, own: leaseName(self), timing: t, now: now, started: now(), seen: map[string]*sighting{}}
}

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch,roleName=leases

// newLeases returns a cache of the Leases of all members. It is separate from the manager's cache, for which all
// controllers wait: an operator that cannot read Leases must do all its other work.
func newLeases(mgr manager.Manager, namespace string) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{Label: "true"}),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	return c, errors.Wrap(err, "cannot create the cache of Leases")
}

// On reports whether presence is on: the operator publishes itself and knows others.
func (b *Board) On() bool { return b.on }

// Sees reports whether the Board knows which operators run.
func (b *Board) Sees() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on && !b.sighted.IsZero()
}

// Settling reports whether the Board does not know yet which operators run, shortly after the start. It ends after
// Timing.GracePeriod also if the Board never sees anything, for lack of permissions.
func (b *Board) Settling() bool {
	return b.on && !b.Sees() && b.now().Sub(b.started) < b.timing.GracePeriod
}

// Hint returns a message that no running module serves a reference, with a fix.
func (b *Board) Hint(ref *v1alpha1.StoreRef) string { return b.catalog.hint(ref) }

// Self returns what this operator publishes about itself.
func (b *Board) Self() Member { return b.self }

// OnChange registers f to be called when a member starts, stops, or publishes something else. f must not block. Calls
// may overlap.
func (b *Board) OnChange(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscribers = append(b.subscribers, f)
}

// Serving returns the running members that serve a reference of an object in namespace. Namespaced members serve no
// cluster Kinds.
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

// Missing reports whether to report that no running module serves ref, for an object in namespace that has been waiting
// since a time. If not, wait is when to ask again; 0 if a member is there. A member also counts if it knows the Kind
// but cannot serve it, like a cluster Kind in a namespaced install: it reports that itself. A misspelt Kind is reported at once.
func (b *Board) Missing(ref *v1alpha1.StoreRef, namespace string, since time.Time) (missing bool, wait time.Duration) {
	return b.missing(ref, since, func(m *Member) bool { return m.covers(namespace) })
}

// MissingClass is Missing for a store with a class. Members of other classes do not count.
func (b *Board) MissingClass(ref *v1alpha1.StoreRef, class, namespace string, since time.Time) (missing bool, wait time.Duration) {
	return b.missing(ref, since, func(m *Member) bool { return m.Class == class && m.covers(namespace) })
}

// missing is Missing for the members that match which.
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
		return false, b.timing.GracePeriod
	}
	at := later(since, b.sighted).Add(b.timing.GracePeriod)
	if len(b.catalog.misspelt(ref)) > 0 {
		at = b.sighted // A module that has this Kind is not to be expected.
	}
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

// running returns the running members that match which, in a fixed order.
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

// NeedLeaderElection is false: a new leader must already know which operators run.
func (b *Board) NeedLeaderElection() bool { return false }

// Start reads Leases until ctx ends, and checks regularly for Leases that have lapsed.
func (b *Board) Start(ctx context.Context) error {
	informer, err := b.leases.GetInformer(ctx, &coordinationv1.Lease{}, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch Leases")
	}
	see := func(obj any) {
		if l, ok := obj.(*coordinationv1.Lease); ok {
			b.see(l)
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if l, ok := obj.(*coordinationv1.Lease); ok {
				b.recordDeleted(l.Name)
			}
		},
	}); err != nil {
		return errors.Wrap(err, "cannot watch Leases")
	}
	go wait.UntilWithContext(ctx, func(context.Context) { b.checkExpired() }, max(b.timing.Duration/20, 10*time.Millisecond))
	return errors.Wrap(b.leases.Start(ctx), "cannot watch Leases")
}

// see records the present state of a Lease.
func (b *Board) see(l *coordinationv1.Lease) {
	m, ok := Decode(l)
	if !ok {
		b.recordDeleted(l.Name) // Treat an undecodable Lease as deleted.
		return
	}
	m, now := m.normal(), b.now()
	b.mu.Lock()
	s := b.seen[l.Name]
	if s != nil && s.version == l.ResourceVersion {
		b.mu.Unlock()
		return // A resync of the cache repeats the same version.
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
		b.notify()
	}
}

// recordDeleted records that a Lease was deleted.
func (b *Board) recordDeleted(name string) {
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
		b.notify()
	}
}

// checkExpired checks for Leases that have lapsed.
func (b *Board) checkExpired() {
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
			delete(b.seen, name) // It no longer counts.
		}
	}
	b.mu.Unlock()
	if changed {
		b.notify()
	}
}

func (b *Board) notify() {
	b.mu.Lock()
	subscribers := slices.Clone(b.subscribers)
	b.mu.Unlock()
	for _, f := range subscribers {
		f()
	}
}
