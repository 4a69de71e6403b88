package operatortest

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCRDFaults(t *testing.T) {
	crd := func(spec string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {names: {kind: Thing}, versions: [{name: v1, schema: {openAPIV3Schema: {properties: {spec: {properties: ` + spec + `}}}}, additionalPrinterColumns: [` +
			`{name: Ready, type: string, jsonPath: .a}, {name: Reason, type: string, jsonPath: .a}, {name: Age, type: string, jsonPath: .a}, {name: Message, type: string, jsonPath: .a, priority: 1}]}]}}`
	}
	const drift = " has a default: it would show as drift in what persons and tools applied"
	cases := map[string]struct {
		reason string
		crd    string // It is empty for a folder without CRDs.
		want   []string
	}{
		"None":     {"A folder without CRDs is an error.", "", []string{"there is no CRD"}},
		"Good":     {"A schema without defaults is valid.", crd(`{default: {type: string, maxLength: 9}}`), nil},
		"NoSchema": {"A missing schema is an error.", crd(`{}`), []string{"Thing: the CRD has no schema of spec"}},
		"Text":     {"A default of a string is an error.", crd(`{a: {type: string, maxLength: 9, default: b}}`), []string{"Thing: .spec.a" + drift}},
		"Unseen":   {"The default status of a new object is allowed.", strings.Replace(crd(`{a: {type: string, maxLength: 9}}`), "{properties: {spec:", "{properties: {status: {default: {observedGeneration: -1}}, spec:", 1), nil},
		"Status":   {"Any other default status is an error.", strings.Replace(crd(`{a: {type: string, maxLength: 9}}`), "{properties: {spec:", "{properties: {status: {default: {observedGeneration: 1}}, spec:", 1), []string{"Thing: .status" + drift}},
		"Columns":  {"A missing column is an error.", strings.Replace(crd(`{a: {type: string, maxLength: 9}}`), "name: Message", "name: Text", 1), []string{"Thing: there is no column Message of priority 1"}},
		"Object":   {"A default of an object, on separate lines, is an error.", crd("{a: {type: object, \ndefault:\n    {b: c}}}"), []string{"Thing: .spec.a" + drift}},
		"Empty":    {"An empty default is an error.", crd(`{a: {type: object, default: {}}}`), []string{"Thing: .spec.a" + drift}},
		"Deep":     {"A default in a list or a map is an error.", crd(`{a: {items: {maxProperties: 9, additionalProperties: {type: string, default: b}}}}`), []string{"Thing: .spec.a[]{}" + drift}},
		"Large":    {"A CRD above the maximum size is an error.", crd(`{a: {description: ` + strings.Repeat("a", 60_000) + `}}`), []string{"Thing: the CRD has 60422 bytes, and at most 60000 are allowed"}},
		"Unlimited": {"Strings, lists and maps have a maximum.", crd(`{s: {type: string}, l: {type: array, items: {type: string}}, m: {additionalProperties: {}}, selector: {properties: {matchExpressions: {type: array}}}}`), []string{
			"Thing: spec.l has no maximum: one object could then be too large for its module",
			"Thing: spec.l[] has no maximum: one object could then be too large for its module",
			"Thing: spec.m has no maximum: one object could then be too large for its module",
			"Thing: spec.s has no maximum: one object could then be too large for its module",
		}},
		"Store":       {"A store can have access.", crd(`{access: {type: string, maxLength: 9}}`), nil},
		"Generator":   {"A generator must not have access.", crd(`{rotationInterval: {type: string, maxLength: 9}, access: {enum: [a]}}`), []string{"Thing: spec.access of a generator has no effect"}},
		"GeneratorOf": {"The conditions of a generator must not have access or allowedKeys.", crd(`{rotationInterval: {type: string, maxLength: 9}, conditions: {items: {properties: {access: {enum: [a]}, allowedKeys: {}}}}}`), []string{"Thing: spec.conditions.access of a generator has no effect", "Thing: spec.conditions.allowedKeys of a generator has no effect"}},
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
