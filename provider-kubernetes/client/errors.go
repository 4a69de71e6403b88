package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// explain classifies an error. what is what was done, and grant is what to do if the identity has no permission.
func (c *Client) explain(err error, what, grant string) *provider.Error {
	fault := provider.CertificateFaultOf(err)
	switch {
	case fault != "":
		return provider.NewError(provider.Unavailable, "%s: %s: the server's certificate %s; correct the authorities", what, c.server, fault)
	case kerrors.IsUnauthorized(err):
		return provider.NewError(provider.Denied, "%s: %s: the API server does not accept the login; renew the token or certificate", what, c.login)
	case kerrors.IsForbidden(err):
		return provider.NewError(provider.Denied, "%s: access denied; %s", what, grant)
	case kerrors.IsTooManyRequests(err):
		e := provider.NewError(provider.Throttled, "%s: the API server throttles the calls; retrying with back-off", what)
		if seconds, ok := kerrors.SuggestsClientDelay(err); ok {
			e.RetryAfter = time.Duration(seconds) * time.Second
		}
		return e
	case kerrors.IsConflict(err), kerrors.IsAlreadyExists(err):
		return provider.NewError(provider.Conflict, "%s: the Secret has changed, or exists already", what)
	case isForeign(err):
		err = errForeign
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err), kerrors.IsRequestEntityTooLargeError(err):
		return provider.NewError(provider.Invalid, "%s: the API server refuses it%s", what, fieldsOf(err))
	case kerrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return provider.NewError(provider.Unavailable, "%s: the API server returned %.64q", what, kerrors.ReasonForError(err))
	}
	var own *provider.Error
	if errors.As(err, &own) && strings.HasPrefix(own.Message, "spec.") {
		return own
	}
	e := *provider.Safe(err)
	e.Message = what + ": " + c.server + ": " + e.Message
	return &e
}

// fieldsOf names the fields that the API server refuses. Its messages can contain values.
func fieldsOf(err error) (fields string) {
	var s kerrors.APIStatus
	if errors.As(err, &s) && s.Status().Details != nil {
		for _, c := range s.Status().Details.Causes[:min(8, len(s.Status().Details.Causes))] {
			fields += fmt.Sprintf("; correct %.64q", c.Field)
		}
	}
	return fields
}

// missing classifies the failure of a read. NotFound needs the API server's own answer about this Secret, and a namespace that
// exists, as far as the identity may know.
func (c *Client) missing(ctx context.Context, err error, resource, name string) error {
	what := fmt.Sprintf("%s %q", resource[:len(resource)-1], name)
	if isMissing(err, resource, name) {
		if err = c.checkNamespace(ctx); err == nil {
			return provider.NewError(provider.NotFound, "%s: does not exist in namespace %s", what, c.namespace)
		}
	}
	return c.explain(err, what, fmt.Sprintf("grant the identity get on %s in namespace %s", resource, c.namespace))
}

// checkNamespace returns an error if the namespace does not exist, or is being deleted, as far as the identity may know. An API server
// answers a list of such a namespace with an empty list.
func (c *Client) checkNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{}
	err := c.do(ctx, c.calls.Get().Resource("namespaces").Name(c.namespace), ns)
	switch {
	case err == nil && ns.DeletionTimestamp != nil:
		return provider.NewError(provider.Invalid, "spec.remoteNamespace: namespace %s is being deleted", c.namespace)
	case kerrors.IsForbidden(err) && !isForeign(err):
		return nil
	}
	return c.namespaceError(err)
}

// namespaceError explains that the namespace does not exist, and returns any other error as it is.
func (c *Client) namespaceError(err error) error {
	if isMissing(err, "namespaces", c.namespace) {
		return provider.NewError(provider.Invalid, "spec.remoteNamespace: namespace %s does not exist", c.namespace)
	}
	return err
}

// isMissing reports whether the API server itself, not a proxy, says that an object does not exist.
func isMissing(err error, resource, name string) bool {
	var s kerrors.APIStatus
	return kerrors.IsNotFound(err) && !isForeign(err) && errors.As(err, &s) && s.Status().Details != nil && s.Status().Details.Kind == resource && s.Status().Details.Name == name
}

// errForeign is the error of a response of another kind of server, such as a proxy.
var errForeign = provider.NewError(provider.Unavailable, "the response is not that of an API server")

// isForeign reports whether an error answer has not the format of an API server.
func isForeign(err error) bool {
	return kerrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
