package handoff

import (
	"net/http"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestWriteError(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	quota := kerrors.NewForbidden(secrets, "db", errors.New("exceeded quota"))
	terminating := kerrors.NewForbidden(secrets, "db", errors.New("it terminates"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	conflict := kerrors.NewConflict(secrets, "db", errors.New("it has changed"))
	busy := kerrors.NewTooManyRequestsError("slow down")
	quotes := kerrors.NewForbidden(secrets, "db", errors.New("admission webhook denied the request: s3cret"))
	refused := func(what string) error {
		return provider.NewError(provider.Denied, "cannot write the Secret in which %s: a ResourceQuota of the namespace allows no more Secrets; raise it", what)
	}
	cases := map[string]struct {
		reason  string
		purpose v1alpha1.PartPurpose
		err     error
		want    error
	}{
		"None":        {"a successful write is no error", v1alpha1.PartRead, nil, nil},
		"Generated":   {"a refusal is safe to show, and names the purpose of the part", v1alpha1.PartGenerated, quota, refused("generated values are stored")},
		"Read":        {"a wrapped refusal names the purpose of the part", v1alpha1.PartRead, errors.Wrap(quota, "cannot write"), refused("values are handed over")},
		"TooLarge":    {"the size of a part is a permanent error", v1alpha1.PartRead, &kerrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge, Message: "too large"}}, provider.NewError(provider.Denied, "cannot write the Secret in which values are handed over: the API server rejects the Secret: RequestEntityTooLarge")},
		"Quotes":      {"a webhook may quote values, so its text is dropped", v1alpha1.PartRead, quotes, provider.NewError(provider.Denied, "cannot write the Secret in which values are handed over: the operator has no permission to write Secrets in this namespace, or an admission policy rejects this one; check its RBAC and the policies")},
		"Terminating": {"in a terminating namespace the work stops", v1alpha1.PartRead, terminating, target.ErrNamespaceTerminating},
		"Conflict":    {"a conflict is returned unchanged", v1alpha1.PartRead, conflict, conflict},
		"Busy":        {"other errors are retried", v1alpha1.PartRead, busy, cmpopts.AnyError},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Contributor{Purpose: tc.purpose}.WriteError(tc.err)
			var denied *provider.Error
			if errors.As(tc.want, &denied) {
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("\n%s\nWriteError(): -want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nWriteError(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
