//go:build long

package scenarios

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCutOverTwice moves objects that Argo CD manages, gives them back, and moves them again. Each time, the Secrets lose the
// labels and annotations by which Argo CD knows its objects, which External Secrets Operator had copied. Otherwise Argo CD
// could prune them.
func TestCutOverTwice(t *testing.T) {
	t.Parallel()
	c := startCutover(t, 1, 3)
	ctx := t.Context()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(esoExternalSecret)
	must(t, c.stack.Admin.List(ctx, list))
	for i := range list.Items {
		patch := `{"metadata":{"labels":{"app.kubernetes.io/instance":"team"},"annotations":{"argocd.argoproj.io/tracking-id":"a"}}}`
		must(t, c.stack.Admin.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	tracked := func(s *corev1.Secret) bool {
		return s.Labels["app.kubernetes.io/instance"] != "" && s.Annotations["argocd.argoproj.io/tracking-id"] != ""
	}
	copied := func(s *corev1.Secret) string {
		if !tracked(s) {
			return "External Secrets Operator has not copied the metadata"
		}
		return heldByESO(s)
	}
	c.eventually("of External Secrets Operator", copied)
	c.pushOne(1)
	c.watch()
	for range 2 {
		c.wantOutput("\n4 moved, 0 reverted, 0 left, 0 failed\n", "--execute", "-A", "--accept-changes", "--reconciliation-suspended")
		c.eventually("free of what Argo CD tracks", func(s *corev1.Secret) string {
			if s.Labels["app.kubernetes.io/instance"] != "" || s.Annotations["argocd.argoproj.io/tracking-id"] != "" {
				return fmt.Sprintf("it has %v, %v", s.Labels, s.Annotations)
			}
			return heldByUs(s)
		})
		c.unbroken()
		c.wantOutput("\n0 moved, 4 reverted, 0 left, 0 failed\n", "--revert", "-A", "--reconciliation-suspended")
		c.eventually("of External Secrets Operator", copied)
		c.unbroken()
	}
}
