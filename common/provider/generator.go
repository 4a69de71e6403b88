package provider

import (
	"context"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A GeneratorObject is an Object of a generator Kind: it embeds GeneratorSpec and StoreStatus.
type GeneratorObject interface {
	Object

	// GeneratorSpec returns the embedded spec, which the caller can change.
	GeneratorSpec() *v1alpha1.GeneratorSpec
}

// A ClusterGeneratorObject is a GeneratorObject of a cluster Kind.
type ClusterGeneratorObject interface {
	GeneratorObject
	ClusterObject
}

// A GeneratorConnector creates the Generator of an object of one generator Kind. It has the same duties as a
// Connector.
type GeneratorConnector[S GeneratorObject] func(ctx context.Context, s S, creds Credentials) (Generator, error)

// A Generator makes values. It must be safe for concurrent use, and must not store the values: its caller stores them
// and State, once for each object that uses it.
type Generator interface {
	// Generate makes new values, different ones in each call if the service supports that. It is called if there are
	// no values yet, and to replace existing ones.
	Generate(ctx context.Context) (Generated, error)
}

// Generated are the values of one call of Generate.
type Generated struct {
	// Values are the values by key. Each key must be a valid key of a Secret.
	Values map[string][]byte
	// State is the data that Renew and Cleanup need; empty if they are not needed. It is stored in metadata, so it
	// must not contain a secret, and has at most MaxState bytes.
	State string
	// Expires is when the values stop working; zero if they do not.
	Expires time.Time
	// Replace is when values that expire are replaced or renewed, or up to a tenth of the time until then earlier. Zero:
	// after two thirds of the time until Expires. It is ignored if it is not before Expires.
	Replace time.Time
}

// A Renewer is a Generator that can extend the validity of values.
type Renewer interface {
	Generator

	// Renew extends the validity of values, and returns their new State and Expires; Values are ignored. It returns
	// ErrNotRenewable if that is not possible, or not for a useful time. The values are then replaced.
	Renew(ctx context.Context, state string) (Generated, error)
}

// A Cleaner is a Generator whose values must be revoked.
type Cleaner interface {
	Generator

	// Cleanup revokes values. It returns nil for values that are already revoked or expired.
	Cleanup(ctx context.Context, state string) error

	// Linger is how long replaced values stay valid after the last known use.
	Linger() time.Duration
}

// ErrNotRenewable means that the validity of values cannot be extended, so that they must be replaced.
var ErrNotRenewable error = NewError(Invalid, "the values cannot be renewed")

// MaxState limits Generated.State, in bytes.
const MaxState = 4 << 10

// Generate makes new values. They count for the tenant until ctx ends.
func (l *Link) Generate(ctx context.Context) (Generated, error) {
	g, err := as[Generator](l, "generate")
	if err != nil {
		return Generated{}, err
	}
	made, err := call(ctx, l, "Generate", "generating", l.heldBack, func(ctx context.Context) (Generated, error) { return g.Generate(ctx) })
	if err == nil && len(made.State) > MaxState {
		err = NewError(Unavailable, "the provider's code returned a state of %d bytes, more than %d", len(made.State), MaxState)
	}
	if err == nil && len(made.Values) == 0 {
		err = NewError(Unavailable, "the provider's code returned no values")
	}
	size := 0
	for _, v := range made.Values {
		size += len(v)
	}
	hold(ctx, l, size)
	return made, err
}

// Renew extends the validity of values. It returns ErrNotRenewable if the Generator is not a Renewer.
func (l *Link) Renew(ctx context.Context, state string) (Generated, error) {
	r, ok := l.made.(Renewer)
	if !ok {
		return Generated{}, ErrNotRenewable
	}
	return call(ctx, l, "Renew", "renewing", l.refused, func(ctx context.Context) (Generated, error) { return r.Renew(ctx, state) })
}

// Cleanup revokes values. It does nothing if the Generator is not a Cleaner.
func (l *Link) Cleanup(ctx context.Context, state string) error {
	c, ok := l.made.(Cleaner)
	if !ok {
		return nil
	}
	_, err := call(ctx, l, "Cleanup", "cleaning up", l.refused, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.Cleanup(ctx, state) })
	return err
}

// Linger returns how long replaced values stay valid after the last known use; 0 if the Generator is not a Cleaner.
func (l *Link) Linger() time.Duration {
	if c, ok := l.made.(Cleaner); ok {
		return c.Linger()
	}
	return 0
}
