package awsconfig

import (
	"context"
	"regexp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// The fields of the ServiceAccounts that log in.
const (
	accountField = "spec.auth.serviceAccountRef"
	ownField     = "spec.auth.operatorServiceAccount"
)

// roleAnnotation of a ServiceAccount names its role, by https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html.
const roleAnnotation = "eks.amazonaws.com/role-arn"

// roleText matches the ARN of a role.
var roleText = regexp.MustCompile(`^arn:[a-z0-9-]{1,32}:iam::[0-9]{12}:role/[!-~]{1,600}$`)

// Only a role that the spec does not set is read from a ServiceAccount.
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch,roleName=tokens

// annotatedRole returns the role in the annotation of the ServiceAccount in auth; a Setting without a text if the spec sets the role.
func annotatedRole(ctx context.Context, spec *v1alpha1.AWSSpec, creds provider.Credentials) (provider.Setting, error) {
	if spec.Role != "" {
		return provider.Setting{}, nil
	}
	account := *spec.Auth.ServiceAccountRef
	annotations, err := provider.AnnotationsOf(ctx, creds, account)
	if err != nil {
		return provider.Setting{}, provider.Field(accountField, err)
	}
	return provider.Setting{Field: "spec.role"}.Or(annotations, provider.Annotation{
		Name: roleAnnotation, Account: account, Field: accountField, Form: roleText, Value: "the ARN of the IAM role that trusts the ServiceAccount",
	})
}
