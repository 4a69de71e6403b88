package provider

// A NamespaceLimiter is a Credentials that reports the namespace to which it is limited. For a namespaced store it is that
// of the store. For a cluster store with authenticationScope ManifestNamespace it is that of the objects for which the
// Client works. It is empty if the Client works for objects of several namespaces.
type NamespaceLimiter interface {
	LimitedTo() string
}

// NamespaceOf returns the namespace for whose objects alone a Client with these Credentials works; empty if there are
// several, or if it is not known. No field of a spec can change it.
func NamespaceOf(creds Credentials) string {
	if l, ok := creds.(NamespaceLimiter); ok {
		return l.LimitedTo()
	}
	return ""
}
