package target

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrNamespaceTerminating means that nothing can be created in the namespace any more. The caller stops without
// reporting an error.
var ErrNamespaceTerminating = errors.New("the namespace is being deleted")

// ForbiddenError means that the API server refuses the write because of a quota, a policy or a missing permission.
type ForbiddenError struct{ Message string }

// Error returns the message.
func (e *ForbiddenError) Error() string { return e.Message }

// InvalidError means that no write can succeed until a user changes the spec or the Secret.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &InvalidError{Message: fmt.Sprintf(format, args...)}
}

// Classify turns an API server error about a Secret into an error that is safe to show: a *ForbiddenError, an
// *InvalidError or ErrNamespaceTerminating. AlreadyExists, Conflict and NotFound are returned unchanged: they mean that
// the Secret has changed, and the caller must read it again.
func Classify(err error) error {
	switch {
	case err == nil, kerrors.IsAlreadyExists(err), kerrors.IsConflict(err), kerrors.IsNotFound(err):
		return err
	case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ErrNamespaceTerminating
	case kerrors.IsForbidden(err) && ofQuota(err.Error()):
		return &ForbiddenError{Message: "a ResourceQuota of the namespace allows no more Secrets; raise it"}
	case kerrors.IsForbidden(err):
		return &ForbiddenError{Message: "the operator has no permission to write Secrets in this namespace, or an admission policy rejects this one; check its RBAC and the policies"}
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err), kerrors.IsRequestEntityTooLargeError(err):
		return invalid("the API server rejects the Secret: %s", rejected(err))
	}
	var answer kerrors.APIStatus
	if errors.As(err, &answer) {
		// An admission webhook may quote the Secret in its message, with any code.
		return errors.Errorf("the API server answers code %d (%s)", answer.Status().Code, answer.Status().Reason)
	}
	return err
}

// rejected returns the fields that the API server rejects. Its messages are left out, because they may quote values.
func rejected(err error) string {
	var status kerrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return string(kerrors.ReasonForError(err))
	}
	var causes []string
	for _, c := range status.Status().Details.Causes {
		causes = append(causes, c.Field+" ("+string(c.Type)+")")
	}
	return strings.Join(causes, ", ")
}
