package azureconfig

import (
	"context"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

// These annotations of a ServiceAccount name its client, by
// https://azure.github.io/azure-workload-identity/docs/topics/service-account-labels-and-annotations.html.
const (
	clientAnnotation = "azure.workload.identity/client-id"
	tenantAnnotation = "azure.workload.identity/tenant-id"
)

// Only clients and tenants that a spec does not set are read from a ServiceAccount.
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch,roleName=tokens

// annotated returns the spec with the client and the tenant that the annotations of the ServiceAccount in auth have, as far as the spec
// does not set them. It does not change spec.
func annotated(ctx context.Context, spec *v1alpha1.AzureLogin, creds provider.Credentials) (*v1alpha1.AzureLogin, provider.Setting, error) {
	tenant := provider.Setting{Text: spec.TenantID, Field: tenantField}
	if spec.Auth.ServiceAccountRef == nil || (spec.Auth.ServiceAccountRef.ClientID != "" && tenant.Text != "") {
		return spec, tenant, nil
	}
	spec = spec.DeepCopy()
	account := spec.Auth.ServiceAccountRef
	annotations, err := provider.AnnotationsOf(ctx, creds, account.ServiceAccountSelector)
	if err != nil {
		return nil, tenant, provider.Field(accountField, err)
	}
	client, err := provider.Setting{Text: account.ClientID, Field: accountField + ".clientID"}.Or(annotations, provider.Annotation{
		Name: clientAnnotation, Account: account.ServiceAccountSelector, Field: accountField, Form: clientText, Value: "the ID of the application or managed identity",
	})
	if err != nil {
		return nil, tenant, err
	}
	tenant, err = tenant.Or(annotations, provider.Annotation{
		Name: tenantAnnotation, Account: account.ServiceAccountSelector, Field: accountField, Form: tenantText, Value: "the ID of the tenant",
	})
	if err != nil {
		return nil, tenant, err
	}
	account.ClientID, spec.TenantID = client.Text, tenant.Text
	return spec, tenant, nil
}
