package kit

import (
	"fmt"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A RefusedError is why an object cannot use a store or generator now. As an error it is safe to show, and has a class.
type RefusedError struct {
	// Verdict is that on the object.
	Verdict status.Verdict
	class   provider.Class
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Verdict.Message }

// Unwrap returns the error with its class.
func (e *RefusedError) Unwrap() error {
	return provider.NewError(e.class, "%s", e.Verdict.Message)
}

// Refused returns the error for an object that refers to a store by ref. r is why the store cannot be used.
func Refused(ref v1alpha1.StoreRef, h resolve.Handle, r *resolve.Refusal) *RefusedError {
	name := ref.Name
	if r.Why == resolve.Absent {
		name = strings.TrimPrefix(h.Key.String(), "/") // A store of a cluster Kind has no namespace.
	}
	message := fmt.Sprintf("%s %q %s", ref.Kind, name, r.Message)
	switch r.Why {
	case resolve.WrongKind, resolve.NotServed:
		return &RefusedError{status.Stalled(v1alpha1.ReasonInvalidSpec, message), provider.Invalid}
	case resolve.ClusterKind, resolve.NotAdmitted, resolve.ReadOnly:
		return &RefusedError{status.Stalled(v1alpha1.ReasonForbidden, message), provider.Denied}
	case resolve.Absent:
		return &RefusedError{status.Failed(v1alpha1.ReasonStoreNotFound, message), provider.NotFound}
	case resolve.NotReady, resolve.OtherClass:
	}
	return &RefusedError{status.Failed(v1alpha1.ReasonStoreNotReady, message), provider.Unavailable}
}
