package operatortest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCRDFaults(t *testing.T) {
	crd := func(spec string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {names: {kind: Thing}, versions: [{name: v1, schema: {openAPIV3Schema: {properties: {spec: {properties: ` + spec + `}}}}}]}}`
	}
	const drift = " has a default: it would show as drift in what persons and tools applied"
	cases := map[string]struct {
		reason string
		crd    string // Empty: there is none.
		want   []string
	}{
		"None":        {"No CRD is a fault: the folder is the wrong one.", "", []string{"there is no CRD"}},
		"Good":        {"A schema without defaults is good.", crd(`{default: {type: string}}`), nil},
		"NoSchema":    {"Without a schema nothing was checked.", crd(`{}`), []string{"Thing: the CRD has no schema of spec"}},
		"Text":        {"A text has no default.", crd(`{a: {type: string, default: b}}`), []string{"Thing: .spec.a" + drift}},
		"Object":      {"Nor has an object, which is on lines of its own.", crd("{a: {type: object, \ndefault:\n    {b: c}}}"), []string{"Thing: .spec.a" + drift}},
		"Empty":       {"Nor an empty one.", crd(`{a: {type: object, default: {}}}`), []string{"Thing: .spec.a" + drift}},
		"Deep":        {"Nor what is in lists and maps.", crd(`{a: {items: {additionalProperties: {type: string, default: b}}}}`), []string{"Thing: .spec.a[]{}" + drift}},
		"Large":       {"A CRD fits into what tools keep of it.", crd(`{a: {description: ` + strings.Repeat("a", 60_000) + `}}`), []string{"Thing: the CRD has 60208 bytes, and at most 60000 are allowed"}},
		"Store":       {"A store can be read-only.", crd(`{access: {type: string}}`), nil},
		"Generator":   {"Nothing is pushed to a generator.", crd(`{rotationInterval: {type: string}, access: {type: string}}`), []string{"Thing: spec.access of a generator has no effect"}},
		"GeneratorOf": {"Nor by namespaces.", crd(`{rotationInterval: {type: string}, conditions: {items: {properties: {access: {type: string}, allowedKeys: {}}}}}`), []string{"Thing: spec.conditions.access of a generator has no effect", "Thing: spec.conditions.allowedKeys of a generator has no effect"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := fstest.MapFS{}
			if tc.crd != "" {
				folder["crds/thing.yaml"] = &fstest.MapFile{Data: []byte(tc.crd)}
			}
			if diff := cmp.Diff(tc.want, crdFaults(folder)); diff != "" {
				t.Errorf("\n%s\ncrdFaults(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
