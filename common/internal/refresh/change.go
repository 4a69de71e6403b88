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
