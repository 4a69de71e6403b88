// Package password generates random passwords for the generator Kinds Password and ClusterPassword.
package password

import (
	"context"

	gopassword "github.com/sethvargo/go-password/password"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
)

// Kinds returns the generator Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(Connect).ReadOnly(),
		provider.ClusterGeneratorKindOf(ConnectCluster).ReadOnly(),
	}
}

// Connect returns the Generator of a Password. Its errors are of class Invalid and name the field to fix.
func Connect(_ context.Context, p *v1alpha1.Password, _ provider.Credentials) (provider.Generator, error) {
	return connect(&p.Spec)
}

// ConnectCluster returns the Generator of a ClusterPassword, as Connect does.
func ConnectCluster(_ context.Context, p *v1alpha1.ClusterPassword, _ provider.Credentials) (provider.Generator, error) {
	return connect(&p.Spec.PasswordSpec)
}

func connect(spec *v1alpha1.PasswordSpec) (provider.Generator, error) {
	s, err := settingsOf(spec)
	if err != nil {
		return nil, err
	}
	g, err := gopassword.NewGenerator(&gopassword.GeneratorInput{Symbols: s.symbols.of})
	if err != nil {
		return nil, provider.NewError(provider.Unavailable, "cannot create the generator of passwords")
	}
	return &Generator{settings: s, random: g}, nil
}

// A Generator generates passwords with the settings of one Password. It makes no requests, and has no state.
type Generator struct {
	settings settings
	random   *gopassword.Generator
}

var _ provider.Generator = &Generator{}

// Generate generates a password for each key.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	s := g.settings
	values := make(map[string][]byte, len(s.keys))
	for _, key := range s.keys {
		if err := ctx.Err(); err != nil {
			return provider.Generated{}, provider.Safe(err)
		}
		p, err := g.random.Generate(s.length, s.digits.n, s.symbols.n, s.noUpper, s.allowRepeat)
		if err != nil { // The settings are valid, so the system has failed to return random numbers.
			return provider.Generated{}, provider.NewError(provider.Unavailable, "the system returned no random numbers; retrying")
		}
		values[key] = s.encode([]byte(p))
	}
	return provider.Generated{Values: values}, nil
}
