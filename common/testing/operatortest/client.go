package operatortest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// A Client writes and reads the objects of a namespace for a test, and waits for their expected state.
type Client struct {
	testing.TB
	*Plane
	Ctx context.Context
	// NS is the namespace; empty for cluster objects.
	NS string
	// Deletes makes Create delete its objects when the test ends.
	Deletes bool
}

// In returns the client of another namespace.
func (c *Client) In(namespace string) *Client {
	other := *c
	other.NS = namespace
	return &other
}

// Create creates an object. With Deletes it deletes the object when the test ends, but not a namespace: without their
// controller they are never removed.
func (c *Client) Create(o client.Object, opts ...client.CreateOption) {
	c.Helper()
	if err := c.API.Create(c.Ctx, o, opts...); err != nil {
		c.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
	if _, ok := o.(*corev1.Namespace); ok || !c.Deletes || len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) > 0 {
		return
	}
	c.Cleanup(func() {
		if err := c.API.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			c.Errorf("delete %T %s: %v", o, o.GetName(), err)
		}
	})
}

// Namespace creates a namespace.
func (c *Client) Namespace(name string, labels map[string]string) {
	c.Helper()
	c.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

// Delete deletes an object.
func (c *Client) Delete(o client.Object) {
	c.Helper()
	if err := c.API.Delete(c.Ctx, o); err != nil {
		c.Fatalf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// Update reads an object, and updates it after change has changed it. It retries after a conflict.
func (c *Client) Update(o client.Object, change func()) {
	c.Helper()
	for {
		if err := c.API.Get(c.Ctx, client.ObjectKeyFromObject(o), o); err != nil {
			c.Fatalf("get %T %s: %v", o, o.GetName(), err)
		}
		change()
		err := c.API.Update(c.Ctx, o)
		if err == nil {
			return
		}
		if !kerrors.IsConflict(err) {
			c.Fatalf("update %T %s: %v", o, o.GetName(), err)
		}
	}
}

// Eventually waits until f returns an empty string. Until then f returns what is missing.
func (c *Client) Eventually(f func() string) {
	c.Helper()
	controlplane.Eventually(c, f)
}

// Source creates a Secret, for example with credentials or to push, or changes its values.
func (c *Client) Source(name string, data map[string]string, labels ...string) *corev1.Secret {
	c.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.NS, Name: name}, Data: map[string][]byte{}}
	for _, l := range labels {
		metav1.SetMetaDataLabel(&s.ObjectMeta, l, "true")
	}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	if c.Secret(name) == nil {
		c.Create(s)
		return s
	}
	values := s.Data
	c.Update(s, func() { s.Data = values })
	return s
}

// Secret returns a Secret; nil if it does not exist.
func (c *Client) Secret(name string) *corev1.Secret {
	c.Helper()
	s := &corev1.Secret{}
	err := c.API.Get(c.Ctx, types.NamespacedName{Namespace: c.NS, Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.Fatalf("get Secret %s: %v", name, err)
	}
	return s
}

// Data returns the data of a Secret; empty if it does not exist.
func (c *Client) Data(name string) map[string]string {
	c.Helper()
	contents := map[string]string{}
	if s := c.Secret(name); s != nil {
		for k, v := range s.Data {
			contents[k] = string(v)
		}
	}
	return contents
}

// WantSecret waits until a key of a Secret has a value.
func (c *Client) WantSecret(name, key, value string) *corev1.Secret {
	c.Helper()
	var s *corev1.Secret
	c.Eventually(func() string {
		if s = c.Secret(name); s == nil {
			return "Secret " + name + " does not exist"
		}
		if got := string(s.Data[key]); got != value {
			return "Secret " + name + " key " + key + " is " + got + ", want " + value
		}
		return ""
	})
	return s
}

// Want waits until the Ready condition of an object has a reason: for a store, or for the current generation of an
// ExternalSecret or PushSecret.
func (c *Client) Want(o client.Object, reason string) metav1.Condition {
	c.Helper()
	var ready metav1.Condition
	c.Eventually(func() string {
		var err error
		if ready, err = c.readiness(o); err != nil {
			return err.Error()
		}
		_, isStore := o.(provider.Object)
		if ready.Reason != reason || !isStore && ready.ObservedGeneration != o.GetGeneration() {
			return fmt.Sprintf("%T %s is %s %s: %s, want %s", o, o.GetName(), ready.Status, ready.Reason, ready.Message, reason)
		}
		return ""
	})
	return ready
}

// Ready reads a store, ExternalSecret or PushSecret, and returns status and reason of its Ready condition, for example
// "True Valid".
func (c *Client) Ready(o client.Object) string {
	c.Helper()
	ready := c.condition(o)
	return string(ready.Status) + " " + ready.Reason
}

// Condition is Ready, followed by the message of the condition.
func (c *Client) Condition(o client.Object) string {
	c.Helper()
	ready := c.condition(o)
	return string(ready.Status) + " " + ready.Reason + " " + ready.Message
}

// condition reads an object, and returns its Ready condition.
func (c *Client) condition(o client.Object) metav1.Condition {
	c.Helper()
	ready, err := c.readiness(o)
	if err != nil {
		c.Fatal(err)
	}
	return ready
}

// readiness replaces an object by its current version, and returns its Ready condition.
func (c *Client) readiness(o client.Object) (metav1.Condition, error) {
	to := reflect.ValueOf(o).Elem()
	read := reflect.New(to.Type())
	if err := c.API.Get(c.Ctx, client.ObjectKeyFromObject(o), read.Interface().(client.Object)); err != nil {
		return metav1.Condition{}, err
	}
	to.Set(read.Elem())
	var conditions []metav1.Condition
	switch o := o.(type) {
	case provider.Object:
		conditions = o.StoreStatus().Conditions
	case *v1alpha1.ExternalSecret:
		conditions = o.Status.Conditions
	case *v1alpha1.PushSecret:
		conditions = o.Status.Conditions
	}
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		return *ready, nil
	}
	return metav1.Condition{Reason: "no condition"}, nil
}

// Refresh requests a refresh of an object.
func (c *Client) Refresh(o client.Object, request string) {
	c.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RefreshRequestAnnotation, request)
	if err := c.API.Patch(c.Ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.Fatal(err)
	}
}

// Synced waits until an object is in sync, and returns the data of its Secret.
func (c *Client) Synced(es *v1alpha1.ExternalSecret) map[string]string {
	c.Helper()
	c.Eventually(func() string {
		ready := c.Ready(es)
		return cmp.Diff("True SecretSynced "+es.Annotations[v1alpha1.RefreshRequestAnnotation], ready+" "+es.Status.ObservedRefreshRequest)
	})
	return c.In(es.Namespace).Data(es.Name)
}

// End deletes an object, and waits until its Secret and its parts are deleted.
func (c *Client) End(es *v1alpha1.ExternalSecret) {
	c.Helper()
	c.Delete(es)
	c.Eventually(func() string {
		left := []string{}
		for _, o := range secrets(c, es.Namespace) {
			rec, isPart := handoff.Of(o.Annotations)
			if OwnedBy(&o, es) || isPart && rec.Name == es.Name {
				left = append(left, o.Name)
			}
		}
		return cmp.Diff([]string{}, left)
	})
}

// OwnedBy reports whether a Secret has an ownerReference to an object.
func OwnedBy(s *corev1.Secret, o client.Object) bool {
	return slices.ContainsFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.GetUID() })
}

// Parts returns the parts that store the values of generators for an object.
func (c *Client) Parts(es *v1alpha1.ExternalSecret) []corev1.Secret {
	c.Helper()
	return slices.DeleteFunc(secrets(c, es.Namespace), func(o corev1.Secret) bool {
		rec, ok := handoff.Of(o.Annotations)
		return o.Type != handoff.Type || !ok || rec.Name != es.Name
	})
}

func secrets(c *Client, namespace string) []corev1.Secret {
	c.Helper()
	var list corev1.SecretList
	if err := c.API.List(c.Ctx, &list, client.InNamespace(namespace)); err != nil {
		c.Fatal(err)
	}
	return list.Items
}

// Kind returns the Kind of an object.
func (c *Client) Kind(o client.Object) string {
	c.Helper()
	gvk, err := c.API.GroupVersionKindFor(o)
	if err != nil {
		c.Fatal(err)
	}
	return gvk.Kind
}
