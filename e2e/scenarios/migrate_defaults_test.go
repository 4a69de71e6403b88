//go:build long

package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// A defaulted field is one that a version of External Secrets Operator adds to each object.
type defaultedField struct{ kind, parent, name, value string }

var (
	nullBytes = []defaultedField{
		{"ExternalSecret", "spec.data[].remoteRef", "nullBytePolicy", "Ignore"}, {"ExternalSecret", "spec.dataFrom[].extract", "nullBytePolicy", "Ignore"},
		{"ExternalSecret", "spec.dataFrom[].find", "nullBytePolicy", "Ignore"},
	}
	sessionTags = []defaultedField{{"SecretStore", "spec.provider.aws", "sessionTagsPolicy", "None"}, {"ClusterSecretStore", "spec.provider.aws", "sessionTagsPolicy", "None"}}
	decoding    = []defaultedField{{"ExternalSecret", "spec.target.template.templateFrom[]", "valuesDecodingStrategy", "None"}}
)

// TestMigrateDefaults has 400 objects in a cluster whose CRDs have the defaults of several versions of External Secrets Operator. All of
// them are converted, and exact.
func TestMigrateDefaults(t *testing.T) {
	ctx := t.Context()
	s, err := stack.Start(ctx, stack.Options{Modules: []string{stack.ProviderAWS}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	plain := esoCRDs(t)
	must(t, s.InstallCRDs(ctx, plain...))
	const namespaces, each = 20, 19
	for n := range namespaces {
		namespace := fmt.Sprintf("team-%02d", n)
		must(t, s.CreateNamespace(ctx, namespace))
		applyIn(t, s, namespace, `
{apiVersion: external-secrets.io/v1, kind: SecretStore, metadata: {name: aws}, spec: {provider: {aws: {service: SecretsManager, region: `+stack.Region+`, auth: {secretRef: {
  accessKeyIDSecretRef: {name: aws, key: id}, secretAccessKeySecretRef: {name: aws, key: key}}}}}}}`)
		for i := range each {
			applyIn(t, s, namespace, fmt.Sprintf(`
{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: app-%02d}, spec: {secretStoreRef: {name: aws}, target: {template: {templateFrom: [{literal: "a: '{{ .a }}'"}]}},
  data: [{secretKey: a, remoteRef: {key: a}}], dataFrom: [{extract: {key: b}}, {find: {name: {regexp: c}}}]}}`, i))
		}
	}
	config, err := s.AdminKubeconfig()
	must(t, err)
	dsctl := buildPlugin(t)
	for _, v := range []struct {
		version string
		fields  []defaultedField
	}{
		{"2.3", nullBytes}, {"2.6", slices.Concat(nullBytes, sessionTags)}, {"2.9", slices.Concat(sessionTags, decoding)},
	} {
		t.Run(v.version, func(t *testing.T) {
			must(t, s.InstallCRDs(ctx, withDefaults(t, plain, v.fields)...))
			for _, f := range v.fields {
				eventually(t, func() string { return lacks(t, s, f) })
			}
			out, code := dsctl.run(t, config, "migrate", "--cluster", "--out", "converted", "-o", "json")
			var report struct {
				Objects []struct{ Kind, Verdict string }
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v: %.2000s", err, out)
			}
			verdicts := map[string]int{}
			for _, o := range report.Objects {
				verdicts[o.Verdict]++
			}
			if code != 0 || verdicts["exact"] != namespaces*(each+1) || len(verdicts) != 1 {
				t.Errorf("exit code %d, verdicts %v: %.3000s", code, verdicts, out)
			}
		})
	}
}

// withDefaults returns CRDs with fields that have a default.
func withDefaults(t *testing.T, crds [][]byte, fields []defaultedField) [][]byte {
	t.Helper()
	var all [][]byte
	for _, raw := range crds {
		var crd apiextensionsv1.CustomResourceDefinition
		must(t, yaml.Unmarshal(raw, &crd))
		for _, v := range crd.Spec.Versions {
			for _, f := range fields {
				if f.kind != crd.Spec.Names.Kind {
					continue
				}
				*v.Schema.OpenAPIV3Schema = withDefault(*v.Schema.OpenAPIV3Schema, strings.Split(strings.ReplaceAll(f.parent, "[]", ".[]"), "."), f)
			}
		}
		changed, err := json.Marshal(crd)
		must(t, err)
		all = append(all, changed)
	}
	return all
}

// withDefault returns a schema with a field below a path.
func withDefault(s apiextensionsv1.JSONSchemaProps, path []string, f defaultedField) apiextensionsv1.JSONSchemaProps {
	switch {
	case len(path) == 0 && s.Properties != nil:
		s.Properties[f.name] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"` + f.value + `"`)}}
	case len(path) > 0 && path[0] == "[]" && s.Items != nil:
		*s.Items.Schema = withDefault(*s.Items.Schema, path[1:], f)
	case len(path) > 0:
		if p, found := s.Properties[path[0]]; found {
			s.Properties[path[0]] = withDefault(p, path[1:], f)
		}
	}
	return s
}

// lacks says whether an object that the API server returns lacks a field; "" if it has it.
func lacks(t *testing.T, s *stack.Stack, f defaultedField) string {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: esoGroup, Version: "v1", Kind: f.kind})
	name := map[string]string{"ExternalSecret": "app-00", "SecretStore": "aws"}[f.kind]
	if name == "" {
		return "" // There is none.
	}
	must(t, s.Admin.Get(t.Context(), types.NamespacedName{Namespace: "team-00", Name: name}, o))
	raw, err := json.Marshal(o.Object["spec"])
	must(t, err)
	if !strings.Contains(string(raw), fmt.Sprintf(`"%s":"%s"`, f.name, f.value)) {
		return "the API server does not add " + f.name
	}
	return ""
}
