package provider

import (
	"context"
	stderrors "errors"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// An Identifier is a Client that can tell where its secrets live, so that two stores are known to lead to one place
// however differently their specs say so.
type Identifier interface {
	Client

	// Identity returns where the secrets of the Client live. It may call the service, is kept for the life of the Client,
	// and must not rest on what a server says of itself: whoever runs a server of their own chooses that. So the address
	// that the Client calls is part of it, unless that is the service's own.
	Identity(ctx context.Context) (Identity, error)
}

// An Identity is where secrets live. It is comparable: under the same key, Clients of the same Identity reach the same
// secret. Clients whose Identities differ may still lead to one place.
type Identity struct {
	// Place is, for example, service, account and region. It says nothing of credentials, and is never empty.
	Place string
	// Prefix is what the Client puts before every key.
	Prefix string
}

// Overlaps reports whether a secret of i can be one of o, under whatever keys. It is false for the zero Identity.
func (i Identity) Overlaps(o Identity) bool {
	return i.Place != "" && i.Place == o.Place && (strings.HasPrefix(i.Prefix, o.Prefix) || strings.HasPrefix(o.Prefix, i.Prefix))
}

// Identify returns where the secrets of a client live; errors.ErrUnsupported if it cannot tell. It is in no metric, since it
// is seldom a call.
func Identify(ctx context.Context, c Client) (Identity, error) {
	id, ok := c.(Identifier)
	if !ok {
		return Identity{}, errors.Wrap(stderrors.ErrUnsupported, "identity")
	}
	i, err := guard("identifying", func() (Identity, error) { return id.Identity(ctx) })
	if err == nil && i.Place == "" {
		err = NewError(Unavailable, "the provider's code does not say where the secrets are")
	}
	if err != nil {
		return Identity{}, err
	}
	return i, nil
}
