package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *schema {
	t.Helper()
	var s schema
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestSections(t *testing.T) {
	shown := parse(t, `{type: object, properties: {a: {type: string}}}`)
	r := reader{shown: map[string]*schema{"[other](other.md)": shown}}
	cases := map[string]struct {
		reason string
		schema string
		want   []section
	}{
		"Constraints": {
			reason: "constraints follow the description, and each rule is a line of its own",
			schema: `{type: object, required: [a], x-kubernetes-validations: [{rule: r, message: set a.}], properties: {
				a: {type: string, description: "One | of *many*\n<names>.", enum: ["", A, B], minLength: 1, maxLength: 9},
				b: {type: array, maxItems: 1, x-kubernetes-validations: [{rule: r, message: not c}], items: {type: string, pattern: "^a|b$", x-kubernetes-validations: [{rule: r, message: be b}]}},
				c: {type: integer, minimum: 7, maximum: 30, default: 8, x-kubernetes-validations: [{rule: "self > 1"}]}}}`,
			want: []section{{Path: "spec", Rules: []string{"Rule: set a."}, Fields: []field{
				{Path: "a", Type: "string", Required: true, Text: `One \| of \*many\* &lt;names&gt;. One of ` + "`A`, `B`. 1 to 9 characters."},
				{Path: "b", Type: "list of string", Text: `At most 1 item. Each: matches ` + "`^a\\|b$`.<br>Rule: not c.<br>Rule for each: be b."},
				{Path: "c", Type: "integer", Text: "7 to 30. Default in the API: `8`.<br>Rule: `self > 1`."},
			}}},
		},
		"Few": {
			reason: "a few fields of a field follow it, with their paths",
			schema: `{type: object, properties: {list: {type: array, items: {type: object, properties: {key: {type: string}}}}}}`,
			want: []section{{Path: "spec", Fields: []field{
				{Path: "list", Type: "list of object"}, {Path: "list[].key", Type: "string"},
			}}},
		},
		"Many": {
			reason: "a field with many fields has its own section",
			schema: `{type: object, properties: {map: {type: object, additionalProperties: {type: object, properties: {
				a: {}, b: {type: boolean}, c: {type: string, format: date-time}, d: {type: object, properties: {e: {type: string}}}}}}}}`,
			want: []section{
				{Path: "spec", Fields: []field{{Path: "map", Type: "map of object", Section: "spec.map{}"}}},
				{Path: "spec.map{}", Fields: []field{
					{Path: "a", Type: "any"}, {Path: "b", Type: "boolean"}, {Path: "c", Type: "time"},
					{Path: "d", Type: "object"}, {Path: "d.e", Type: "string"},
				}},
			},
		},
		"Shown": {
			reason: "fields on another page are not repeated",
			schema: `{type: object, properties: {other: {type: object, description: X., properties: {a: {type: string}}}}}`,
			want:   []section{{Path: "spec", Fields: []field{{Path: "other", Type: "[other](other.md)", Text: "X."}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, r.sections("spec", parse(t, tc.schema))); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownKeyword checks that an unknown constraint is an error.
func TestUnknownKeyword(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "common", "manifests", "crds", "x.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	crd := `{spec: {group: g, names: {kind: K}, versions: [{name: v1, schema: {openAPIV3Schema: {multipleOf: 2}}}]}}`
	if err := os.WriteFile(path, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKinds(root); err == nil || !strings.Contains(err.Error(), "multipleOf") {
		t.Errorf("the error is %v, want one that names the keyword", err)
	}
}

// TestTwin checks that a page shows the additional and different fields of a cluster Kind.
func TestTwin(t *testing.T) {
	base := &kind{Name: "Store", Spec: parse(t, `{properties: {a: {type: string}, b: {type: string}}}`)}
	cluster := &kind{Name: "ClusterStore", Cluster: true, Spec: parse(t, `{properties: {a: {type: string}, b: {type: integer}, c: {type: string}}}`)}
	other := &kind{Name: "ClusterOther", Cluster: true, Spec: parse(t, `{properties: {a: {type: string}}}`)}
	pages := pagesOf([]*kind{base, cluster, other})
	var titles []string
	for _, p := range pages {
		titles = append(titles, p.Title)
	}
	if diff := cmp.Diff([]string{"Store and ClusterStore", "ClusterOther"}, titles); diff != "" {
		t.Fatalf("pages: -want, +got:\n%s", diff)
	}
	want := &twin{kind: cluster, More: []field{{Path: "spec.c", Type: "string"}}, Others: []field{{Path: "spec.b", Type: "integer"}}}
	if diff := cmp.Diff(want, pages[0].Twin, cmp.AllowUnexported(twin{}, kind{})); diff != "" {
		t.Errorf("twin: -want, +got:\n%s", diff)
	}
}

// TestExample checks that the text for assistants has the objects of an example, and that a missing Kind is an error.
func TestExample(t *testing.T) {
	a := assistants{tree: filepath.Join("..", "..")}
	got, err := a.Example("generator-password", "password.yaml", "Password")
	if err != nil || !strings.HasPrefix(got, "apiVersion: generator.direct-secrets.io/v1alpha1\nkind: Password\n") || strings.Contains(got, "---") {
		t.Errorf("the example is the one Password without comments: error %v, text:\n%s", err, got)
	}
	if _, err := a.Example("generator-password", "password.yaml", "PushSecret"); err == nil {
		t.Error("an example without the Kind is no error")
	}
}
