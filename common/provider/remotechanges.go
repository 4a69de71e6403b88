package provider

import (
	"context"
	"io"
	"time"
)

// ErrNoRemoteChanges is the error of each call that would change something at a service, of a Kind that is
// WithoutRemoteChanges.
var ErrNoRemoteChanges error = NewError(Denied,
	"the operator runs with --no-remote-changes, so nothing is changed at the provider; to allow changes, set global.remoteChanges: true in the chart")

// ReadOnly returns the Kind of a generator whose Generate changes nothing at the service: it computes values, or gets a
// token as a login does, which the service does not list and cannot revoke alone.
func (k Kind) ReadOnly() Kind {
	k.readOnly = true
	return k
}

// WithoutRemoteChanges returns the Kind for an operator that changes nothing outside the cluster: each call that would
// is refused with ErrNoRemoteChanges, before the provider's code is called.
func (k Kind) WithoutRemoteChanges() Kind {
	k.noRemoteChanges = true
	return k
}

// HoldsBack reports whether the Kind refuses to generate values.
func (k Kind) HoldsBack() bool { return k.noRemoteChanges && !k.readOnly }

// protect returns what a Kind connected, without the changes that the Kind refuses.
func (k Kind) protect(made any) any {
	if !k.noRemoteChanges {
		return made
	}
	switch c := made.(type) {
	case Generator:
		return protectedGenerator{c, k.readOnly}
	case Client:
		return protectedClient{c}
	}
	return made
}

// A protectedClient reads only. It is no Writer, so that a type assertion cannot give the one of the provider. Functions
// of this package find its other interfaces by optional.
type protectedClient struct{ Client }

// A protectedWriter is the Writer of a protectedClient.
type protectedWriter struct {
	protectedClient

	writer Writer
}

// Features implements Writer.
func (w protectedWriter) Features() Features { return w.writer.Features() }

// Observe implements Writer.
func (w protectedWriter) Observe(ctx context.Context, t Target) (Observed, error) {
	return w.writer.Observe(ctx, t)
}

// Create implements Writer. It is refused.
func (protectedWriter) Create(context.Context, Target, []byte, string) (Written, error) {
	return Written{}, ErrNoRemoteChanges
}

// Update implements Writer. It is refused.
func (protectedWriter) Update(context.Context, Target, Observed, []byte) (Written, error) {
	return Written{}, ErrNoRemoteChanges
}

// Mark implements Writer. It is refused.
func (protectedWriter) Mark(context.Context, Target, Observed, string) error {
	return ErrNoRemoteChanges
}

// Delete implements Writer. It is refused.
func (protectedWriter) Delete(context.Context, Target, Observed) error { return ErrNoRemoteChanges }

// A protectedGenerator refuses what changes something. Functions of this package find its other interfaces by optional.
type protectedGenerator struct {
	generator Generator
	readOnly  bool
}

// Generate implements Generator. It is refused, unless the Kind is ReadOnly.
func (g protectedGenerator) Generate(ctx context.Context) (Generated, error) {
	if g.readOnly {
		return g.generator.Generate(ctx)
	}
	return Generated{}, ErrNoRemoteChanges
}

// A protectedCleaner is the Renewer and Cleaner of a protectedGenerator.
type protectedCleaner struct {
	protectedGenerator

	linger time.Duration
}

// Renew implements Renewer. It is refused.
func (protectedCleaner) Renew(context.Context, string) (Generated, error) {
	return Generated{}, ErrNoRemoteChanges
}

// Cleanup implements Cleaner. It is refused.
func (protectedCleaner) Cleanup(context.Context, string) error { return ErrNoRemoteChanges }

// Linger implements Cleaner.
func (c protectedCleaner) Linger() time.Duration { return c.linger }

// optional returns a Client or Generator as one of the optional interfaces.
func optional[I any](c any) (i I, ok bool) {
	switch p := c.(type) {
	case protectedWriter:
		return optional[I](p.protectedClient)
	case protectedClient:
		if i, ok = any(p.Client).(I); !ok {
			return i, false
		}
		if w, writes := any(i).(Writer); writes && !readsOnly(new(I)) {
			i, ok = any(protectedWriter{p, w}).(I)
		}
		return i, ok
	case protectedGenerator:
		if i, ok = any(p.generator).(I); !ok || readsOnly(new(I)) {
			return i, ok
		}
		i, ok = any(protectedCleaner{p, Linger(p.generator)}).(I)
		return i, ok
	}
	i, ok = c.(I)
	return i, ok
}

// readsOnly reports whether an optional interface has only methods that change nothing.
func readsOnly(i any) bool {
	switch i.(type) {
	case *Client, *Batcher, *Finder, *Checker, *Identifier, *io.Closer:
		return true
	}
	return false
}
