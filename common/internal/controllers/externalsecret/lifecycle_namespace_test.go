package externalsecret_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestNamespaceDeletion deletes a namespace full of objects, while the operator runs. No finalizer
// blocks the deletion.
func TestNamespaceDeletion(t *testing.T) {
	targets := map[string]v1alpha1.Target{
		"ondelete": {CleanupPolicy: onDelete}, "never": {CleanupPolicy: never},
		"delete": {DeletionPolicy: v1alpha1.DeletionDelete}, "frozen": {Immutable: true},
		"orphan": {CreationPolicy: v1alpha1.CreateOrphan}, "either": {CreationPolicy: v1alpha1.CreateCreateOrMerge},
		"merge": {CreationPolicy: v1alpha1.CreateMerge}, "none": {CreationPolicy: v1alpha1.CreateNone},
	}
	e := newEnv(t)
	e.plain("merge", "foreign", "keep")
	for name, target := range targets {
		e.Backend.Put(name, []byte("x"))
		e.Create(e.ExternalSecret(name, into(target)))
	}
	for name := range targets {
		e.WantReady(name, v1alpha1.ReasonSecretSynced)
		if f := e.Get(name).Finalizers; len(f) > 0 {
			t.Errorf("ExternalSecret %s has finalizers %v", name, f)
		}
		if s := e.Secret(name); s != nil && len(s.Finalizers) > 0 {
			t.Errorf("Secret %s has finalizers %v", name, s.Finalizers)
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.NS}}
	e.Delete(ns)
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(ns), ns); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the namespace still exists: %v, %+v", err, ns.Status.Conditions)
		}
		return ""
	})
}
