package provider

import (
	"context"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A GeneratorObject is an Object of a generator Kind: it embeds GeneratorSpec and StoreStatus.
type GeneratorObject interface {
	Object

	// GeneratorSpec returns the embedded spec; changes to it show in the object.
	GeneratorSpec() *v1alpha1.GeneratorSpec
}

// A ClusterGeneratorObject is a GeneratorObject of a cluster Kind.
type ClusterGeneratorObject interface {
	GeneratorObject
	ClusterObject
}

// A GeneratorConnector makes the Generator of an object of one generator Kind. It has the duties of
// a Connector.
type GeneratorConnector[S GeneratorObject] func(ctx context.Context, s S, creds Credentials) (Generator, error)

// A Generator makes values, and must be safe for concurrent use. It keeps nothing of the values: they and
// State are kept for it, once for each object that uses it.
type Generator interface {
	// Generate makes new values. Each call makes others, where the service can; it is called when there are
	// none yet, and when those in place are to be replaced.
	Generate(ctx context.Context) (Generated, error)
}

// Generated are values that a Generator has made.
type Generated struct {
	// Values by key; keys are those of a Secret.
	Values map[string][]byte
	// State is what Renew and Cleanup have to know, empty if there is nothing to renew or clean up. It is
	// kept where metadata is, so it must hold no secret, and at most 4 KiB.
	State string
	// Expires is when the values cease to work; zero if they do not.
	Expires time.Time
}

// A Renewer is a Generator whose values can be made to live longer.
type Renewer interface {
	Generator

	// Renew prolongs the life of values and returns their new State and Expires; Values are not looked at.
	// It returns ErrNotRenewable if that is not possible, or not by much any more: they are then replaced.
	Renew(ctx context.Context, state string) (Generated, error)
}

// A Cleaner is a Generator that has to revoke what it made.
type Cleaner interface {
	Generator

	// Cleanup revokes values. What is revoked or has expired already is no error.
	Cleanup(ctx context.Context, state string) error

	// Linger is how long values that were replaced stay valid after nobody is known to hold them.
	Linger() time.Duration
}

// ErrNotRenewable says that values cannot be made to live longer, so that they are to be replaced.
var ErrNotRenewable error = NewError(Invalid, "the values cannot be renewed")

// MaxState is the size in bytes that Generated.State may have.
const MaxState = 4 << 10

// Generate makes new values. kind is a label of the metrics.
func Generate(ctx context.Context, kind string, g Generator) (Generated, error) {
	made, err := call(kind, "Generate", "generating", func() (Generated, error) { return g.Generate(ctx) })
	if err == nil && len(made.State) > MaxState {
		err = NewError(Unavailable, "the provider's code returned a state of %d bytes, more than %d", len(made.State), MaxState)
	}
	if err == nil && len(made.Values) == 0 {
		err = NewError(Unavailable, "the provider's code returned no values")
	}
	return made, err
}

// Renew prolongs the life of values; ErrNotRenewable if the Generator is no Renewer.
func Renew(ctx context.Context, kind string, g Generator, state string) (Generated, error) {
	r, ok := g.(Renewer)
	if !ok {
		return Generated{}, ErrNotRenewable
	}
	return call(kind, "Renew", "renewing", func() (Generated, error) { return r.Renew(ctx, state) })
}

// Cleanup revokes values; nothing if the Generator is no Cleaner.
func Cleanup(ctx context.Context, kind string, g Generator, state string) error {
	c, ok := g.(Cleaner)
	if !ok {
		return nil
	}
	_, err := call(kind, "Cleanup", "cleaning up", func() (struct{}, error) { return struct{}{}, c.Cleanup(ctx, state) })
	return err
}

// Linger returns how long values that were replaced stay valid after nobody is known to hold them.
func Linger(g Generator) time.Duration {
	if c, ok := g.(Cleaner); ok {
		return c.Linger()
	}
	return 0
}
