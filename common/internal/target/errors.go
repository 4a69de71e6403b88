package target

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrNamespaceTerminating means that nothing can be created any more; the work stops silently.
var ErrNamespaceTerminating = errors.New("the namespace is being deleted")

// ForbiddenError means that the API server refuses the write: a quota, a policy, a missing right.
type ForbiddenError struct{ Message string }

// Error returns the message.
func (e *ForbiddenError) Error() string { return e.Message }

// InvalidError means that no write can succeed until a person changes the spec or the Secret.
type InvalidError struct{ Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &InvalidError{Message: fmt.Sprintf(format, args...)}
}

// Classify turns an answer of the API server about a Secret into an error that may be shown: a *ForbiddenError, an
// *InvalidError or ErrNamespaceTerminating. AlreadyExists, Conflict and NotFound pass as they are: they mean that the world
// moved on, and the caller looks again.
func Classify(err error) error {
	switch {
	case err == nil, kerrors.IsAlreadyExists(err), kerrors.IsConflict(err), kerrors.IsNotFound(err):
		return err
	case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ErrNamespaceTerminating
	case kerrors.IsForbidden(err) && ofQuota(err.Error()):
		return &ForbiddenError{Message: "a ResourceQuota of the namespace allows no further Secret; raise it"}
	case kerrors.IsForbidden(err):
		return &ForbiddenError{Message: "the operator may not write Secrets in this namespace, or an admission policy refuses this one"}
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err), kerrors.IsRequestEntityTooLargeError(err):
		return invalid("the API server rejects the Secret: %s", rejected(err))
	}
	var answer kerrors.APIStatus
	if errors.As(err, &answer) {
		// An admission webhook is free to quote the Secret in its message, with any code.
		return errors.Errorf("the API server answers code %d (%s)", answer.Status().Code, answer.Status().Reason)
	}
	return err
}

// rejected names the fields that the API server rejects. Its messages stay out, since they may
// quote what was sent.
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
