package store

import (
	"context"
	"fmt"
	"reflect"
)

// A Kind is a store Kind with the provider code that serves it, its Go type erased.
type Kind struct {
	// New returns an empty object of the Kind.
	New func() Object
	// Cluster is true for a Kind that is not namespaced.
	Cluster bool
	// Generator is true for a Kind whose clients are Generators.
	Generator bool

	connect func(ctx context.Context, o Object, creds Credentials) (Client, error)
}

// KindOf returns the namespaced Kind whose Go type is S, a pointer to a struct.
func KindOf[S Object](c Connector[S]) Kind {
	t := reflect.TypeFor[S]().Elem()
	return Kind{
		New: func() Object { return reflect.New(t).Interface().(S) },
		connect: func(ctx context.Context, o Object, creds Credentials) (Client, error) {
			s, ok := o.(S)
			if !ok {
				return nil, NewError(Invalid, "store is a %T, want %T", o, s)
			}
			return c.Connect(ctx, s, creds)
		},
	}
}

// ClusterKindOf returns the cluster-scoped Kind whose Go type is S, a pointer to a struct.
func ClusterKindOf[S ClusterObject](c Connector[S]) Kind {
	k := KindOf(c)
	k.Cluster = true
	return k
}

// GeneratorKindOf returns the namespaced generator Kind whose Go type is S, a pointer to a struct. The
// clients that c makes must be Generators.
func GeneratorKindOf[S GeneratorObject](c Connector[S]) Kind {
	k := KindOf(c)
	k.Generator = true
	return k
}

// ClusterGeneratorKindOf returns the cluster-scoped generator Kind whose Go type is S.
func ClusterGeneratorKindOf[S ClusterGeneratorObject](c Connector[S]) Kind {
	k := GeneratorKindOf(c)
	k.Cluster = true
	return k
}

// Connect makes a client. A panic of the provider becomes an error that does not show its value,
// since that may hold a secret.
func (k Kind) Connect(ctx context.Context, o Object, creds Credentials) (c Client, err error) {
	defer recoverTo(&err, "connecting")
	if c, err = k.connect(ctx, o, creds); err == nil && c == nil {
		err = NewError(Unavailable, "the provider's code returned no client")
	}
	return c, err
}

// GoName returns the name of the Go type, which is the Kind's name.
func (k Kind) GoName() string { return reflect.TypeOf(k.New()).Elem().Name() }

func recoverTo(err *error, doing string) {
	if r := recover(); r != nil {
		*err = NewError(Unavailable, "the provider's code failed while %s (%s)", doing, fmt.Sprintf("%T", r))
	}
}
