// Package strict provides the client with which dsctl writes. The API server drops a field that a CRD does not have, unless
// the client asks for strict validation. Without dryRun or suspend an object would do what the field was to hold back.
package strict

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// New returns a client of which each write is refused as a whole if the API server does not know a field of it.
func New(cfg *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(cfg, options)
	if err != nil {
		return nil, err
	}
	return explaining{client.WithFieldValidation(c, metav1.FieldValidationStrict)}, nil
}

// explaining adds to an error about an unknown field what the user can do.
type explaining struct{ client.Client }

// Create implements client.Writer.
func (c explaining) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return explain(c.Client.Create(ctx, o, opts...))
}

// Update implements client.Writer.
func (c explaining) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return explain(c.Client.Update(ctx, o, opts...))
}

// Patch implements client.Writer.
func (c explaining) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return explain(c.Client.Patch(ctx, o, p, opts...))
}

// unknown matches the message of the API server about a field that it does not know. The rest of the message can hold the
// whole object, with data.
var unknown = regexp.MustCompile(`unknown field "([^"\\]+)"`)

// unknownError is the error of a write that was refused because of a field.
type unknownError struct {
	field string
	error
}

// Error implements error.
func (e unknownError) Error() string {
	return fmt.Sprintf("nothing was written, because the CRD of the cluster does not have the field %s: upgrade the CRDs, or use the dsctl of their version", e.field)
}

// Unwrap returns the error of the API server.
func (e unknownError) Unwrap() error { return e.error }

func explain(err error) error {
	if err == nil {
		return nil
	}
	if found := unknown.FindStringSubmatch(err.Error()); found != nil {
		return unknownError{found[1], err}
	}
	return err
}

// IsUnknown reports whether a write was refused because the API server does not know a field. path is as in spec.dryRun.
func IsUnknown(err error, path string) bool {
	var e unknownError
	return errors.As(err, &e) && e.field == path
}
