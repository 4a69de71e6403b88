package provider

import "context"

// A Namer is a Client whose keys have several spellings, such as a name and an ARN, or a title and an ID. Without it, the key is
// the name.
type Namer interface {
	Client

	// Name returns the name of the remote secret that a key means, also if the secret does not exist. It can call the service. An
	// error means that the name is not known now: the caller must not take the secret for another one then.
	Name(ctx context.Context, key string) (Name, error)
}

// A Name identifies a remote secret at the Place of its Client's Identity, whatever key a user writes.
type Name struct {
	// Key is the one spelling of the key, with all that the Client adds to it. It is never empty.
	Key string
	// ID distinguishes secrets that can have the same Key. It is empty if the service has no such ID, or no such secret yet.
	ID string
}

// Is reports whether two names are of the same secret.
func (n Name) Is(o Name) bool {
	if n.ID != "" && o.ID != "" {
		return n.ID == o.ID
	}
	return n.Key == o.Key
}

// HasSpellings reports whether the client is a Namer.
func (l *Link) HasSpellings() bool { _, ok := l.made.(Namer); return ok }

// Name returns the name of a remote secret, or errors.ErrUnsupported if the client is no Namer.
func (l *Link) Name(ctx context.Context, key string) (Name, error) {
	n, err := as[Namer](l, "name")
	if err != nil {
		return Name{}, err
	}
	name, err := guard("naming", func() (Name, error) { return n.Name(l.context(ctx), key) })
	if err == nil && name.Key == "" {
		err = NewError(Unavailable, "the provider's code returned no name of the secret")
	}
	return name, err
}
