package gcpconfig

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

// annotations are those of the only ServiceAccount, which does not exist if they are nil.
type annotations map[string]string

func (annotations) SecretValue(context.Context, common.SecretKeySelector) ([]byte, error) {
	return nil, errBoom
}

func (annotations) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errBoom
}

func (annotations) ServiceAccountToken(context.Context, common.ServiceAccountSelector, ...string) (string, error) {
	return "", errBoom
}

func (annotations) Ambient() error { return errBoom }

func (a annotations) ServiceAccountAnnotations(context.Context, common.ServiceAccountSelector) (map[string]string, error) {
	if a == nil {
		return nil, provider.NewError(provider.Invalid, "auth: ServiceAccount shop/shop does not exist")
	}
	return a, nil
}

func TestEmailOfOwn(t *testing.T) {
	_, err := emailOf(t.Context(), &v1alpha1.WorkloadIdentity{ServiceAccountEmailFrom: v1alpha1.EmailFromAnnotation}, annotations{})
	want := provider.NewError(provider.Invalid, "spec.auth.workloadIdentity.serviceAccountEmailFrom: needs serviceAccountRef, because the annotations of the operator's own ServiceAccount are not read; set serviceAccountEmail instead")
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("The annotations of the operator's own ServiceAccount are not read.\nemailOf(...): -want, +got:\n%s", diff)
	}
}

func TestEmail(t *testing.T) {
	const (
		own      = "a@p.iam.gserviceaccount.com"
		other    = "b@p.iam.gserviceaccount.com"
		field    = "spec.auth.workloadIdentity.serviceAccountRef: annotation iam.gke.io/gcp-service-account"
		notValid = field + " of ServiceAccount shop is not valid; set it to the email of the Google service account to impersonate"
	)
	of := func(email string) annotations { return annotations{"iam.gke.io/gcp-service-account": email} }
	cases := map[string]struct {
		reason  string
		email   string
		from    v1alpha1.EmailSource
		account annotations
		want    provider.Setting
		err     string
	}{
		"Off":       {"Without the field, the ServiceAccount is not read, and the store is the ServiceAccount itself.", "", "", nil, provider.Setting{Field: emailField}, ""},
		"Ignored":   {"Without the field, an annotation has no effect.", "", "", of(other), provider.Setting{Field: emailField}, ""},
		"Spec":      {"The spec names the service account.", own, "", of(other), provider.Setting{Text: own, Field: emailField}, ""},
		"Annotated": {"The annotation names it.", "", v1alpha1.EmailFromAnnotation, of(other), provider.Setting{Text: other, Field: field}, ""},
		"Both":      {"Two sources are refused.", own, v1alpha1.EmailFromAnnotation, of(other), provider.Setting{}, "spec.auth.workloadIdentity: set either serviceAccountEmail or serviceAccountEmailFrom: Annotation"},
		"Unknown":   {"An unknown source is refused.", "", "Label", of(other), provider.Setting{}, "spec.auth.workloadIdentity: set either serviceAccountEmail or serviceAccountEmailFrom: Annotation"},
		"NoAccount": {"A missing ServiceAccount names the field.", "", v1alpha1.EmailFromAnnotation, nil, provider.Setting{}, "spec.auth.workloadIdentity.serviceAccountRef: ServiceAccount shop/shop does not exist"},
		"None":      {"A missing annotation is an error, because the store asks for it.", "", v1alpha1.EmailFromAnnotation, annotations{}, provider.Setting{}, "spec.auth.workloadIdentity.serviceAccountEmail: is not set, and ServiceAccount shop has no annotation iam.gke.io/gcp-service-account; set one of them to the email of the Google service account to impersonate"},
		"Path":      {"A path is refused, because the email becomes part of a URL.", "", v1alpha1.EmailFromAnnotation, of("a/../b@p.example"), provider.Setting{}, notValid},
		"Line":      {"A line break is refused.", "", v1alpha1.EmailFromAnnotation, of(own + "\n"), provider.Setting{}, notValid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := emailOf(t.Context(), &v1alpha1.WorkloadIdentity{
				ServiceAccountRef: &common.ServiceAccountSelector{Name: "shop"}, ServiceAccountEmail: tc.email, ServiceAccountEmailFrom: tc.from,
			}, tc.account)
			var want error
			if tc.err != "" {
				want, got = provider.NewError(provider.Invalid, "%s", tc.err), provider.Setting{}
			}
			if diff := cmp.Diff([]any{tc.want, want}, []any{got, err}); diff != "" {
				t.Errorf("%s\nemailOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
