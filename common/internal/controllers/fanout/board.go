package fanout

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// A board remembers the result of each namespace of each parent. The zero board is empty.
type board struct {
	mu sync.Mutex
	// Bound: one per parent.
	parents map[string]*progress
}

// progress holds what is known about one generation of a parent.
type progress struct {
	uid        types.UID
	generation int64
	namespaces map[string]result
	// spec is the spec of the children, as stored in the API server; nil if it was not read yet.
	spec map[string]any
	// behind is since when the status does not show the results of the namespaces; zero if it does.
	behind time.Time
}

// result is the result of one namespace.
type result struct {
	// refused is why there is no child; empty if the child is as wanted.
	refused string
	// made is true if the child was in sync or written before. A further write then restores it.
	made          bool
	revertBackoff policy.RevertBackoff
}

// after returns the result after another attempt, where r was the result before. good is false if the attempt failed
// with an error.
func (r result) after(o outcome, good bool, now time.Time) result {
	is := result{refused: o.refused, revertBackoff: r.revertBackoff, made: r.made || o.written || o.refused == "" && good}
	if o.written && r.made {
		is.revertBackoff = r.revertBackoff.Revert(now)
	}
	return is
}

// of returns the progress of a parent; nil if a later generation of it is known. The caller must hold mu.
func (b *board) of(parent client.Object) *progress {
	p := b.parents[parent.GetName()]
	switch {
	case p != nil && p.uid == parent.GetUID() && p.generation > parent.GetGeneration():
		return nil
	case p == nil || p.uid != parent.GetUID() || p.generation != parent.GetGeneration():
		p = &progress{uid: parent.GetUID(), generation: parent.GetGeneration(), namespaces: map[string]result{}}
		if b.parents == nil {
			b.parents = map[string]*progress{}
		}
		b.parents[parent.GetName()] = p
	}
	return p
}

// use calls f with the progress of a parent, unless a later generation of it is known.
func (b *board) use(parent client.Object, f func(p *progress)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.of(parent); p != nil {
		f(p)
	}
}

// get returns the result of a namespace; false if there is none yet.
func (b *board) get(parent client.Object, namespace string) (r result, ok bool) {
	b.use(parent, func(p *progress) { r, ok = p.namespaces[namespace] })
	return r, ok
}

// set records the result of a namespace, and reports whether the status changes by it. A nil result removes the
// namespace.
func (b *board) set(parent client.Object, namespace string, r *result, now time.Time) (changes bool) {
	b.use(parent, func(p *progress) {
		old, known := p.namespaces[namespace]
		changes = known != (r != nil) || known && old.refused != r.refused
		if r == nil {
			delete(p.namespaces, namespace)
		} else {
			p.namespaces[namespace] = *r
		}
		if changes && p.behind.IsZero() {
			p.behind = now
		}
	})
	return changes
}

// behind returns since when the status of a parent does not show the results of its namespaces. It is now if the
// status does, or if this operator has not written it yet.
func (b *board) behind(parent client.Object, now time.Time) time.Time {
	since := now
	b.use(parent, func(p *progress) {
		if p.behind.IsZero() {
			p.behind = now
		}
		since = p.behind
	})
	return since
}

// shown records that the status of a parent is about to be written.
func (b *board) shown(parent client.Object) {
	b.use(parent, func(p *progress) { p.behind = time.Time{} })
}

// spec returns the spec of the children that was kept for a parent; nil if there is none.
func (b *board) spec(parent client.Object) (spec map[string]any) {
	b.use(parent, func(p *progress) { spec = p.spec })
	return spec
}

// keepSpec keeps the spec of the children of a parent.
func (b *board) keepSpec(parent client.Object, spec map[string]any) {
	b.use(parent, func(p *progress) { p.spec = spec })
}

// refused returns the parents that want a child in a namespace and have none.
func (b *board) refused(namespace string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for name, p := range b.parents {
		if p.namespaces[namespace].refused != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (b *board) forget(parent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.parents, parent)
}

// clear removes all results.
func (b *board) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parents = nil
}
