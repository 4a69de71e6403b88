// Package basicauth generates logins for HTTP basic authentication, for the generator Kinds BasicAuth and
// ClusterBasicAuth.
package basicauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"regexp"

	"golang.org/x/crypto/bcrypt"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

// Kinds returns the generator Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(Connect[*v1alpha1.BasicAuth]).ReadOnly(),
		provider.ClusterGeneratorKindOf(Connect[*v1alpha1.ClusterBasicAuth]).ReadOnly(),
	}
}

// An Object is one of the Kinds of this package.
type Object interface {
	provider.GeneratorObject

	// Settings returns what to generate.
	Settings() *v1alpha1.BasicAuthSettings
}

const (
	defaultLength = 26 // 130 bits of entropy, because a character has five
	minLength     = 13
	maxLength     = 72 // bcrypt ignores or refuses more
	defaultCost   = 10
	maxCost       = 12
)

// username matches names that a file of htpasswd can have: a colon ends the name, and # begins a comment.
// Apache reads lines of 255 bytes.
var username = regexp.MustCompile(`^[!-9;-~]{1,128}$`)

// Connect returns the Generator of an object. Its errors are of class Invalid and name the field to fix.
func Connect[S Object](_ context.Context, s S, _ provider.Credentials) (provider.Generator, error) {
	settings := s.Settings()
	g := &Generator{
		username: settings.Username,
		length:   int(cmp.Or(settings.Length, defaultLength)),
		cost:     int(cmp.Or(settings.Cost, defaultCost)),
	}
	switch {
	case !username.MatchString(g.username) || g.username[0] == '#':
		return nil, provider.NewError(provider.Invalid, "spec.username: %.80q is not valid; use up to 128 printable ASCII characters without spaces and colons, and another first character than #", g.username)
	case g.length < minLength || g.length > maxLength:
		return nil, provider.NewError(provider.Invalid, "spec.length: is %d; set %d to %d", g.length, minLength, maxLength)
	case g.cost < defaultCost || g.cost > maxCost:
		return nil, provider.NewError(provider.Invalid, "spec.cost: is %d; set %d to %d", g.cost, defaultCost, maxCost)
	}
	return g, nil
}

// A Generator generates the logins of one object. It makes no requests, and has no state.
type Generator struct {
	username     string
	length, cost int
}

// Generate generates a password, and the line of a file of htpasswd with its bcrypt hash.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	if err := ctx.Err(); err != nil {
		return provider.Generated{}, provider.Safe(err)
	}
	var password []byte
	for len(password) < g.length {
		password = append(password, rand.Text()...)
	}
	password = password[:g.length]
	end, err := provider.Work(ctx) // It takes a processor for a quarter of a second, and one tenant can ask for many.
	if err != nil {
		return provider.Generated{}, provider.Safe(err)
	}
	defer end()
	hash, err := bcrypt.GenerateFromPassword(password, g.cost)
	if err != nil {
		return provider.Generated{}, provider.NewError(provider.Unavailable, "the hash of the password cannot be computed; retrying")
	}
	return provider.Generated{Values: map[string][]byte{
		"username": []byte(g.username),
		"password": password,
		"auth":     append([]byte(g.username+":"), hash...),
	}}, nil
}
