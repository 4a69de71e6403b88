package provider

import (
	"context"
	"strings"
)

// An Identifier is a Client that knows where its secrets are stored, so that two stores for the same place are
// recognised even if their specs differ.
type Identifier interface {
	Client

	// Identity returns where the secrets of the Client are stored. It can call the service; the result is kept for
	// the life of the Client. It must not rely on data that a server returns about itself, because the owner of a
	// server can choose that. So it must include the address that the Client calls, unless that is the service's own
	// address.
	Identity(ctx context.Context) (Identity, error)
}

// An Identity is where secrets are stored. It is comparable: with the same key, Clients of equal Identities reach the
// same secret. Clients of different Identities might still use the same place.
type Identity struct {
	// Place is, for example, service, account and region. It contains no credentials, and is never empty.
	Place string
	// Prefix is what the Client adds before every key.
	Prefix string
}

// Overlaps reports whether a secret of i can be a secret of o, under any keys. It is false for the zero Identity.
func (i Identity) Overlaps(o Identity) bool {
	return i.Place != "" && i.Place == o.Place && (strings.HasPrefix(i.Prefix, o.Prefix) || strings.HasPrefix(o.Prefix, i.Prefix))
}

// Identify returns where the secrets of the client are stored, or errors.ErrUnsupported if it is not an Identifier. It
// has no metric, because it seldom needs a call.
func (l *Link) Identify(ctx context.Context) (Identity, error) {
	id, err := as[Identifier](l, "identity")
	if err != nil {
		return Identity{}, err
	}
	i, err := guard("identifying", func() (Identity, error) { return id.Identity(l.context(ctx)) })
	if err == nil && i.Place == "" {
		err = NewError(Unavailable, "the provider's code returned no location of the secrets")
	}
	if err != nil {
		return Identity{}, err
	}
	return i, nil
}
