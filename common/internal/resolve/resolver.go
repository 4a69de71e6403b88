package resolve

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Use is what an object uses a store for.
type Use string

// The uses.
const (
	Read     Use = "Read"
	Generate Use = "Generate"
	Push     Use = "Push"
	// Revoke revokes the values that a generator has made. Neither the class of the generator nor its gate matters.
	Revoke Use = "Revoke"
)

// Why is the reason for which a store is refused.
type Why string

// The reasons, in the order in which they are checked.
const (
	// NotServed: the module has no such Kind.
	NotServed Why = "NotServed"
	// ClusterKind: an operator limited to some namespaces is not allowed to read cluster Kinds.
	ClusterKind Why = "ClusterKind"
	// Absent: the store does not exist.
	Absent Why = "Absent"
	// OtherClass: an operator of another controller class serves the store.
	OtherClass Why = "OtherClass"
	// WrongKind: a generator where a store is needed, or the reverse; or an event source.
	WrongKind Why = "WrongKind"
	// NotAdmitted: the cluster store does not serve the namespace.
	NotAdmitted Why = "NotAdmitted"
	// ReadOnly: pushes to the store are not allowed.
	ReadOnly Why = "ReadOnly"
	// NotReady: the gate of the store is closed.
	NotReady Why = "NotReady"
)

// A Refusal is why a store cannot be used now.
type Refusal struct {
	Why Why
	// Message is the problem and its fix, as a sentence whose subject is the store: "does not exist; create it".
	Message string
	// Reason is the reason of the store's Ready condition, under NotReady.
	Reason string
	// Rule is the cluster store's reason for the namespace, under NotAdmitted.
	Rule string
	// Class is the controller class of the store, under OtherClass.
	Class string
}

// A Handle is a store that an object refers to.
type Handle struct {
	Route
	Key types.NamespacedName
	// Store is nil if it is not served, cannot be read, does not exist, or is of the wrong kind.
	Store provider.Object
	// Grant is what a cluster Kind allows the namespace; nil for a namespaced Kind.
	Grant *scope.Grant
	// CredentialsNamespace is the namespace in which credentials are looked up, if that is not the store's own.
	CredentialsNamespace string
}

// A Resolver finds the stores that objects refer to, and decides whether an object may use one.
type Resolver struct {
	*Routes
	Rulebook
	// namespaces reads namespaces with their labels.
	namespaces client.Reader
	class      string
	namespaced bool
}

// NewResolver returns a Resolver for the Kinds of a module and the class of its operator. A namespaced operator is not
// allowed to read cluster Kinds.
func NewResolver(cache client.Reader, scheme *runtime.Scheme, kinds []provider.Kind, class string, namespaced bool) (*Resolver, error) {
	routes, err := New(cache, scheme, kinds)
	return &Resolver{Routes: routes, namespaces: cache, class: class, namespaced: namespaced}, err
}

// Lookup returns the store that a reference of an object in namespace names, if this operator serves it.
func (r *Resolver) Lookup(ctx context.Context, ref v1alpha1.StoreRef, namespace string) (Handle, *Refusal, error) {
	k, ok := r.Serves(&ref)
	if !ok {
		return Handle{}, &Refusal{Why: NotServed, Message: "is not served by this module"}, nil
	}
	h := Handle{Route: k, Key: k.Key(ref.Name, namespace)}
	if k.Cluster && r.namespaced {
		return h, &Refusal{Why: ClusterKind, Message: "is a cluster Kind, and this operator serves selected namespaces only; use the namespaced Kind"}, nil
	}
	s, err := r.Find(ctx, k, ref, namespace)
	switch {
	case err != nil:
		return h, nil, errors.Wrap(err, "cannot read the store")
	case s == nil:
		return h, &Refusal{Why: Absent, Message: "does not exist; create it or correct the reference"}, nil
	}
	h.Store, h.CredentialsNamespace = s, CredentialsNamespace(s, namespace)
	if class := provider.SourceSpec(s).Controller; class != r.class {
		return h, &Refusal{Why: OtherClass, Class: class, Message: fmt.Sprintf("is served by the operator with controller class %q", class)}, nil
	}
	return h, nil, nil
}

// Resolve returns the store that a reference names, and a refusal if an object in namespace cannot use it now;
// otherwise nil. The error is NotFound if the cache does not have the namespace yet.
func (r *Resolver) Resolve(ctx context.Context, ref v1alpha1.StoreRef, namespace string, use Use) (Handle, *Refusal, error) {
	h, refusal, err := r.Lookup(ctx, ref, namespace)
	if use == Revoke && refusal != nil && refusal.Why == OtherClass {
		refusal = nil
	}
	if err != nil || refusal != nil {
		return h, refusal, err
	}
	if m := misuse(h.Kind, use); m != "" {
		h.Store = nil
		return h, &Refusal{Why: WrongKind, Message: m}, nil
	}
	if c, ok := h.Store.(provider.ClusterObject); ok {
		grant, refused, err := r.Grant(ctx, r.namespaces, c, namespace)
		switch {
		case err != nil:
			return h, nil, err
		case refused != "":
			return h, &Refusal{Why: NotAdmitted, Rule: refused, Message: "does not serve this namespace: " + refused}, nil
		}
		h.Grant = &grant
	}
	if s, ok := h.Store.(provider.StoreObject); ok && use == Push && s.StoreSpec().Access == v1alpha1.AccessReadOnly {
		return h, &Refusal{Why: ReadOnly, Message: "has access: ReadOnly, so pushes are refused; use another store, or have spec.access of the store changed"}, nil
	}
	if c := Held(h.Store); c != nil && use != Revoke {
		return h, &Refusal{Why: NotReady, Reason: c.Reason, Message: fmt.Sprintf("is not ready: %s: %s", c.Reason, c.Message)}, nil
	}
	return h, nil, nil
}

// misuse returns a message if a reference names a Kind of the wrong sort; empty if it does not.
func misuse(k provider.Kind, use Use) string {
	generator := k.Generator
	switch {
	case k.EventSource:
		return "is an event source, from which nothing is read; name a store or a generator"
	case generator && use == Read:
		return "is a generator, and storeRef is for stores; name it in dataFrom[].sourceRef.generatorRef"
	case generator && use == Push:
		return "is a generator, so nothing can be pushed to it; name a store in spec.storeRefs"
	case !generator && (use == Generate || use == Revoke):
		return "is a store, and generatorRef is for generators; name it in storeRef"
	}
	return ""
}
