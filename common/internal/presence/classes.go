package presence

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// MissingClasses has the stores whose controller class no running operator serves. It is safe for concurrent use.
type MissingClasses struct {
	mu sync.Mutex
	// Bound: one per store.
	stores   map[storeKey]missingClass
	onChange []func()
}

// storeKey identifies a store. That of a cluster Kind has no namespace.
type storeKey struct{ kind, namespace, name string }

type missingClass struct{ apiVersion, class, message string }

// OnChange registers f to be called when the stores or their messages change. f must not block.
func (m *MissingClasses) OnChange(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onChange = append(m.onChange, f)
}

// Set records the class and the message for a store; an empty message removes it. namespace is that of the store.
func (m *MissingClasses) Set(store v1alpha1.StoreRef, namespace, class, message string) {
	key := storeKey{store.Kind, namespace, store.Name}
	m.mu.Lock()
	changed := m.stores[key].message != message
	switch {
	case message == "":
		delete(m.stores, key)
	case m.stores == nil:
		m.stores = map[storeKey]missingClass{key: {store.APIVersion, class, message}}
	default:
		m.stores[key] = missingClass{store.APIVersion, class, message}
	}
	onChange := m.onChange
	m.mu.Unlock()
	if changed {
		for _, f := range onChange {
			f()
		}
	}
}

// Find returns the class and the message for the store that an object in namespace refers to; empty for any other store.
func (m *MissingClasses) Find(ref v1alpha1.StoreRef, namespace string) (class, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ns := range []string{namespace, ""} {
		found, ok := m.stores[storeKey{ref.Kind, ns, ref.Name}]
		if ok && ref.Matches(schema.FromAPIVersionAndKind(found.apiVersion, ref.Kind).GroupKind()) {
			return found.class, found.message
		}
	}
	return "", ""
}
