package provider

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Writer is a Client that writes secrets. It never decides what to write: it gets the observed and the desired
// state, and returns ErrChanged if the secret has changed since it was observed. It gets one
// write to a key at a time. Other Clients can write the same secret meanwhile.
//
// The mark of a secret names the object that created it. It is stored with the secret, but not in the value: in a
// tag, a label or custom metadata that only this project reads. A secret is deleted for an object only if its mark
// names that object. So Create must write secret and mark in one call, or write the mark after the call that proved
// that no other writer created the secret.
type Writer interface {
	Client

	// Features are the guarantees of the Writer. They do not change.
	Features() Features

	// Observe reads the current state for a write. It never uses a cache, and reads in the most consistent way that
	// the service has. It returns NotFound if the secret does not exist. If t.Metadata is not valid, it returns an
	// error of class Invalid that names the field, before any call.
	Observe(ctx context.Context, t Target) (Observed, error)

	// Create creates a secret. It returns Conflict if the secret exists.
	Create(ctx context.Context, t Target, data []byte, mark string) (Written, error)

	// Update writes the value data and the metadata, each only if it differs from seen; nil data keeps the value. It
	// returns ErrChanged if the secret has changed since it was seen, and NotFound if it does not exist any more. It never
	// changes the mark.
	Update(ctx context.Context, t Target, seen Observed, data []byte) (Written, error)

	// Mark replaces the mark of a secret, for an object that takes it over. It returns ErrChanged if the secret or its
	// mark has changed since it was seen, and NotFound if it does not exist any more; it ignores Token. It creates no
	// version, and keeps the ID. It is called only if Create is Exclusive.
	Mark(ctx context.Context, t Target, seen Observed, mark string) error

	// Delete deletes a secret. It returns ErrChanged if the secret has changed since it was seen, and nil or NotFound if it
	// does not exist.
	Delete(ctx context.Context, t Target, seen Observed) error
}

// Features are guarantees of a Writer that some policies need.
type Features struct {
	// Exclusive: Create never overwrites a secret that another writer creates at the same time, and marks its own.
	// Without it no secret counts as created by this project, so none is ever deleted.
	Exclusive bool
	// Guarded: Update never loses a change that another writer makes at the same time. Without it single properties
	// cannot be written, because that writes all other properties again.
	Guarded bool
	// Serial: the service refuses writes that overlap, also to different secrets, so the Client gets one at a time.
	Serial bool
}

// ErrChanged is the error of a write to a secret that is not as it was seen. Its class is Conflict. Users read it with the key.
var ErrChanged error = NewError(Conflict, "another client changed it meanwhile; retrying")

// A Target is a remote secret as a spec describes it.
type Target struct {
	// Key is the provider's key; never empty.
	Key string
	// Metadata is the JSON object that the spec has for the secret, in the provider's terms; nil for none.
	Metadata []byte
}

// Observed is the state of a secret when it was read.
type Observed struct {
	// Data are the raw bytes; nil if the secret has no value yet.
	Data []byte
	// Version is the provider's version of the value; empty if there is no value.
	Version string
	// ID distinguishes the secret from a later one with the same name, even if both have the same versions: for
	// example the time of its creation. If a service has no such ID, it is that of the value, such as the time at
	// which it was written.
	ID string
	// Mark names the object that created the secret; empty if no object of this project did.
	Mark string
	// Drift names the settings that differ from the metadata of the Target.
	Drift []string
	// Token is data that only the Writer uses: what it needs in Update and Delete in addition to Version.
	Token string
}

// Unchanged returns ErrChanged if the value, the mark or the secret itself is not the one that was seen.
func (o Observed) Unchanged(seen Observed) error {
	if o.Version != seen.Version || o.ID != seen.ID || o.Mark != seen.Mark {
		return ErrChanged
	}
	return nil
}

// Written is the result of a write.
type Written struct {
	// Version is the current version of the value.
	Version string
	// ID is the Observed.ID after the write.
	ID string
	// Lost is a value that another writer has written in between and that this write has overwritten, for services
	// that report this only afterwards. The caller must restore those parts of it that it does not own.
	Lost []byte
}

// Features returns the guarantees of the Writer, or errors.ErrUnsupported if the Client is none.
func (l *Link) Features() (Features, error) {
	w, err := as[Writer](l, "write")
	if err != nil {
		return Features{}, err
	}
	return w.Features(), nil
}

// Observe reads the current state for a write. Its data count for the tenant until ctx ends.
func (l *Link) Observe(ctx context.Context, t Target) (seen Observed, err error) {
	w, err := as[Writer](l, "write")
	if err != nil {
		return seen, err
	}
	seen, err = call(ctx, l, "Observe", "reading", nil, func(ctx context.Context) (Observed, error) { return w.Observe(ctx, t) })
	hold(ctx, l, len(seen.Data))
	return seen, err
}

// Create creates a secret that does not exist.
func (l *Link) Create(ctx context.Context, t Target, data []byte, mark string) (Written, error) {
	return write(ctx, l, t.Key, "Create", "creating", func(ctx context.Context, w Writer) (Written, error) { return w.Create(ctx, t, data, mark) })
}

// Update changes a secret.
func (l *Link) Update(ctx context.Context, t Target, seen Observed, data []byte) (Written, error) {
	return write(ctx, l, t.Key, "Update", "updating", func(ctx context.Context, w Writer) (Written, error) { return w.Update(ctx, t, seen, data) })
}

// Mark replaces the mark of a secret.
func (l *Link) Mark(ctx context.Context, t Target, seen Observed, mark string) error {
	_, err := write(ctx, l, t.Key, "Mark", "marking", func(ctx context.Context, w Writer) (Written, error) { return Written{}, w.Mark(ctx, t, seen, mark) })
	return err
}

// Delete deletes a secret. It is no error if there is none.
func (l *Link) Delete(ctx context.Context, t Target, seen Observed) error {
	_, err := write(ctx, l, t.Key, "Delete", "deleting", func(ctx context.Context, w Writer) (Written, error) {
		err := w.Delete(ctx, t, seen)
		if IsNotFound(err) {
			err = nil
		}
		return Written{}, err
	})
	return err
}

// write makes a write to a secret when no other one is in progress. A secret that exists no more is a Conflict.
func write(ctx context.Context, l *Link, key, name, doing string, f func(context.Context, Writer) (Written, error)) (Written, error) {
	w, err := as[Writer](l, "write")
	if err != nil {
		return Written{}, err
	}
	written, err := call(ctx, l, name, doing, l.refused, func(ctx context.Context) (Written, error) {
		only := key
		if w.Features().Serial {
			only = ""
		}
		unlock, err := l.writing.Lock(ctx, only)
		if err != nil {
			return Written{}, err
		}
		defer unlock()
		written, err := f(ctx, w)
		switch {
		case errors.Is(err, ErrChanged):
			err = NewError(Conflict, "%s: %s", Quoted(key), ErrChanged)
		case IsNotFound(err):
			err = NewError(Conflict, "%s: another client deleted it meanwhile; retrying", Quoted(key))
		}
		return written, err
	})
	hold(ctx, l, len(written.Lost))
	return written, err
}
