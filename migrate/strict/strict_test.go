package strict_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/migrate/cutover"
	"github.com/direct-secrets/direct-secrets/migrate/strict"
)

var cluster *controlplane.ControlPlane

// TestMain starts a cluster whose CRDs are older than dsctl: they do not have the fields that hold something back. The
// ExternalSecret of External Secrets Operator is one without refreshPolicy.
func TestMain(m *testing.M) {
	crds := [][]byte{
		esoCRD("PushSecret", "v1alpha1", "refreshInterval", "deletionPolicy"), esoCRD("ExternalSecret", "v1beta1", "refreshInterval", "target"),
	}
	for _, raw := range controlplane.Manifests(manifests.CRDs) {
		crds = append(crds, older(raw, "dryRun", "suspend"))
	}
	controlplane.Main(m, func(c *controlplane.ControlPlane) error { cluster = c; return nil }, controlplane.WithCRDs(crds...))
}

// older returns a CRD without properties of the spec.
func older(raw []byte, fields ...string) []byte {
	crd := map[string]any{}
	check(yaml.Unmarshal(raw, &crd))
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	check(err)
	for _, f := range fields {
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", f)
	}
	check(unstructured.SetNestedSlice(crd, versions, "spec", "versions"))
	raw, err = yaml.Marshal(crd)
	check(err)
	return raw
}

// esoCRD returns a CRD of External Secrets Operator whose spec has some fields.
func esoCRD(kind, version string, fields ...string) []byte {
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	}
	name := strings.ToLower(kind)
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name + "s.external-secrets.io"},
		"spec": map[string]any{"group": "external-secrets.io", "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": name + "s", "singular": name, "listKind": kind + "List"},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec":   map[string]any{"type": "object", "properties": properties},
				"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}}}}},
	})
	check(err)
	return raw
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// newClient returns the client, and a namespace of the test.
func newClient(t *testing.T) (client.Client, string) {
	t.Helper()
	scheme := runtime.NewScheme()
	check(corev1.AddToScheme(scheme))
	check(v1alpha1.AddToScheme(scheme))
	c, err := strict.New(cluster.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "strict-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return c, ns.Name
}

// push returns a valid PushSecret of direct-secrets.
func push(namespace string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"storeRefs": []any{map[string]any{"kind": "AWSSecretsManager", "name": "aws"}}, "selector": map[string]any{"secret": map[string]any{"name": "db"}},
		"data": []any{map[string]any{"match": map[string]any{"secretKey": "a", "remoteRef": map[string]any{"remoteKey": "a"}}}},
	}}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PushSecret"))
	o.SetNamespace(namespace)
	o.SetName("db")
	return o
}

// TestFieldsThatHoldBack writes fields that the CRD does not have. Nothing is created or changed.
func TestFieldsThatHoldBack(t *testing.T) {
	t.Parallel()
	c, namespace := newClient(t)
	dry := push(namespace)
	check(unstructured.SetNestedField(dry.Object, true, "spec", "dryRun"))
	err := c.Create(t.Context(), dry)
	if !strict.IsUnknown(err, "spec.dryRun") || !strings.Contains(err.Error(), "upgrade the CRDs") {
		t.Errorf("create: %v", err)
	}
	o := push(namespace)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !kerrors.IsNotFound(err) {
		t.Errorf("the object was created: %v", err)
	}
	if err := c.Create(t.Context(), push(namespace)); err != nil {
		t.Fatal(err)
	}
	err = c.Patch(t.Context(), push(namespace), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true,"storeRefs":[{"kind":"AWSSecretsManager","name":"b"}]}}`)))
	if !strict.IsUnknown(err, "spec.suspend") || strings.Contains(err.Error(), "AWSSecretsManager") {
		t.Errorf("patch: %v", err)
	}
	want := push(namespace).Object["spec"]
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	got := o.Object["spec"].(map[string]any)["storeRefs"]
	if diff := cmp.Diff(want.(map[string]any)["storeRefs"], got); diff != "" {
		t.Errorf("the object was changed: -want, +got:\n%s", diff)
	}
}

// eso returns an object of External Secrets Operator that is synced.
func eso(t *testing.T, c client.Client, namespace, version, kind string, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}}
	o.SetAPIVersion("external-secrets.io/" + version)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName("db")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestCutOverUnderOlderCRD moves a PushSecret to a cluster whose CRD does not have dryRun. The object would be pushed while
// External Secrets Operator pushes it, too.
func TestCutOverUnderOlderCRD(t *testing.T) {
	t.Parallel()
	c, namespace := newClient(t)
	from := eso(t, c, namespace, "v1alpha1", "PushSecret", map[string]any{"refreshInterval": "1h", "deletionPolicy": "None"})
	move := &cutover.Cutover{Client: c, Options: cutover.Options{Timeout: 10 * time.Second, JournalNamespace: namespace}, Report: func(cutover.Result) {}}
	got := move.Move(t.Context(), []cutover.Unit{{From: from, To: push(namespace)}})[0]
	if got.Outcome != cutover.Left || !strings.Contains(got.Reason, "does not have the field spec.dryRun") {
		t.Errorf("%+v", got)
	}
	list := &v1alpha1.PushSecretList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil || len(list.Items) > 0 {
		t.Errorf("%d PushSecrets were created: %v", len(list.Items), err)
	}
}

// TestStopOlderESO stops an ExternalSecret of a version of External Secrets Operator that does not have refreshPolicy.
func TestStopOlderESO(t *testing.T) {
	t.Parallel()
	c, namespace := newClient(t)
	from := eso(t, c, namespace, "v1beta1", "ExternalSecret", map[string]any{"refreshInterval": "1h"})
	if err := (&cutover.Cutover{Client: c}).StopESO(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(from), from); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"refreshInterval": "0s", "target": map[string]any{"creationPolicy": "Orphan", "deletionPolicy": "Retain"}}
	if diff := cmp.Diff(want, from.Object["spec"]); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
