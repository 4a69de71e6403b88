package provider

import (
	"context"
	"fmt"
	"reflect"
)

// A Kind is a store Kind with its provider code, independent of the Go type.
type Kind struct {
	// New returns an empty object of the Kind.
	New func() Object
	// Cluster is true for a Kind that is not namespaced.
	Cluster bool
	// Generator is true for a generator Kind.
	Generator bool

	// readOnly is true for a generator whose Generate changes nothing at the service, and noRemoteChanges if all other
	// changes are refused.
	readOnly, noRemoteChanges bool
	// connect returns a Client, or a Generator for a generator Kind.
	connect func(ctx context.Context, o Object, creds Credentials) (any, error)
}

// KindOf returns the namespaced Kind whose Go type is S, a pointer to a struct.
func KindOf[S StoreObject](c Connector[S]) Kind { return kindOf(c) }

func kindOf[S Object, C any](connect func(context.Context, S, Credentials) (C, error)) Kind {
	t := reflect.TypeFor[S]().Elem()
	return Kind{
		New: func() Object { return reflect.New(t).Interface().(S) },
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

// Connect creates the Client of a store. It turns a panic of the provider into an error without the panic's value,
// which might contain a secret.
func (k Kind) Connect(ctx context.Context, o Object, creds Credentials) (Client, error) {
	return connectAs[Client](ctx, k, o, creds)
}

// ConnectGenerator creates the Generator of an object of a generator Kind, in the same way as Connect.
func (k Kind) ConnectGenerator(ctx context.Context, o Object, creds Credentials) (Generator, error) {
	return connectAs[Generator](ctx, k, o, creds)
}

func connectAs[C any](ctx context.Context, k Kind, o Object, creds Credentials) (c C, err error) {
	defer recoverTo(&err, "connecting")
	made, err := k.connect(withKind(ctx, k.GoName()), o, creds)
	if err != nil {
		return c, err
	}
	c, ok := k.protect(made).(C)
	if !ok {
		return c, NewError(Unavailable, "the provider's code returned no %s", reflect.TypeFor[C]().Name())
	}
	return c, nil
}

// GoName returns the name of the Go type, which is the Kind's name.
func (k Kind) GoName() string { return reflect.TypeOf(k.New()).Elem().Name() }

func recoverTo(err *error, doing string) {
	if r := recover(); r != nil {
		*err = NewError(Unavailable, "the provider's code failed while %s (%s)", doing, fmt.Sprintf("%T", r))
	}
}
