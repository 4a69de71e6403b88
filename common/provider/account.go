package provider

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// A ServiceAccountReader is a Credentials that reads ServiceAccounts, within the same limits.
type ServiceAccountReader interface {
	// ServiceAccountAnnotations returns the annotations of a ServiceAccount; nil if it has none. The caller must not change them. From
	// then on the operator watches the ServiceAccount, and connects again when it changes. Errors of class Invalid name the reference.
	ServiceAccountAnnotations(ctx context.Context, sel v1alpha1.ServiceAccountSelector) (map[string]string, error)
}

// AnnotationsOf returns the annotations of a ServiceAccount, as ServiceAccountReader describes it. A module that calls it needs the
// permissions get, list and watch for serviceaccounts, which its RBAC marker has the roleName tokens for.
func AnnotationsOf(ctx context.Context, creds Credentials, sel v1alpha1.ServiceAccountSelector) (map[string]string, error) {
	if r, ok := creds.(ServiceAccountReader); ok {
		return r.ServiceAccountAnnotations(ctx, sel)
	}
	return nil, NewError(Unavailable, "auth: the annotations of ServiceAccount %s cannot be read", sel.Name)
}
