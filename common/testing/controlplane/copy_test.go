package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWithDataOf changes a copy. It must have the same objects, and the original must keep them.
func TestWithDataOf(t *testing.T) {
	newNamespace(t, "copied")
	original := clientFor(t, cluster.Config()).CoreV1().ConfigMaps("copied")
	want, err := original.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "object"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Start(t.Context(), WithDataOf(cluster))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})
	copied := clientFor(t, second.Config()).CoreV1().ConfigMaps("copied")
	if got, err := copied.Get(t.Context(), "object", metav1.GetOptions{}); err != nil || got.UID != want.UID {
		t.Fatalf("the copy has uid %q, %v; want %q", got.UID, err, want.UID)
	}
	if err := copied.Delete(t.Context(), "object", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := original.Get(t.Context(), "object", metav1.GetOptions{}); err != nil || got.UID != want.UID {
		t.Errorf("after the deletion in the copy, the original has uid %q, %v; want %q", got.UID, err, want.UID)
	}
}
