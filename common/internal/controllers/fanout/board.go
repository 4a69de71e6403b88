package fanout

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// A board remembers what came of each namespace of each parent. The zero board is empty.
type board struct {
	mu      sync.Mutex
	parents map[string]*progress
}

// progress is what came of the namespaces for one generation of a parent.
type progress struct {
	uid        types.UID
	generation int64
	namespaces map[string]result
	// behind is since when the status is not that of the namespaces.
	behind time.Time
}

// result is what came of one namespace.
type result struct {
	// refused says why there is no child; empty if it is as wanted.
	refused string
	// made: it was in step once, or written. To write it again is to put it right.
	made  bool
	fight policy.Fight
}

// after returns what came of a namespace where this was known before. good is false if that failed.
func (r result) after(o outcome, good bool, now time.Time) result {
	is := result{refused: o.refused, fight: r.fight, made: r.made || o.written || o.refused == "" && good}
	if o.written && r.made {
		is.fight = r.fight.Revert(now)
	}
	return is
}

// of returns the progress of a parent; nil if a later generation has been looked at. The mutex must be held.
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

// get returns what came of a namespace; false if it has not been looked at.
func (b *board) get(parent client.Object, namespace string) (result, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of(parent)
	if p == nil {
		return result{}, false
	}
	r, ok := p.namespaces[namespace]
	return r, ok
}

// set notes what came of a namespace, and reports whether that is news. nil: nothing is to be said of it.
func (b *board) set(parent client.Object, namespace string, r *result, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of(parent)
	if p == nil {
		return false
	}
	old, known := p.namespaces[namespace]
	news := known != (r != nil) || known && old.refused != r.refused
	if r == nil {
		delete(p.namespaces, namespace)
	} else {
		p.namespaces[namespace] = *r
	}
	if news && p.behind.IsZero() {
		p.behind = now
	}
	return news
}

// behind returns since when the status of a parent is not that of its namespaces; now if it is, or was not
// written yet.
func (b *board) behind(parent client.Object, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of(parent)
	if p == nil {
		return now
	}
	if p.behind.IsZero() {
		p.behind = now
	}
	return p.behind
}

// shown notes that the status of a parent is being written.
func (b *board) shown(parent client.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.of(parent); p != nil {
		p.behind = time.Time{}
	}
}

// refused returns the parents that have no child in a namespace where they want one.
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

// clear forgets everything.
func (b *board) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parents = nil
}
