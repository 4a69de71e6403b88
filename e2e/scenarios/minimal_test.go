package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
