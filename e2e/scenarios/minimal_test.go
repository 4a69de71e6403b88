package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// minimal is the namespace of the minimal manifests.
const minimal = "minimal"

// A manifest is a manifest with the smallest useful spec of its Kind.
type manifest struct {
	name, spec string
	// reason is the reason of Ready after the operator has handled the object; empty for any reason.
	reason string
}

// manifests has at least one manifest of every Kind, of which the first is the smallest. Stores whose provider
// is unreachable are fine, because their status is written, too. The files minimal.yaml of modules have more.
var manifests = withFiles(map[string][]manifest{
	"ExternalSecret": {
		{name: "db", reason: v1alpha1.ReasonSecretSynced, spec: `{storeRef: {kind: AWSSecretsManager, name: prod}, data: [{secretKey: password, remoteRef: {key: db}}]}`},
		{name: "generated", reason: v1alpha1.ReasonSecretSynced, spec: `{dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: least}}}]}`},
		{name: "mixed", reason: v1alpha1.ReasonSecretSynced, spec: `{storeRef: {kind: AWSSecretsManager, name: prod}, dataFrom: [{extract: {key: json}}, {sourceRef: {generatorRef: {kind: ClusterPassword, name: least}}}]}`},
		{name: "never", reason: v1alpha1.ReasonSecretSynced, spec: `{storeRef: {kind: AWSSecretsManager, name: prod}, target: {cleanupPolicy: Never}, data: [{secretKey: password, remoteRef: {key: db}}]}`},
	},
	"PushSecret": {
		{name: "least", reason: v1alpha1.ReasonSecretSynced, spec: `{storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: pushed}}}]}`},
		{name: "deletes", reason: v1alpha1.ReasonSecretSynced, spec: `{storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: deleted}}}], deletionPolicy: Delete}`},
	},
	"ClusterExternalSecret": {
		{name: "spread", reason: v1alpha1.ReasonProvisioned, spec: `{namespaces: [minimal], externalSecretSpec: {storeRef: {kind: AWSSecretsManager, name: prod}, data: [{secretKey: password, remoteRef: {key: db}}]}}`},
	},
	"ClusterPushSecret": {
		{name: "spread", reason: v1alpha1.ReasonProvisioned, spec: `{namespaces: [minimal], pushSecretSpec: {storeRefs: [{kind: AWSSecretsManager, name: prod}], selector: {secret: {name: source}}, data: [{match: {remoteRef: {remoteKey: spread}}}]}}`},
	},
	"EventReceiver": {
		{name: "least", reason: v1alpha1.ReasonStoreValid, spec: `{secretRef: {name: key, key: key}, stores: [{kind: AWSSecretsManager, name: prod}]}`},
	},
	"ClusterEventReceiver": {
		{name: "least", reason: v1alpha1.ReasonStoreValid, spec: `{secretRef: {name: key, namespace: minimal, key: key}, stores: [{kind: AWSSecretsManager, name: prod}]}`},
	},
	"AWSSecretsManager":            {{name: "least", spec: `{}`}},
	"ClusterAWSSecretsManager":     {{name: "least", spec: `{}`}},
	"AWSParameterStore":            {{name: "least", spec: `{}`}},
	"ClusterAWSParameterStore":     {{name: "least", spec: `{}`}},
	"ECRAuthorizationToken":        {{name: "least", spec: `{}`}},
	"ClusterECRAuthorizationToken": {{name: "least", spec: `{}`}},
	"STSSessionToken":              {{name: "least", spec: `{}`}},
	"ClusterSTSSessionToken":       {{name: "least", spec: `{}`}},
	"VaultKV":                      {{name: "least", spec: `{server: "http://127.0.0.1:1", path: secret, auth: {tokenSecretRef: {name: vault, key: token}}}`}},
	"ClusterVaultKV":               {{name: "least", spec: `{server: "http://127.0.0.1:1", path: secret, auth: {tokenSecretRef: {name: vault, key: token}}}`}},
	"VaultDynamicSecret":           {{name: "least", spec: `{server: "http://127.0.0.1:1", path: database/creds/shop, auth: {tokenSecretRef: {name: vault, key: token}}}`}},
	"ClusterVaultDynamicSecret":    {{name: "least", spec: `{server: "http://127.0.0.1:1", path: database/creds/shop, auth: {tokenSecretRef: {name: vault, key: token}}}`}},
	"GCPSecretManager":             {{name: "least", spec: `{projectID: my-project}`}},
	"ClusterGCPSecretManager":      {{name: "least", spec: `{projectID: my-project}`}},
	"GCPAccessToken":               {{name: "least", spec: `{}`}},
	"ClusterGCPAccessToken":        {{name: "least", spec: `{}`}},
	"Password":                     {{name: "least", reason: v1alpha1.ReasonStoreValid}, {name: "empty", spec: `{}`, reason: v1alpha1.ReasonStoreValid}},
	"ClusterPassword":              {{name: "least", reason: v1alpha1.ReasonStoreValid}, {name: "empty", spec: `{}`, reason: v1alpha1.ReasonStoreValid}},
})

// withFiles adds the manifests in the files minimal.yaml of modules, which hold the smallest spec of each Kind.
func withFiles(all map[string][]manifest) map[string][]manifest {
	files, err := filepath.Glob(filepath.Join(repository, "*", "manifests", "minimal.yaml"))
	if err != nil {
		panic(err) // The pattern is not valid.
	}
	for _, file := range files {
		specs := map[string]json.RawMessage{}
		raw, err := os.ReadFile(file)
		if err = errors.Join(err, yaml.Unmarshal(raw, &specs)); err != nil {
			panic(fmt.Sprintf("%s: %v", file, err))
		}
		for kind, spec := range specs {
			all[kind] = []manifest{{name: "least", spec: string(spec)}}
		}
	}
	return all
}

// customResources returns the CRDs of this project in an API server.
func customResources(t *testing.T, s *stack.Stack) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	must(t, s.Admin.List(t.Context(), list))
	return slices.DeleteFunc(list.Items, func(crd unstructured.Unstructured) bool {
		return !strings.HasSuffix(crd.GetName(), "."+v1alpha1.Group)
	})
}

// customKinds returns the Kinds of this project in an API server, by name.
func customKinds(t *testing.T, s *stack.Stack) map[string]schema.GroupVersionKind {
	t.Helper()
	kinds := map[string]schema.GroupVersionKind{}
	for _, crd := range customResources(t, s) {
		group, _, err := unstructured.NestedString(crd.Object, "spec", "group")
		must(t, err)
		kind, _, err := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		must(t, err)
		kinds[kind] = schema.GroupVersionKind{Group: group, Version: v1alpha1.GroupVersion.Version, Kind: kind}
	}
	return kinds
}

// object returns the manifest as an object of a Kind.
func (m manifest) object(t *testing.T, kind schema.GroupVersionKind, namespaced bool) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetName(m.name)
	if namespaced {
		o.SetNamespace(minimal)
	}
	if m.spec != "" {
		spec := map[string]any{}
		must(t, yaml.UnmarshalStrict([]byte(m.spec), &spec))
		o.Object["spec"] = spec
	}
	return o
}

// wantWritten compares a manifest that a user or a GitOps tool has written with the object in the API server.
func wantWritten(t *testing.T, when string, sent, got *unstructured.Unstructured) {
	t.Helper()
	written := func(o *unstructured.Unstructured) map[string]any {
		return map[string]any{"spec": o.Object["spec"], "labels": o.GetLabels(), "annotations": o.GetAnnotations()}
	}
	if diff := cmp.Diff(written(sent), written(got)); diff != "" {
		t.Errorf("%s %s %s: -sent, +got:\n%s", sent.GetKind(), sent.GetName(), when, diff)
	}
}

// TestMinimalManifests checks that minimal manifests of every Kind are returned as they were sent: by the API
// server, after the operators have handled them, and after another tool has applied them. A tool that compares
// a manifest with the cluster then never sees a difference. The test has its own stack, because it is for all
// namespaces.
func TestMinimalManifests(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := stack.Start(ctx, stack.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	kinds := customKinds(t, s)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(manifests))); diff != "" {
		t.Fatalf("Kinds with a minimal manifest: -installed, +here:\n%s", diff)
	}
	must(t, s.CreateNamespace(ctx, minimal))
	must(t, s.AWSStore(ctx, minimal, "prod"))
	s.AWS.Put("db", []byte("x"))
	s.AWS.Put("json", []byte(`{"user":"shop"}`))
	must(t, s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: minimal, Name: "source"}, StringData: map[string]string{"password": "x"}}))
	must(t, s.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: minimal, Name: "key"}, StringData: map[string]string{"key": strings.Repeat("k", 32)}}))
	var processes []*stack.Process
	t.Cleanup(func() {
		for _, p := range processes {
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(p.Log())
			}
		}
	})
	for _, module := range stack.Modules() {
		p, err := s.StartModule(ctx, module, "--leader-elect=false", "--event-receiver-bind-address=127.0.0.1:0")
		must(t, err)
		processes = append(processes, p)
	}

	apply := func(o *unstructured.Unstructured, by string) *unstructured.Unstructured {
		got := o.DeepCopy()
		must(t, client.WithFieldValidation(s.Admin, metav1.FieldValidationStrict).
			Apply(ctx, client.ApplyConfigurationFromUnstructured(got), client.FieldOwner(by)))
		return got
	}
	read := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(o.GroupVersionKind())
		must(t, s.Admin.Get(ctx, client.ObjectKeyFromObject(o), got))
		return got
	}
	reasons := map[*unstructured.Unstructured]string{}
	var sent []*unstructured.Unstructured
	for _, kind := range slices.Sorted(maps.Keys(manifests)) {
		mapping, err := s.Admin.RESTMapper().RESTMapping(kinds[kind].GroupKind())
		must(t, err)
		for _, m := range manifests[kind] {
			o := m.object(t, kinds[kind], mapping.Scope.Name() == "namespace")
			sent = append(sent, o)
			reasons[o] = m.reason
			wantWritten(t, "when it was created", o, apply(o, "kubectl"))
		}
	}
	for _, o := range sent {
		eventually(t, func() string {
			reason, generation := readyOf(t, read(o))
			if reason == "" || generation != 1 || reasons[o] != "" && reason != reasons[o] {
				return fmt.Sprintf("%s %s is %q of generation %d, want %q of 1", o.GetKind(), o.GetName(), reason, generation, reasons[o])
			}
			return ""
		})
		wantWritten(t, "after the operator has handled it", o, read(o))
	}
	// From here on no status is written, so any change of an object comes from an apply.
	for _, p := range processes {
		must(t, p.Stop())
	}
	processes = nil
	for _, o := range sent {
		before := read(o)
		first := apply(o, "flux")
		wantWritten(t, "after another tool has applied it", o, first)
		if first.GetGeneration() != 1 {
			t.Errorf("%s %s has generation %d: applying the same manifest with another tool has changed it", o.GetKind(), o.GetName(), first.GetGeneration())
		}
		if diff := cmp.Diff(before.Object["status"], first.Object["status"]); diff != "" {
			t.Errorf("%s %s: status: -before, +after another tool has applied it:\n%s", o.GetKind(), o.GetName(), diff)
		}
		if second := apply(o, "flux"); second.GetResourceVersion() != first.GetResourceVersion() {
			t.Errorf("%s %s: the second apply of the same tool is not a no-op, %s after %s", o.GetKind(), o.GetName(), second.GetResourceVersion(), first.GetResourceVersion())
		}
	}
}

// TestNoDefaults checks that the schemas have no defaults, also in fields that no minimal manifest sets. Only
// the status has one, which is in no manifest: it keeps an object that no module has handled from counting as
// finished.
func TestNoDefaults(t *testing.T) {
	crds := customResources(t, shared)
	if len(crds) < len(manifests) {
		t.Fatalf("only %d CRDs were found", len(crds))
	}
	for _, crd := range crds {
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		must(t, err)
		for _, v := range versions {
			unseen := map[string]any{"observedGeneration": int64(-1)}
			path := []string{"schema", "openAPIV3Schema", "properties", "status", "default"}
			got, _, err := unstructured.NestedFieldNoCopy(v.(map[string]any), path...)
			must(t, err)
			if diff := cmp.Diff(any(unseen), got); diff != "" {
				t.Errorf("the default of the status of %s: -want, +got:\n%s", crd.GetName(), diff)
			}
			unstructured.RemoveNestedField(v.(map[string]any), path...)
			wantNoDefault(t, crd.GetName(), v)
		}
	}
}

func wantNoDefault(t *testing.T, path string, node any) {
	t.Helper()
	switch node := node.(type) {
	case []any:
		for _, n := range node {
			wantNoDefault(t, path, n)
		}
	case map[string]any:
		for key, n := range node {
			// A field can have this name. It then has a schema.
			if _, isSchema := n.(map[string]any); key == "default" && (!isSchema || !strings.HasSuffix(path, ".properties")) {
				t.Errorf("%s has a default", path)
			}
			wantNoDefault(t, path+"."+key, n)
		}
	}
}

// readyOf returns the reason of Ready, and the generation that it describes, or "" if there is no such
// condition.
func readyOf(t *testing.T, o *unstructured.Unstructured) (reason string, generation int64) {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	must(t, err)
	for _, c := range conditions {
		if c, isMap := c.(map[string]any); isMap && c["type"] == v1alpha1.ConditionReady {
			reason, _ = c["reason"].(string)
			generation, _ = c["observedGeneration"].(int64)
		}
	}
	return reason, generation
}
