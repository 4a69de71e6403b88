package target

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// TestQuiet simulates an admission webhook that quotes the Secret.
func TestQuiet(t *testing.T) {
	const canary = "czNjcmV0"
	denied := kerrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "db", errors.New("admission webhook denied the request: "+canary))
	full := kerrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "db", errors.New("exceeded quota: all, "+canary))
	rejected := &kerrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: canary,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: "data", Message: canary}}},
	}}
	writes := map[string]func(client.Client, client.Object) error{
		"Create": func(c client.Client, o client.Object) error { return c.Create(t.Context(), o) },
		"Update": func(c client.Client, o client.Object) error { return c.Update(t.Context(), o) },
		"Patch":  func(c client.Client, o client.Object) error { return c.Patch(t.Context(), o, client.MergeFrom(o)) },
		"Delete": func(c client.Client, o client.Object) error { return c.Delete(t.Context(), o) },
	}
	cases := map[string]struct {
		reason string
		object client.Object
		err    error
		quotes bool
		is     func(error) bool
	}{
		"Denied":   {"the type of the error is kept", &corev1.Secret{}, denied, false, kerrors.IsForbidden},
		"Metadata": {"a webhook gets the whole Secret also for a write of its metadata", resolve.SecretMetadata(), denied, false, kerrors.IsForbidden},
		"Rejected": {"the names of the fields are kept", &corev1.Secret{}, rejected, false, func(err error) bool {
			return kerrors.IsInvalid(err) && strings.HasSuffix(rejectedFields(err), "data (FieldValueInvalid)")
		}},
		"Quota":    {"a quota error is still recognized", &corev1.Secret{}, errors.Wrap(full, "wrapped"), false, func(err error) bool { return ofQuota(err.Error()) }},
		"Other":    {"an object of another Kind holds no value", &corev1.Namespace{}, denied, true, kerrors.IsForbidden},
		"NoAnswer": {"the error is not from the API server", &corev1.Secret{}, context.Canceled, false, func(err error) bool { return errors.Is(err, context.Canceled) }},
		"None":     {"a success is no error", &corev1.Secret{}, nil, false, func(err error) bool { return err == nil }},
	}
	for name, tc := range cases {
		for verb, write := range writes {
			t.Run(name+"/"+verb, func(t *testing.T) {
				c := Quiet(&test.MockClient{
					MockCreate: test.NewMockCreateFn(tc.err), MockUpdate: test.NewMockUpdateFn(tc.err),
					MockPatch: test.NewMockPatchFn(tc.err), MockDelete: test.NewMockDeleteFn(tc.err),
					MockGroupVersionKindFor: test.NewMockGroupVersionKindForFn(nil, gvkOf(tc.object)),
				})
				err := write(c, tc.object)
				if got := strings.Contains(fmt.Sprintf("%+v", err), canary); got != tc.quotes || !tc.is(err) {
					t.Errorf("\n%s\n%s: %+v", tc.reason, verb, err)
				}
			})
		}
	}
}

func gvkOf(o client.Object) schema.GroupVersionKind {
	if _, ok := o.(*corev1.Namespace); ok {
		return corev1.SchemeGroupVersion.WithKind("Namespace")
	}
	return corev1.SchemeGroupVersion.WithKind("Secret")
}

func rejectedFields(err error) string { return Classify(err).Error() }
