package provider

import (
	"context"
	stderrors "errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Writer is a Client that writes secrets. It never decides what to write: it is told what was seen
// and what shall be, and refuses where the secret is no longer as it was seen.
//
// The mark of a secret says which object created it. It lies beside the value, where only this project
// looks (a tag, a label, custom metadata). Only a secret whose mark names an object is ever deleted for
// that object, so Create writes secret and mark in one call, or the mark after the call that proved
// that nobody else created it.
type Writer interface {
	Client

	// Features are what the Writer can promise. They do not change.
	Features() Features

	// Observe reads what a write rests on: never from a cache, and where the service is eventually
	// consistent, in its most consistent way. It returns NotFound if the secret does not exist. Metadata
	// that cannot be used is an error of class Invalid that names its field, before any call.
	Observe(ctx context.Context, t Target) (Observed, error)

	// Create makes a secret that does not exist; Conflict if it does.
	Create(ctx context.Context, t Target, data []byte, mark string) (Written, error)

	// Update makes the value data and brings the metadata in line, each only if it differs from what was
	// seen; nil data leaves the value alone. It is Conflict if the secret is not as it was seen, and
	// changes no mark.
	Update(ctx context.Context, t Target, seen Observed, data []byte) (Written, error)

	// Mark gives a secret another mark, of the object that takes it over. It is Conflict if the secret is not as it was
	// seen, its mark included; Token does not count. It makes no version, and the ID stays. It is called only where
	// Create is Exclusive.
	Mark(ctx context.Context, t Target, seen Observed, mark string) error

	// Delete removes a secret; Conflict if it is not as it was seen. One that is gone is no error.
	Delete(ctx context.Context, t Target, seen Observed) error
}

// Features are promises of a Writer that some policies rest on.
type Features struct {
	// Exclusive: Create never overwrites a secret that somebody else makes at the same time, and marks
	// what it makes. Without it nothing counts as created, so nothing is ever deleted.
	Exclusive bool
	// Guarded: Update never loses what somebody else writes at the same time. Without it no property is
	// written, since that means to write the others again.
	Guarded bool
}

// A Target is a remote secret as a spec describes it.
type Target struct {
	// Key as the provider spells it; never empty.
	Key string
	// Metadata is the JSON object that the spec gives for the secret, in the provider's terms; nil for
	// none.
	Metadata []byte
}

// Observed is a secret as it was seen.
type Observed struct {
	// Data are the raw bytes; nil if the secret has no value yet.
	Data []byte
	// Version of the value, in the provider's terms; empty if there is no value.
	Version string
	// ID tells this very secret from another of the same name that somebody made after it, even if both
	// have the same versions: for example the time of its creation. Where a service has no such thing it
	// is one of the value, such as the time at which it was written.
	ID string
	// Mark names the object that created the secret; empty if none of this project did.
	Mark string
	// Drift names the settings that differ from the Target's metadata.
	Drift []string
	// Token is for the Writer alone: what it needs in Update and Delete besides Version.
	Token string
}

// Written is what a write came to.
type Written struct {
	// Version of the value that is current now.
	Version string
	// ID is that of Observed, as it is now.
	ID string
	// Lost is a value that somebody else wrote in between and that the write covered, for services that
	// tell only afterwards. The caller has to bring back of it what is not its own.
	Lost []byte
}

// AsWriter returns the Writer that a client is, or errors.ErrUnsupported.
func AsWriter(c Client) (Writer, error) {
	w, ok := c.(Writer)
	if !ok {
		return nil, errors.Wrap(stderrors.ErrUnsupported, "write")
	}
	return w, nil
}

// Observe reads what a write rests on. kind is a label of the metrics.
func Observe(ctx context.Context, kind string, w Writer, t Target) (Observed, error) {
	return call(kind, "Observe", "reading", func() (Observed, error) { return w.Observe(ctx, t) })
}

// Create makes a secret that does not exist.
func Create(ctx context.Context, kind string, w Writer, t Target, data []byte, mark string) (Written, error) {
	return call(kind, "Create", "creating", func() (Written, error) { return w.Create(ctx, t, data, mark) })
}

// Update changes a secret.
func Update(ctx context.Context, kind string, w Writer, t Target, seen Observed, data []byte) (Written, error) {
	return call(kind, "Update", "updating", func() (Written, error) { return w.Update(ctx, t, seen, data) })
}

// Mark gives a secret another mark.
func Mark(ctx context.Context, kind string, w Writer, t Target, seen Observed, mark string) error {
	_, err := call(kind, "Mark", "marking", func() (struct{}, error) { return struct{}{}, w.Mark(ctx, t, seen, mark) })
	return err
}

// Delete removes a secret.
func Delete(ctx context.Context, kind string, w Writer, t Target, seen Observed) error {
	_, err := call(kind, "Delete", "deleting", func() (struct{}, error) { return struct{}{}, w.Delete(ctx, t, seen) })
	return err
}

func call[T any](kind, name, doing string, f func() (T, error)) (T, error) {
	done := observe(kind, name)
	v, err := guard(doing, f)
	done(err)
	return v, err
}
