package provider

import (
	"context"
	"regexp"

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

// A Setting is a text, and the field of the spec or the annotation that sets it. Without a text it is not set.
type Setting struct{ Text, Field string }

// An Annotation of a ServiceAccount sets what a spec does not set.
type Annotation struct {
	// Name is that of the annotation.
	Name string
	// Account is the ServiceAccount, and Field the field of the spec that names it.
	Account v1alpha1.ServiceAccountSelector
	Field   string
	// Form matches each valid text. Anyone who can write the ServiceAccount chooses the text, and it becomes part of requests.
	Form *regexp.Regexp
	// Value describes a valid text, such as "the ID of the tenant".
	Value string
}

// Or returns the setting if it is set, otherwise that of an annotation. Errors are of class Invalid, and name the ServiceAccount.
func (s Setting) Or(annotations map[string]string, a Annotation) (Setting, error) {
	if s.Text != "" {
		return s, nil
	}
	account := a.Account.Name
	if a.Account.Namespace != "" {
		account = a.Account.Namespace + "/" + account
	}
	found := Setting{annotations[a.Name], a.Field + ": annotation " + a.Name}
	switch {
	case found.Text == "":
		return s, NewError(Invalid, "%s: is not set, and ServiceAccount %s has no annotation %s; set one of them to %s", s.Field, account, a.Name, a.Value)
	case !a.Form.MatchString(found.Text):
		return s, NewError(Invalid, "%s of ServiceAccount %s is not valid; set it to %s", found.Field, account, a.Value)
	}
	return found, nil
}

// An OwnAccount is a Credentials that creates tokens of the operator's own ServiceAccount.
type OwnAccount interface {
	// OwnToken returns a new token of the operator's own ServiceAccount, for the audience that a cluster store names. It refuses a
	// namespaced store, an operator that does not allow its own identity, and an audience that the API server accepts: anyone who
	// received such a token could act as the operator.
	OwnToken(ctx context.Context, audience string) (string, error)
}

// OwnToken returns a token of the operator's own ServiceAccount, as OwnAccount describes it. The module needs the same permission as for
// ServiceAccountToken.
func OwnToken(ctx context.Context, creds Credentials, audience string) (string, error) {
	if own, ok := creds.(OwnAccount); ok {
		return own.OwnToken(ctx, audience)
	}
	return "", NewError(Unavailable, "auth: there is no token of the operator's own ServiceAccount")
}
