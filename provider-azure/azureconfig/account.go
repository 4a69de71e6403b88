package azureconfig

import (
	"context"
	"regexp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

// These annotations of a ServiceAccount name its client, by
// https://azure.github.io/azure-workload-identity/docs/topics/service-account-labels-and-annotations.html.
const (
	clientAnnotation = "azure.workload.identity/client-id"
	tenantAnnotation = "azure.workload.identity/tenant-id"
)

// A setting is a text, and the field or the annotation that sets it.
type setting struct{ text, field string }

// Only clients and tenants that a spec does not set are read from a ServiceAccount.
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch,roleName=tokens

// annotated returns the spec with the client and the tenant that the annotations of the ServiceAccount in auth have, as far as the spec
// does not set them. It does not change spec.
func annotated(ctx context.Context, spec *v1alpha1.AzureLogin, creds provider.Credentials) (*v1alpha1.AzureLogin, setting, error) {
	tenant := setting{spec.TenantID, tenantField}
	if spec.Auth.ServiceAccountRef == nil || (spec.Auth.ServiceAccountRef.ClientID != "" && tenant.text != "") {
		return spec, tenant, nil
	}
	spec = spec.DeepCopy()
	account := spec.Auth.ServiceAccountRef
	annotations, err := provider.AnnotationsOf(ctx, creds, account.ServiceAccountSelector)
	if err != nil {
		return nil, tenant, provider.Field(accountField, err)
	}
	client, err := setting{account.ClientID, accountField + ".clientID"}.or(annotations, clientAnnotation, clientText, "the application or managed identity")
	if err != nil {
		return nil, tenant, err
	}
	if tenant, err = tenant.or(annotations, tenantAnnotation, tenantText, "the tenant"); err != nil {
		return nil, tenant, err
	}
	account.ClientID, spec.TenantID = client.text, tenant.text
	return spec, tenant, nil
}

// or returns the setting, or that of an annotation if the field is not set. An annotation must have the form, because it becomes part of
// requests. of has the ID that the setting is.
func (s setting) or(annotations map[string]string, name string, form *regexp.Regexp, of string) (setting, error) {
	if s.text != "" {
		return s, nil
	}
	found := setting{annotations[name], accountField + ": annotation " + name}
	switch {
	case found.text == "":
		return s, provider.NewError(provider.Invalid, "%s: is not set, and the ServiceAccount has no annotation %s; set one of them to the ID of %s", s.field, name, of)
	case !form.MatchString(found.text):
		return s, provider.NewError(provider.Invalid, "%s is not valid; set it to the ID of %s", found.field, of)
	}
	return found, nil
}
