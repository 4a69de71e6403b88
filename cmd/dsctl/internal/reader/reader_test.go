package reader

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/inspect"
)

// leaseOf returns the valid Lease of an operator in a namespace.
func leaseOf(namespace, module string) *coordinationv1.Lease {
	seconds, now := int32(60), metav1.NowMicro()
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: module, Labels: map[string]string{inspect.OperatorLabel: "true"},
			Annotations: map[string]string{"direct-secrets.io/member": `{"module":"` + module + `","name":"` + module + `"}`},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}

// TestReadOperators checks in which namespaces Leases count. A tenant with the ClusterRole edit can write Leases.
func TestReadOperators(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, namespace string
		// restricted is true for a user who cannot list Leases in all namespaces.
		restricted bool
		want       []string
		refused    []string
	}{
		"All":        {reason: "several releases can be in several namespaces", want: []string{"direct-secrets/real", "other/third", "tenant/forged"}},
		"Given":      {reason: "only the given namespace counts, so a Lease of a tenant does not", namespace: "direct-secrets", want: []string{"direct-secrets/real"}},
		"Another":    {reason: "the operators can be in another namespace", namespace: "other", want: []string{"other/third"}},
		"Restricted": {reason: "without permission for all namespaces, that of the quick start counts", restricted: true, want: []string{"direct-secrets/real"}},
		"Both":       {reason: "a restricted user can name the namespace", restricted: true, namespace: "other", refused: []string{"other"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(leaseOf("direct-secrets", "real"), leaseOf("tenant", "forged"), leaseOf("other", "third")).Build(), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					o := &client.ListOptions{}
					o.ApplyOptions(opts)
					if tc.restricted && o.Namespace != "direct-secrets" {
						return kerrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "", nil)
					}
					return c.List(ctx, list, opts...)
				},
			})
			s := &snapshot.Snapshot{Now: time.Now()}
			r := &Reader{Client: c, OperatorNamespace: tc.namespace, Progress: func(string) {}}
			if err := r.readOperators(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			var got, refused []string
			for _, o := range s.Operators {
				got = append(got, o.Lease.String())
			}
			for _, q := range s.Refused {
				refused = append(refused, q.Namespace)
			}
			if diff := cmp.Diff([][]string{tc.want, tc.refused}, [][]string{got, refused}); diff != "" {
				t.Errorf("%s\noperators, and namespaces without permission: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
