package operatortest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// A Client writes and reads the objects of a control plane, and returns their conditions.
type Client struct {
	// API has all permissions.
	API client.Client

	mu sync.Mutex
	// refusals are the answers of the API server to objects that break a rule.
	refusals []string
}

// refused returns the answers of the API server to the objects that Accepts found refused.
func (c *Client) refused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.refusals)
}

// Create creates an object, and deletes it when the test ends. It does not delete namespaces: without their
// controller they are never removed.
func (c *Client) Create(t testing.TB, o client.Object, opts ...client.CreateOption) {
	t.Helper()
	if err := c.API.Create(t.Context(), o, opts...); err != nil {
		t.Fatalf("create %T %s: %s", o, o.GetName(), err)
	}
	if _, ok := o.(*corev1.Namespace); ok || len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) > 0 {
		return
	}
	t.Cleanup(func() {
		if err := c.API.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete %T %s: %s", o, o.GetName(), err)
		}
	})
}

// Namespace creates a namespace.
func (c *Client) Namespace(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	c.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

// Secret creates a Secret, for example with a credential.
func (c *Client) Secret(t testing.TB, namespace, name string, data map[string]string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	c.Create(t, secret)
	return secret
}

// Apply creates the documents of a manifest, after change has changed them.
func (c *Client) Apply(t testing.TB, manifest []byte, change func(*unstructured.Unstructured)) {
	t.Helper()
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, o); err != nil {
			t.Fatal(err)
		}
		change(o)
		c.Create(t, o)
	}
}

// Refresh requests a refresh of an object.
func (c *Client) Refresh(t testing.TB, o client.Object, request string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RefreshRequestAnnotation, request)
	if err := c.API.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// End deletes an object, and waits until its Secret and its parts are deleted.
func (c *Client) End(t testing.TB, es *v1alpha1.ExternalSecret) {
	t.Helper()
	if err := c.API.Delete(t.Context(), es); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() string {
		left := []string{}
		for _, o := range secrets(t, c, es.Namespace) {
			rec, isPart := handoff.Of(o.Annotations)
			owned := slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == es.UID })
			if owned || isPart && rec.Name == es.Name {
				left = append(left, o.Name)
			}
		}
		return cmp.Diff([]string{}, left)
	})
}

// Kind returns the Kind of an object.
func (c *Client) Kind(t testing.TB, o client.Object) string {
	t.Helper()
	gvk, err := c.API.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	return gvk.Kind
}

// Data returns the data of a Secret; empty if it does not exist.
func (c *Client) Data(t testing.TB, namespace, name string) map[string]string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.API.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for k, v := range secret.Data {
		texts[k] = string(v)
	}
	return texts
}

// Synced waits until an object is in sync, and returns the data of its Secret.
func (c *Client) Synced(t testing.TB, es *v1alpha1.ExternalSecret) map[string]string {
	t.Helper()
	controlplane.Eventually(t, func() string {
		ready := c.Ready(t, es)
		return cmp.Diff("True SecretSynced "+es.Annotations[v1alpha1.RefreshRequestAnnotation], ready+" "+es.Status.ObservedRefreshRequest)
	})
	return c.Data(t, es.Namespace, es.Name)
}

// Parts returns the parts that store the values of generators for an object.
func (c *Client) Parts(t testing.TB, es *v1alpha1.ExternalSecret) []corev1.Secret {
	t.Helper()
	return slices.DeleteFunc(secrets(t, c, es.Namespace), func(o corev1.Secret) bool {
		rec, ok := handoff.Of(o.Annotations)
		return o.Type != handoff.Type || !ok || rec.Name != es.Name
	})
}

func secrets(t testing.TB, c *Client, namespace string) []corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	if err := c.API.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// Ready reads a store or an ExternalSecret, and returns status and reason of its Ready condition, for example "True
// Valid".
func (c *Client) Ready(t testing.TB, o client.Object) string {
	t.Helper()
	ready := c.condition(t, o)
	return string(ready.Status) + " " + ready.Reason
}

// Says is Ready, followed by the message of the condition.
func (c *Client) Says(t testing.TB, o client.Object) string {
	t.Helper()
	ready := c.condition(t, o)
	return string(ready.Status) + " " + ready.Reason + " " + ready.Message
}

// condition reads a store or an ExternalSecret, and returns its Ready condition.
func (c *Client) condition(t testing.TB, o client.Object) metav1.Condition {
	t.Helper()
	if err := c.API.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
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
		return *ready
	}
	return metav1.Condition{Reason: "no condition"}
}

// Accepts checks that the API server accepts an object or, if want is not empty, refuses it with a message that
// contains want. The object is not stored.
func (c *Client) Accepts(t testing.TB, reason string, o client.Object, want string) {
	t.Helper()
	switch err := c.API.Create(t.Context(), o, client.DryRunAll); {
	case want == "" && err != nil:
		t.Errorf("%s\n%T: error %v, want none", reason, o, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s\n%T: error %v, want %q", reason, o, err, want)
	case want != "":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refusals = append(c.refusals, err.Error())
	}
}

// Examples checks that the API server accepts each document of a manifest, in the namespace default. An unknown field
// is an error. The objects are not stored.
func (c *Client) Examples(t testing.TB, manifest []byte) {
	t.Helper()
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	strict := client.WithFieldValidation(c.API, metav1.FieldValidationStrict)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if o.GetNamespace() != "" {
			o.SetNamespace("default")
		}
		if err := strict.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), err)
		}
	}
}
