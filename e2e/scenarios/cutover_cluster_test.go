//go:build long

package scenarios

import (
	"context"
	"fmt"
	"testing"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// esoClusterExternalSecret is the Kind of External Secrets Operator.
var esoClusterExternalSecret = schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1", Kind: "ClusterExternalSecret"}

// An esoFanOut plays External Secrets Operator 1.3 as its source describes what it does with a ClusterExternalSecret that names its
// namespaces. It makes an ExternalSecret of its name in each, which it controls. Whenever the spec differs, it sets it again.
type esoFanOut struct{ client client.Client }

// startESOFanOut runs the operator until the test ends.
func startESOFanOut(t *testing.T, s *stack.Stack) {
	t.Helper()
	m, err := ctrl.NewManager(s.Config(), ctrl.Options{Scheme: stack.Scheme(), Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	of, made := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	of.SetGroupVersionKind(esoClusterExternalSecret)
	made.SetGroupVersionKind(esoExternalSecret)
	must(t, ctrl.NewControllerManagedBy(m).For(of).Owns(made).WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).Complete(&esoFanOut{m.GetClient()}))
	runManager(t, m)
}

// Reconcile implements reconcile.Reconciler.
func (e *esoFanOut) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(esoClusterExternalSecret)
	if err := e.client.Get(ctx, req.NamespacedName, of); err != nil || of.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := e.reconcile(ctx, of)
	if kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	return reconcile.Result{}, err
}

func (e *esoFanOut) reconcile(ctx context.Context, of *unstructured.Unstructured) error {
	namespaces, _, err := unstructured.NestedStringSlice(of.Object, "spec", "namespaces")
	if err != nil {
		return err
	}
	spec, _, err := unstructured.NestedMap(of.Object, "spec", "externalSecretSpec")
	if err != nil {
		return err
	}
	for _, n := range namespaces {
		es := &unstructured.Unstructured{}
		es.SetGroupVersionKind(esoExternalSecret)
		err := e.client.Get(ctx, types.NamespacedName{Namespace: n, Name: of.GetName()}, es)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		was := fmt.Sprint(es.Object["spec"])
		es.SetNamespace(n)
		es.SetName(of.GetName())
		es.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(of, esoClusterExternalSecret)})
		es.Object["spec"] = spec
		switch {
		case err != nil:
			err = e.client.Create(ctx, es)
		case was != fmt.Sprint(spec):
			err = e.client.Update(ctx, es)
		}
		if err != nil {
			return err
		}
	}
	if _, found, _ := unstructured.NestedSlice(of.Object, "status", "conditions"); found {
		return nil
	}
	of.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	return e.client.Status().Update(ctx, of)
}

// shareInAll adds a ClusterExternalSecret for all namespaces, and waits until External Secrets Operator has synced it.
func (c *cutover) shareInAll(namespaces int) {
	c.Helper()
	startESOFanOut(c.T, c.stack)
	c.stack.AWS.Put("shared", []byte(planted+" shared"))
	list := ""
	for n := range namespaces {
		namespace := fmt.Sprintf("team-%02d", n)
		list += namespace + ", "
		c.secrets[types.NamespacedName{Namespace: namespace, Name: "shared"}] = nil
	}
	applyIn(c.T, c.stack, "", `
{apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, metadata: {name: shared}, spec: {namespaces: [`+list+`],
  externalSecretSpec: {secretStoreRef: {name: aws, kind: SecretStore}, data: [{secretKey: token, remoteRef: {key: shared}}]}}}`)
	c.eventually("synced by External Secrets Operator", heldByESO)
}

// pushOne adds a PushSecret with deletionPolicy Delete to each namespace, and waits until External Secrets Operator has pushed it.
func (c *cutover) pushOne(namespaces int) *esoPusher {
	c.Helper()
	eso := startESOPushes(c.T, c.stack)
	for n := range namespaces {
		namespace := fmt.Sprintf("team-%02d", n)
		applyIn(c.T, c.stack, namespace, `
{apiVersion: v1, kind: Secret, metadata: {name: source}, stringData: {user: "`+planted+` user"}}
---
{apiVersion: external-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: push}, spec: {deletionPolicy: Delete, secretStoreRefs: [{name: aws}], selector: {secret: {name: source}}, data: [
  {match: {secretKey: user, remoteRef: {remoteKey: pushed/`+namespace+`}}}]}}`)
	}
	eventually(c.T, func() string {
		for n := range namespaces {
			if _, exists := c.stack.AWS.Get(fmt.Sprintf("pushed/team-%02d", n)); !exists {
				return fmt.Sprintf("team-%02d is not pushed", n)
			}
		}
		return ""
	})
	return eso
}
