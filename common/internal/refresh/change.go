package refresh

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Change says that a remote secret has changed. A controller holds it while it handles it.
type Change struct {
	// Keys are the keys by which objects can name the secret, first the one that a search returns.
	Keys []string
	// Version is the version of the value after the change; empty if it is not known.
	Version string
	// At is when the operator learned of it. Only a read that starts later shows the new value.
	At time.Time
	// By is the Kind and name of the event source, separated by a slash.
	By string
	// Reaches reports whether the secret is one of a store, and the event source reaches the objects of a namespace that use it.
	Reaches func(store types.NamespacedName, namespace string) bool

	matched atomic.Bool
	held    atomic.Int64
	done    func(matched bool)
}

// NewChange returns a Change that is held once. It calls done after the last Release. matched is true if an object reads
// or pushes the secret.
func NewChange(done func(matched bool)) *Change {
	c := &Change{done: done}
	c.Hold()
	return c
}

// Match records that an object reads or pushes the secret.
func (c *Change) Match() { c.matched.Store(true) }

// Hold delays the call of done until the next call of Release.
func (c *Change) Hold() { c.held.Add(1) }

// Release ends one Hold.
func (c *Change) Release() {
	if c.held.Add(-1) == 0 {
		c.done(c.matched.Load())
	}
}
