package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestTransform(t *testing.T) {
	type (
		kvs   = []pair
		steps = []v1alpha1.Rewrite
	)
	cases := map[string]struct {
		reason string
		kvs    kvs
		steps  steps
		want   kvs
	}{
		"Value":   {"The template gets the key; values and order do not change.", kvs{{"b", "{{ 1 }}"}, {"a", "2"}}, steps{transformStep("{{ .value | upper }}")}, kvs{{"B", "{{ 1 }}"}, {"A", "2"}}},
		"Text":    {"A template can add text.", kvs{{"a", "1"}}, steps{transformStep("pre-{{ .value }}-post")}, kvs{{"pre-a-post", "1"}}},
		"Hostile": {"A key is not rendered as a template.", kvs{{"{{ fail .value }}", "1"}}, steps{transformStep("{{ .value | len }}")}, kvs{{"17", "1"}}},
		"Stacked": {"Each step processes the result of the one before.", kvs{{"a/b", "1"}}, steps{transformStep("{{ base .value }}"), regexpStep("^", "x"), transformStep(`{{ .value | repeat 2 }}`)}, kvs{{"xbxb", "1"}}},
		"Nothing": {"Without keys the template is not rendered.", nil, steps{transformStep("{{ fail .value }}")}, nil},
		"Any":     {"A step does not check whether the result is a valid key.", kvs{{"a", "1"}}, steps{transformStep("/ä {{ .value }}")}, kvs{{"/ä a", "1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Rewrite(keyValues(tc.kvs), tc.steps, "f")
			if err != nil {
				t.Fatalf("\n%s\nRewrite(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, pairsOf(got)); diff != "" {
				t.Errorf("\n%s\nRewrite(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTransformErrors(t *testing.T) {
	type steps = []v1alpha1.Rewrite
	two := []pair{{"a", canary}, {"b", canary}}
	cases := map[string]struct {
		reason string
		steps  steps
		class  provider.Class
		want   []string
	}{
		"Parse":       {"The error names the step and the line.", steps{regexpStep("x", ""), transformStep("\n{{ .value ")}, provider.Template, []string{"f.rewrite[1].transform.template: line 2: "}},
		"Data":        {"The values are not available to the template.", steps{transformStep("{{ .a }}")}, provider.Template, []string{"f.rewrite[0].transform.template: line 1, column 4: ", `no key "a"`}},
		"Function":    {"A function that templates cannot use is refused here, too.", steps{transformStep(`{{ env "HOME" }}`)}, provider.Template, []string{"f.rewrite[0].transform.template: line 1: ", `"env" not defined`}},
		"Collision":   {"Two keys that become equal are an error, because a value would be lost.", steps{transformStep("x")}, provider.Invalid, []string{"f.rewrite[0]: ", `"a" and "b" both become "x"`}},
		"Empty":       {"Two keys that become empty are an error.", steps{transformStep("")}, provider.Invalid, []string{"f.rewrite[0]: ", `both become ""`}},
		"Endless":     {"An endless loop is stopped.", steps{transformStep("{{ range 1000000000000 }}{{ end }}")}, provider.Template, []string{"f.rewrite[0].transform.template: line 1, ", "too much work"}},
		"SharedSteps": {"The steps of an entry share a budget.", steps{transformStep("{{ .value }}{{ range 150000 }}{{ end }}"), transformStep("{{ .value }}{{ range 150000 }}{{ end }}")}, provider.Template, []string{"f.rewrite[1].transform.template: ", "too much work"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Rewrite(keyValues(two), tc.steps, "f")
			if got != nil {
				t.Errorf("\n%s\nRewrite(): keys with an error", tc.reason)
			}
			wantError(t, tc.reason, err, tc.class, tc.want...)
		})
	}
}

// TestTransformBudget reads a hundred entries that each do some work. All of them share one budget.
func TestTransformBudget(t *testing.T) {
	es := external(func(s *v1alpha1.ExternalSecretSpec) {
		s.Data = nil
		for range 100 {
			e := extract("a")
			e.Rewrite = []v1alpha1.Rewrite{transformStep("{{ .value }}{{ range 50000 }}{{ end }}")}
			s.DataFrom = append(s.DataFrom, e)
		}
	})
	p, err := NewPlan(es)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Render(es, p, remote{"prod/a": value(`{"k":"`+canary+`"}`, "")}.values, nil)
	wantError(t, "All entries share one budget.", err, provider.Template, `"a" in FakeStore "prod": spec.dataFrom[`, "too much work", "more)")
}

// TestTransformMany renames as many keys as a find can have.
func TestTransformMany(t *testing.T) {
	var kvs []KeyValue
	for i := range 10_000 {
		kvs = append(kvs, KeyValue{Key: fmt.Sprintf("team/service/%d", i)})
	}
	got, err := Rewrite(kvs, []v1alpha1.Rewrite{transformStep(`{{ .value | trimPrefix "team/" | replace "/" "_" | upper }}`)}, "f")
	if err != nil || len(got) != len(kvs) || !strings.HasPrefix(got[0].Key, "SERVICE_0") {
		t.Errorf("Rewrite(): %d keys, %v; want all", len(got), err)
	}
}
