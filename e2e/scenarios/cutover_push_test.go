//go:build long

package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// An esoPusher plays External Secrets Operator 1.3 as its source describes what it does with a PushSecret that names one
// Secret and single keys of it.
//
//   - Under deletionPolicy Delete it adds a finalizer, and deletes what it pushed with the object. Under None it removes the
//     finalizer.
//   - It pushes each new generation of the object once, and then with time, unless refreshInterval is 0. Its status names
//     the generation that it pushed last. An equal value is not written.
//   - A remote secret that it creates has the tag managed-by. It deletes no other.
type esoPusher struct {
	client client.Client
	remote *emulator.Server
	// writes counts writes of remote secrets, and deletions.
	writes atomic.Int64
}

// esoPushSecret is the Kind of External Secrets Operator.
var esoPushSecret = schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1alpha1", Kind: "PushSecret"}

const esoPushFinalizer = "pushsecret.externalsecrets.io/finalizer"

// startESOPushes runs the operator until the test ends.
func startESOPushes(t *testing.T, s *stack.Stack) *esoPusher {
	t.Helper()
	m, err := ctrl.NewManager(s.Config(), ctrl.Options{Scheme: stack.Scheme(), Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	e := &esoPusher{client: m.GetClient(), remote: s.AWS}
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(esoPushSecret)
	must(t, ctrl.NewControllerManagedBy(m).For(of).WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).Complete(e))
	runManager(t, m)
	return e
}

// Reconcile implements reconcile.Reconciler.
func (e *esoPusher) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ps := &unstructured.Unstructured{}
	ps.SetGroupVersionKind(esoPushSecret)
	if err := e.client.Get(ctx, req.NamespacedName, ps); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := e.reconcile(ctx, ps)
	if kerrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

func (e *esoPusher) reconcile(ctx context.Context, ps *unstructured.Unstructured) error {
	deletes := stringAt(ps.Object, "spec", "deletionPolicy") == "Delete"
	switch {
	case deletes && ps.GetDeletionTimestamp() != nil:
		for _, d := range listAt(ps.Object, "spec", "data") {
			e.writes.Add(1)
			e.remote.Delete(stringAt(d, "match", "remoteRef", "remoteKey"))
		}
		controllerutil.RemoveFinalizer(ps, esoPushFinalizer)
		return e.client.Update(ctx, ps)
	case deletes && controllerutil.AddFinalizer(ps, esoPushFinalizer), !deletes && controllerutil.RemoveFinalizer(ps, esoPushFinalizer):
		if err := e.client.Update(ctx, ps); err != nil {
			return err
		}
	}
	version := fmt.Sprintf("%d-0", ps.GetGeneration())
	if stringAt(ps.Object, "status", "syncedResourceVersion") == version {
		return nil // The tests are shorter than refreshInterval.
	}
	secret := &corev1.Secret{}
	name := types.NamespacedName{Namespace: ps.GetNamespace(), Name: stringAt(ps.Object, "spec", "selector", "secret", "name")}
	if err := e.client.Get(ctx, name, secret); err != nil {
		return err
	}
	for _, d := range listAt(ps.Object, "spec", "data") {
		key, want := stringAt(d, "match", "remoteRef", "remoteKey"), secret.Data[stringAt(d, "match", "secretKey")]
		if is, exists := e.remote.Get(key); !exists || !bytes.Equal(is, want) {
			e.writes.Add(1)
			e.remote.Put(key, want, emulator.Binary(), emulator.Tags(map[string]string{"managed-by": "external-secrets"}))
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	ps.Object["status"] = map[string]any{
		"syncedResourceVersion": version, "refreshTime": now,
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Synced", "message": "PushSecret synced successfully", "lastTransitionTime": now}},
	}
	return e.client.Status().Update(ctx, ps)
}

// stringAt returns a text in an object; "" if there is none.
func stringAt(object map[string]any, path ...string) string {
	text, _, _ := unstructured.NestedString(object, path...)
	return text
}

// listAt returns a list of mappings in an object.
func listAt(object map[string]any, path ...string) (list []map[string]any) {
	all, _, _ := unstructured.NestedSlice(object, path...)
	for _, one := range all {
		list = append(list, one.(map[string]any))
	}
	return list
}
