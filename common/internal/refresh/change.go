package refresh

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Change says that remote secrets of some stores have changed.
type Change struct {
	// Kind is that of the stores.
	Kind    provider.Kind
	Secrets []Secret
	// Stores are those that may have one of the secrets. Their objects name secrets by the same rules.
	Stores map[types.NamespacedName]bool
	// At is when the operator learned of it. Only a read that starts later shows a new value.
	At time.Time
	// By is the Kind and name of the event source, separated by a slash, and Source identifies it for kit.Controller.Notify.
	By     string
	Source any
	// Namespace is the only one whose objects the event source reaches; empty for those for which Admits returns true.
	Namespace string
	Admits    func(namespace string) bool
	// Matching is shared by the changes of one batch of events.
	Matching *Matching
}

// maxMatching limits Matching. Each expression takes up to 50 ms more.
//
//limit:events Time for which one batch of events is compared with the regular expressions of a namespace | The other objects with `find` count as matching, and are refreshed.
const maxMatching = 100 * time.Millisecond

// Matching measures the time for which the secrets of events are compared with the expressions of each namespace, which chooses them. It
// is not safe for concurrent use.
type Matching struct {
	// Bound: one per namespace that an event source reaches, for one batch of events.
	spent map[string]time.Duration
}

// Within runs f, which compares with an expression of a namespace. It returns false, and f did not run, if the time of the namespace is
// spent.
func (m *Matching) Within(namespace string, f func()) bool {
	if m.spent[namespace] >= maxMatching {
		return false
	}
	start := time.Now()
	f()
	m.Spend(namespace, time.Since(start))
	return true
}

// Spend takes time from that of a namespace.
func (m *Matching) Spend(namespace string, d time.Duration) {
	if m.spent == nil {
		m.spent = map[string]time.Duration{}
	}
	m.spent[namespace] += d
}

// A Secret is one that has changed.
type Secret struct {
	// Keys are the keys by which objects can name the secret, first the one that a search returns.
	Keys []string
	// Version is the version of the value after the change; empty if it is not known.
	Version string
	// MayBeOf reports whether it can be a secret of a store with a name.
	MayBeOf func(store string) bool
	// Matched is true once an object that reads or pushes the secret was found.
	Matched bool
}

// Reaches reports whether one of the secrets can be one of a store, and the event source reaches the objects of a namespace that
// use it.
func (c *Change) Reaches(s *Secret, store types.NamespacedName, namespace string) bool {
	return c.Stores[store] && s.MayBeOf(store.Name) && (c.Namespace == "" || c.Namespace == namespace) && c.Admits(namespace)
}
