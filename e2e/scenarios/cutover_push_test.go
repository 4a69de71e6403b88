//go:build long

package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
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

// TestCutOverPushes moves PushSecrets with deletionPolicy Delete, while dsctl is killed several times. No remote secret is
// written or deleted. Afterwards direct-secrets deletes what External Secrets Operator created, with the object that names it.
func TestCutOverPushes(t *testing.T) {
	t.Parallel()
	const each = 40
	c := startCutover(t, 2, 0)
	ctx, admin := t.Context(), c.stack.Admin
	eso := startESOPushes(t, c.stack)
	values := map[string]string{}
	for _, namespace := range []string{"team-00", "team-01"} {
		for i := range each {
			name := fmt.Sprintf("push-%02d", i)
			remote := namespace + "/" + name
			values[remote] = planted + remote
			applyIn(t, c.stack, namespace, `
{apiVersion: v1, kind: Secret, metadata: {name: `+name+`}, stringData: {password: "`+planted+remote+`"}}
---
{apiVersion: external-secrets.io/v1alpha1, kind: PushSecret, metadata: {name: `+name+`, labels: {app: `+name+`}}, spec: {deletionPolicy: Delete, secretStoreRefs: [{name: aws}], selector: {secret: {name: `+name+`}},
  data: [{match: {secretKey: password, remoteRef: {remoteKey: `+remote+`}}}]}}`)
		}
	}
	object := func(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	all := func(what string, check func(*unstructured.Unstructured) bool) {
		t.Helper()
		eventually(t, func() string {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(esoPushSecret)
			must(t, admin.List(ctx, list))
			for i := range list.Items {
				if !check(&list.Items[i]) {
					return list.Items[i].GetName() + " is not " + what
				}
			}
			return ""
		})
	}
	synced := func(ps *unstructured.Unstructured) bool {
		return stringAt(ps.Object, "status", "syncedResourceVersion") == fmt.Sprintf("%d-0", ps.GetGeneration()) && controllerutil.ContainsFinalizer(ps, esoPushFinalizer)
	}
	all("synced", synced)
	created := eso.writes.Load()
	// One object has a value at the provider that External Secrets Operator has not replaced yet.
	c.stack.AWS.Put("team-01/push-09", []byte("other"))
	values["team-01/push-09"] = "other"
	unchanged := func() {
		t.Helper()
		got := map[string]string{}
		for key := range values {
			value, _ := c.stack.AWS.Get(key)
			got[key] = string(value)
		}
		if diff := cmp.Diff(values, got); diff != "" {
			t.Errorf("remote secrets: -before, +now:\n%s", strings.ReplaceAll(diff, planted, "…"))
		}
		if n := eso.writes.Load() - created; n != 0 {
			t.Errorf("External Secrets Operator made %d writes", n)
		}
		for call, n := range c.stack.AWS.Counts() {
			switch call {
			case "CreateSecret", "PutSecretValue", "UpdateSecret", "DeleteSecret":
				t.Errorf("direct-secrets called %s %d times", call, n)
			}
		}
	}
	c.stack.AWS.Reset()

	for _, after := range []time.Duration{time.Second, 1200 * time.Millisecond, 1500 * time.Millisecond} {
		if out, code := c.migrate(after, "--execute", "-A", "--accept-changes"); code != -1 {
			t.Fatalf("it ended after %s, before it was killed: exit code %d: %s", after, code, tail(out))
		}
	}
	out, code := c.migrate(0, "--execute", "-A", "--accept-changes", "--timeout", "30s")
	t.Log("\n" + tail(out))
	if code != 2 || !strings.Contains(out, fmt.Sprintf("\n%d moved, 0 reverted, 1 left, 0 failed\n", 2*each-1)) ||
		!strings.Contains(out, "left      PushSecret team-01/push-09: direct-secrets would change remote secrets: Update team-01/push-09 in AWSSecretsManager aws") {
		t.Errorf("exit code %d", code)
	}
	unchanged()
	t.Logf("direct-secrets made %v", c.stack.AWS.Counts())

	// The way back: External Secrets Operator pushes and deletes as before.
	c.wantOutput(fmt.Sprintf("\n0 moved, %d reverted, 0 left, 0 failed\n", each-1), "--revert", "-n", "team-01")
	all("synced or moved", func(ps *unstructured.Unstructured) bool { return ps.GetNamespace() == "team-00" || synced(ps) })
	list := &v1alpha1.PushSecretList{}
	must(t, admin.List(ctx, list, client.InNamespace("team-01")))
	if len(list.Items) > 0 {
		t.Errorf("%d PushSecrets of direct-secrets are left", len(list.Items))
	}
	unchanged()

	// Without the objects of External Secrets Operator the remote secrets stay. direct-secrets deletes each of them with its
	// own object.
	c.wantOutput(fmt.Sprintf("\n%d moved, 0 reverted, 0 left, 0 failed\n", each), "--execute", "-n", "team-00", "--accept-changes", "--remove")
	all("removed", func(ps *unstructured.Unstructured) bool { return ps.GetNamespace() != "team-00" })
	unchanged()
	must(t, admin.Delete(ctx, object(v1alpha1.GroupVersion.WithKind("PushSecret"), "team-00", "push-00")))
	eventually(t, func() string {
		if _, exists := c.stack.AWS.Get("team-00/push-00"); exists {
			return "the remote secret of the deleted object exists"
		}
		return ""
	})
}
