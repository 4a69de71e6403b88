package provider

import (
	"context"
	"fmt"
	"reflect"

	"github.com/direct-secrets/direct-secrets/common/internal/fips"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// A Kind is a store Kind with its provider code, independent of the Go type.
type Kind struct {
	// New returns an empty object of the Kind.
	New func() Object
	// Cluster is true for a Kind that is not namespaced.
	Cluster bool
	// Generator is true for a generator Kind.
	Generator bool
	// EventSource is true for an event source Kind.
	EventSource bool

	// name is that of the Go type.
	name string
	// readOnly is true for a generator whose Generate changes nothing at the service, and noRemoteChanges if all other
	// changes are refused.
	readOnly, noRemoteChanges bool
	// connect returns a Client, a Generator for a generator Kind, or an EventSource for an event source Kind.
	connect func(ctx context.Context, o Object, creds Credentials) (any, error)
	// scope and keys are the functions of WithKeys, serves that of ServedIf, and answers the text of WithAnswers.
	scope   func(store Object) any
	keys    func(store Object, e Event) []string
	serves  func(Object) bool
	answers string
}

// KindOf returns the namespaced Kind whose Go type is S, a pointer to a struct.
func KindOf[S StoreObject](c Connector[S]) Kind { return kindOf(c) }

func kindOf[S Object, C any](connect func(context.Context, S, Credentials) (C, error)) Kind {
	t := reflect.TypeFor[S]().Elem()
	return Kind{
		name: t.Name(),
		New:  func() Object { return reflect.New(t).Interface().(S) },
		connect: func(ctx context.Context, o Object, creds Credentials) (any, error) {
			s, ok := o.(S)
			if !ok {
				return nil, NewError(Invalid, "the store is a %T, want %T", o, s)
			}
			return connect(ctx, s, creds)
		},
	}
}

// ClusterKindOf returns the cluster-scoped Kind whose Go type is S, a pointer to a struct.
func ClusterKindOf[S ClusterStoreObject](c Connector[S]) Kind {
	k := KindOf(c)
	k.Cluster = true
	return k
}

// GeneratorKindOf returns the namespaced generator Kind whose Go type is S, a pointer to a struct.
func GeneratorKindOf[S GeneratorObject](c GeneratorConnector[S]) Kind {
	k := kindOf(c)
	k.Generator = true
	return k
}

// ClusterGeneratorKindOf returns the cluster-scoped generator Kind whose Go type is S.
func ClusterGeneratorKindOf[S ClusterGeneratorObject](c GeneratorConnector[S]) Kind {
	k := GeneratorKindOf(c)
	k.Cluster = true
	return k
}

// Connect creates the Client of a store, the Generator of a generator, or the EventSource of an event source. All answers to it count for the tenant. It
// turns a panic of the provider into an error without the panic's value, which might contain a secret.
func (k Kind) Connect(ctx context.Context, o Object, creds Credentials, tenant *quota.Tenant) (*Link, error) {
	l := NewLink(k.GoName(), nil, tenant)
	made, err := guard("connecting", func() (any, error) { return k.connect(l.context(ctx), o, creds) })
	if err != nil {
		return nil, err
	}
	l.made = made
	if k.noRemoteChanges {
		l.refused = ErrNoRemoteChanges
	}
	if k.HoldsBack() {
		l.heldBack = ErrNoRemoteChanges
	}
	switch {
	case k.Generator && !l.Can(CapabilityGenerate):
		return nil, NewError(Unavailable, "the provider's code returned no Generator")
	case k.EventSource && !l.Can(CapabilityReceive):
		return nil, NewError(Unavailable, "the provider's code returned no EventSource")
	case !k.Generator && !k.EventSource && !l.Can(CapabilityRead):
		return nil, NewError(Unavailable, "the provider's code returned no Client")
	}
	return l, nil
}

// GoName returns the name of the Go type, which is the Kind's name.
func (k Kind) GoName() string { return k.name }

func recoverTo(err *error, doing string) {
	switch r := recover(); {
	case r == nil:
	case fips.Refused(r):
		*err = NewError(Unavailable, "the provider's code failed while %s: %s", doing, fips.Refusal)
	default:
		*err = NewError(Unavailable, "the provider's code failed while %s (%s)", doing, fmt.Sprintf("%T", r))
	}
}
