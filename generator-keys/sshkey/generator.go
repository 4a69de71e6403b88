// Package sshkey generates key pairs for the generator Kinds SSHKey and ClusterSSHKey.
package sshkey

import (
	"bytes"
	"context"
	"encoding/pem"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-keys/keypair"
)

// Kinds returns the generator Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(Connect[*v1alpha1.SSHKey]).ReadOnly(),
		provider.ClusterGeneratorKindOf(Connect[*v1alpha1.ClusterSSHKey]).ReadOnly(),
	}
}

// An Object is one of the Kinds of this package.
type Object interface {
	provider.GeneratorObject

	// Settings returns what to generate.
	Settings() *v1alpha1.SSHKeySettings
}

// maxComment is the maximum length of a comment, in bytes.
const maxComment = 4 * 255

// Connect returns the Generator of an object. Its errors are of class Invalid and name the field to fix.
func Connect[S Object](_ context.Context, s S, _ provider.Credentials) (provider.Generator, error) {
	settings := s.Settings()
	keys, err := keypair.NewMaker(settings.KeySettings, v1alpha1.KeyTypeEd25519)
	if err != nil {
		return nil, err
	}
	if len(settings.Comment) > maxComment || strings.ContainsFunc(settings.Comment, unicode.IsControl) {
		return nil, provider.NewError(provider.Invalid, "spec.comment: must be one short line; remove line breaks and other control characters")
	}
	return &Generator{keys: keys, comment: settings.Comment}, nil
}

// A Generator generates the key pairs of one object. It makes no requests, and has no state.
type Generator struct {
	keys    keypair.Maker
	comment string
}

// Generate generates a key pair. The private key is in the format of OpenSSH. The public key is a line of the file
// authorized_keys.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	key, err := g.keys.Make(ctx)
	if err != nil {
		return provider.Generated{}, err
	}
	block, err := ssh.MarshalPrivateKey(key, g.comment)
	if err != nil {
		return provider.Generated{}, provider.NewError(provider.Unavailable, "the key cannot be written in the format of OpenSSH")
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return provider.Generated{}, provider.NewError(provider.Unavailable, "the public key cannot be written in the format of OpenSSH")
	}
	line := bytes.TrimSuffix(ssh.MarshalAuthorizedKey(public), []byte("\n"))
	if g.comment != "" {
		line = append(append(line, ' '), g.comment...)
	}
	return provider.Generated{Values: map[string][]byte{
		"privateKey": pem.EncodeToMemory(block),
		"publicKey":  append(line, '\n'),
	}}, nil
}
