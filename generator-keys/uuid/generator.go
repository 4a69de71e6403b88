// Package uuid generates UUIDs for the generator Kinds UUID and ClusterUUID.
package uuid

import (
	"context"

	"github.com/google/uuid"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

// Kinds returns the generator Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(Connect[*v1alpha1.UUID]).ReadOnly(),
		provider.ClusterGeneratorKindOf(Connect[*v1alpha1.ClusterUUID]).ReadOnly(),
	}
}

// Connect returns the Generator of an object, which has no settings.
func Connect[S provider.GeneratorObject](context.Context, S, provider.Credentials) (provider.Generator, error) {
	return Generator{}, nil
}

// A Generator generates UUIDs. It makes no requests, and has no state.
type Generator struct{}

// Generate generates a random UUID, which is version 4 of RFC 9562.
func (Generator) Generate(ctx context.Context) (provider.Generated, error) {
	if err := ctx.Err(); err != nil {
		return provider.Generated{}, provider.Safe(err)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return provider.Generated{}, provider.NewError(provider.Unavailable, "the system returned no random numbers; retrying")
	}
	return provider.Generated{Values: map[string][]byte{"uuid": []byte(id.String())}}, nil
}
