//go:build long

package scenarios

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// An esoOperator plays External Secrets Operator 1.3 as its documentation and its source describe what it does with a
// Secret. It reads values that a test gives it.
//
//   - It adds a finalizer to each ExternalSecret. If one with deletionPolicy Delete is deleted, it deletes a Secret that
//     the object controls. Otherwise it leaves that to the garbage collector.
//   - It adds the label managed to the target of each ExternalSecret, whatever the policies are.
//   - It reads the provider if the object was never synced; under Periodic, the default, also with a new generation, other
//     labels or annotations, and with time, unless refreshInterval is 0; and whenever the Secret is absent, lacks the label, or differs from the hash
//     in its annotation. Under creationPolicy Orphan the Secret is never looked at.
//   - It updates the Secret as a whole, with the field manager externalsecrets.external-secrets.io/NAME: its keys are the
//     only ones, except under Merge. Under Owner it sets itself as the controller and adds the label created-by, and it
//     fails if another object is the controller. Under other policies it removes both.
type esoOperator struct {
	client client.Client
	// reader reads without a cache.
	reader client.Reader
	value  func(key string) ([]byte, bool)
	// reads counts reads of the provider.
	reads atomic.Int64
}

// esoExternalSecret is the Kind of External Secrets Operator.
var esoExternalSecret = schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1", Kind: "ExternalSecret"}

const (
	esoFinalizer = "externalsecrets.external-secrets.io/externalsecret-cleanup"
	esoManaged   = "reconcile.external-secrets.io/managed"
	esoCreatedBy = "reconcile.external-secrets.io/created-by"
	esoDataHash  = "reconcile.external-secrets.io/data-hash"
)

// startESO runs the operator until the test ends.
func startESO(t *testing.T, s *stack.Stack) *esoOperator {
	t.Helper()
	m, err := ctrl.NewManager(s.Config(), ctrl.Options{Scheme: stack.Scheme(), Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	e := &esoOperator{client: m.GetClient(), reader: m.GetAPIReader(), value: s.AWS.Get}
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(esoExternalSecret)
	must(t, ctrl.NewControllerManagedBy(m).For(of).WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if o.GetLabels()[esoManaged] == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}} // The tests name both alike.
	})).WithOptions(controller.Options{MaxConcurrentReconciles: 8, SkipNameValidation: ptr.To(true)}).Complete(e))
	runManager(t, m)
	return e
}

// runManager runs controllers until the test ends.
func runManager(t *testing.T, m ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
}

// Reconcile implements reconcile.Reconciler.
func (e *esoOperator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	es := &unstructured.Unstructured{}
	es.SetGroupVersionKind(esoExternalSecret)
	if err := e.client.Get(ctx, req.NamespacedName, es); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	result, err := e.reconcile(ctx, es)
	if kerrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	return result, err
}

func (e *esoOperator) reconcile(ctx context.Context, es *unstructured.Unstructured) (reconcile.Result, error) {
	if es.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, e.deleted(ctx, es)
	}
	before := es.DeepCopy()
	if controllerutil.AddFinalizer(es, esoFinalizer) {
		if err := e.client.Patch(ctx, es, client.MergeFrom(before)); err != nil {
			return reconcile.Result{}, err
		}
	}
	secret := &corev1.Secret{}
	if err := e.reader.Get(ctx, client.ObjectKeyFromObject(es), secret); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if secret.UID != "" && secret.Labels[esoManaged] != "true" {
		was := secret.DeepCopy()
		metav1.SetMetaDataLabel(&secret.ObjectMeta, esoManaged, "true")
		return reconcile.Result{RequeueAfter: time.Millisecond}, e.client.Patch(ctx, secret, client.MergeFrom(was), client.FieldOwner(e.manager(es)))
	}
	if !e.refresh(es) && e.valid(es, secret) {
		return reconcile.Result{}, nil
	}
	if err := e.write(ctx, es, secret); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, e.synced(ctx, es)
}

func (e *esoOperator) manager(es client.Object) string {
	return "externalsecrets.external-secrets.io/" + es.GetName()
}

func (e *esoOperator) deleted(ctx context.Context, es *unstructured.Unstructured) error {
	if policy, _, _ := unstructured.NestedString(es.Object, "spec", "target", "deletionPolicy"); policy == "Delete" {
		secret := &corev1.Secret{}
		err := e.reader.Get(ctx, client.ObjectKeyFromObject(es), secret)
		if err == nil && metav1.IsControlledBy(secret, es) {
			err = e.client.Delete(ctx, secret)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	before := es.DeepCopy()
	if !controllerutil.RemoveFinalizer(es, esoFinalizer) {
		return nil
	}
	return client.IgnoreNotFound(e.client.Patch(ctx, es, client.MergeFrom(before)))
}

// version is what the status records of a synced object.
func (e *esoOperator) version(es client.Object) string {
	return fmt.Sprint(es.GetGeneration(), "-", fmt.Sprint(es.GetLabels(), es.GetAnnotations()))
}

func (e *esoOperator) refresh(es *unstructured.Unstructured) bool {
	synced, _, _ := unstructured.NestedString(es.Object, "status", "syncedResourceVersion")
	policy, _, _ := unstructured.NestedString(es.Object, "spec", "refreshPolicy")
	interval, _, _ := unstructured.NestedString(es.Object, "spec", "refreshInterval")
	if synced == "" {
		return true
	}
	if every, err := time.ParseDuration(interval); policy == "CreatedOnce" || (policy != "OnChange" && err == nil && every <= 0) {
		return false
	}
	return synced != e.version(es)
}

func (e *esoOperator) valid(es *unstructured.Unstructured, secret *corev1.Secret) bool {
	policy, _, _ := unstructured.NestedString(es.Object, "spec", "target", "creationPolicy")
	return policy == "Orphan" || (secret.UID != "" && secret.Annotations[esoDataHash] == hashOf(secret.Data))
}

func hashOf(data map[string][]byte) string {
	raw, _ := json.Marshal(data) // Bytes can be encoded.
	return fmt.Sprintf("%x", sha256.Sum224(raw))
}

// write reads the provider, and creates or updates the Secret.
func (e *esoOperator) write(ctx context.Context, es *unstructured.Unstructured, secret *corev1.Secret) error {
	data := map[string][]byte{}
	entries, _, _ := unstructured.NestedSlice(es.Object, "spec", "data")
	for _, entry := range entries {
		key, _, _ := unstructured.NestedString(entry.(map[string]any), "secretKey")
		remote, _, _ := unstructured.NestedString(entry.(map[string]any), "remoteRef", "key")
		property, _, _ := unstructured.NestedString(entry.(map[string]any), "remoteRef", "property")
		e.reads.Add(1)
		value, ok := e.value(remote)
		if !ok {
			return fmt.Errorf("%s does not exist", remote)
		}
		if property != "" {
			var all map[string]string
			if err := json.Unmarshal(value, &all); err != nil {
				return err
			}
			value = []byte(all[property])
		}
		data[key] = value
	}
	was := secret.DeepCopy()
	secret.Namespace, secret.Name = es.GetNamespace(), es.GetName()
	policy, _, _ := unstructured.NestedString(es.Object, "spec", "target", "creationPolicy")
	if policy == "Merge" {
		maps.Copy(data, secret.Data)
	}
	if err := e.own(es, secret, policy); err != nil {
		return err
	}
	secret.Data = data
	metav1.SetMetaDataLabel(&secret.ObjectMeta, esoManaged, "true")
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, esoDataHash, hashOf(data))
	for name, value := range es.GetLabels() { // Without a template, labels and annotations are copied.
		metav1.SetMetaDataLabel(&secret.ObjectMeta, name, value)
	}
	for name, value := range es.GetAnnotations() {
		if !strings.HasPrefix(name, "kubectl.kubernetes.io/") {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, name, value)
		}
	}
	switch {
	case was.UID == "":
		return e.client.Create(ctx, secret, client.FieldOwner(e.manager(es)))
	case fmt.Sprint(was) == fmt.Sprint(secret):
		return nil
	}
	return e.client.Update(ctx, secret, client.FieldOwner(e.manager(es)))
}

// own sets or removes what shows that an object owns a Secret.
func (e *esoOperator) own(es *unstructured.Unstructured, secret *corev1.Secret, policy string) error {
	owner := metav1.GetControllerOf(secret)
	own := owner != nil && owner.Kind == esoExternalSecret.Kind && strings.HasPrefix(owner.APIVersion, esoExternalSecret.Group+"/") && owner.Name == es.GetName()
	switch {
	case policy != "Owner":
		if own {
			secret.OwnerReferences = nil
		}
		delete(secret.Labels, esoCreatedBy)
		return nil
	case owner != nil && !own:
		return fmt.Errorf("%s controls the Secret", owner.Name)
	}
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: es.GetAPIVersion(), Kind: es.GetKind(), Name: es.GetName(), UID: es.GetUID(), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, esoCreatedBy, hashOf(map[string][]byte{es.GetNamespace(): []byte(es.GetName())})[:32])
	return nil
}

func (e *esoOperator) synced(ctx context.Context, es *unstructured.Unstructured) error {
	now := time.Now().UTC().Format(time.RFC3339)
	es.Object["status"] = map[string]any{
		"syncedResourceVersion": e.version(es), "refreshTime": now,
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "SecretSynced", "message": "secret synced", "lastTransitionTime": now}},
	}
	return e.client.Status().Update(ctx, es)
}
