package render

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// literal returns a template in the spec that makes keys and values.
func literal(text, target string) v1alpha1.TemplateFrom {
	return v1alpha1.TemplateFrom{Literal: &text, Target: target}
}

// configMap returns one template of the ConfigMap t, secretText one of the Secret t.
func configMap(key, as, target string) v1alpha1.TemplateFrom {
	return v1alpha1.TemplateFrom{ConfigMap: &v1alpha1.TemplateSource{Name: "t", Items: []v1alpha1.TemplateSourceItem{{Key: key, TemplateAs: as}}}, Target: target}
}

func secretText(key, as, target string) v1alpha1.TemplateFrom {
	return v1alpha1.TemplateFrom{Secret: configMap(key, as, "").ConfigMap, Target: target}
}

func labels(m map[string]string) v1alpha1.TemplateMetadata {
	return v1alpha1.TemplateMetadata{Labels: m}
}

func annotations(m map[string]string) v1alpha1.TemplateMetadata {
	return v1alpha1.TemplateMetadata{Annotations: m}
}

// wantError fails the test unless err has a class, contains all of contains, starts with the first of them, and shows no
// value.
func wantError(t *testing.T, reason string, err error, c provider.Class, contains ...string) {
	t.Helper()
	if diff := cmp.Diff(c, class(err)); diff != "" {
		t.Errorf("\n%s\nclass of %q: -want, +got:\n%s", reason, err, diff)
	}
	wantText(t, reason, err, contains...)
}

func wantText(t *testing.T, reason string, err error, contains ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("\n%s\nno error", reason)
	}
	msg := err.Error()
	if len(contains) > 0 && !strings.HasPrefix(msg, contains[0]) {
		t.Errorf("\n%s\n%q does not start with %q", reason, msg, contains[0])
	}
	for _, s := range contains {
		if !strings.Contains(msg, s) {
			t.Errorf("\n%s\n%q does not contain %q", reason, msg, s)
		}
	}
	if strings.Contains(msg, canary) || len(msg) > 600 {
		t.Errorf("\n%s\na message of %d bytes that shows a value or too much: %.600q", reason, len(msg), msg)
	}
}

// TestParseTemplates has templates that no value can make valid.
func TestParseTemplates(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template *v1alpha1.Template
		want     string
	}{
		"None":       {"A template is optional.", nil, ""},
		"Valid":      {"Values are not needed.", &v1alpha1.Template{Data: map[string]string{"a": "{{ .absent }}"}, TemplateFrom: []v1alpha1.TemplateFrom{configMap("k", "", "")}}, ""},
		"Data":       {"The key is named.", &v1alpha1.Template{Data: map[string]string{"a": "{{ .a"}}, "spec.target.template.data[a]: "},
		"Label":      {"So is a label.", &v1alpha1.Template{Metadata: v1alpha1.TemplateMetadata{Labels: map[string]string{"a": "{{ end }}"}}}, "spec.target.template.metadata.labels[a]: "},
		"Annotation": {"So is an annotation.", &v1alpha1.Template{Metadata: v1alpha1.TemplateMetadata{Annotations: map[string]string{"a": "{{ nofunc }}"}}}, "spec.target.template.metadata.annotations[a]: "},
		"Literal":    {"So is a literal.", &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{literal("{{", "")}}, "spec.target.template.templateFrom[0].literal: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := ParseTemplates(tc.template)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("\n%s\nParseTemplates(...): %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestCheckTemplate(t *testing.T) {
	type template = v1alpha1.Template
	source := func(change func(*v1alpha1.TemplateSource)) *template {
		f := configMap("k", "", "")
		change(f.ConfigMap)
		return &template{TemplateFrom: []v1alpha1.TemplateFrom{f}}
	}
	from := func(f v1alpha1.TemplateFrom) *template {
		return &template{TemplateFrom: []v1alpha1.TemplateFrom{literal("", ""), f}}
	}
	long := strings.Repeat("k", 254)
	cases := map[string]struct {
		reason   string
		template *template
		// want are parts of the error, its start first; none means that there is no error.
		want []string
	}{
		"None":  {"A template is optional.", nil, nil},
		"Empty": {"An empty template is valid.", &template{}, nil},
		"Whole": {
			"All supported fields are valid.",
			&template{
				Type: "kubernetes.io/tls", MergePolicy: "Merge", Data: map[string]string{"tls.crt": "{{ .a }}", "A-b_c.9": ""},
				Metadata:     v1alpha1.TemplateMetadata{Labels: map[string]string{"a": "{{ .a }}", "example.com/b": "{{"}, Annotations: map[string]string{"example.com/c.D_e": ""}},
				TemplateFrom: []v1alpha1.TemplateFrom{literal("", ""), literal("", "Labels"), configMap("k", "Values", "Data"), secretText("k", "KeysAndValues", "Annotations")},
			}, nil,
		},
		"Replace":      {"Replace can be set explicitly.", &template{MergePolicy: "Replace"}, nil},
		"OtherType":    {"Any other type is valid.", &template{Type: "example.com/any"}, nil},
		"HelmType":     {"A type that starts like a refused one is valid.", &template{Type: "kubernetes.io/service-account-token-2"}, nil},
		"Similar":      {"A domain that only ends like the operator's is valid.", &template{Metadata: labels(map[string]string{"undirect-secrets.io/a": "", "direct-secrets.io.example.com/a": ""})}, nil},
		"SameName":     {"A ConfigMap can have the name of the Secret.", from(v1alpha1.TemplateFrom{ConfigMap: &v1alpha1.TemplateSource{Name: "db", Items: []v1alpha1.TemplateSourceItem{{Key: "k"}}}}), nil},
		"EmptyLiteral": {"An empty literal is valid.", from(literal("", "")), nil},

		"AccountToken":   {"A token Secret is refused, because the cluster would fill it with a token.", &template{Type: "kubernetes.io/service-account-token"}, []string{"type: kubernetes.io/service-account-token ", "refused"}},
		"BootstrapToken": {"A bootstrap token is refused, because a node can join the cluster with it.", &template{Type: "bootstrap.kubernetes.io/token"}, []string{"type: bootstrap.kubernetes.io/token ", "refused"}},
		"MergePolicy":    {"A value from a later CRD is refused.", &template{MergePolicy: "Deep"}, []string{"mergePolicy: Deep is not supported"}},

		"DataKey":     {"A key must not contain a slash.", &template{Data: map[string]string{"ok": "", "a/b": canary}}, []string{`data[a/b]: "a/b" cannot be a key of a Secret; use letters`}},
		"DataEmpty":   {"A key must not be empty.", &template{Data: map[string]string{"": canary}}, []string{`data[]: "" cannot be a key`}},
		"DataDots":    {"A key must not start with two dots, which the kubelet reserves.", &template{Data: map[string]string{"..data": canary}}, []string{`data[..data]: `}},
		"DataLong":    {"The message cuts a long key.", &template{Data: map[string]string{long: canary}}, []string{"data[" + long[:64] + `]: "` + long[:64] + `" cannot`}},
		"Label":       {"The name of a label must not contain a space.", &template{Metadata: labels(map[string]string{"a b": canary})}, []string{`metadata.labels[a b]: "a b" cannot be a label or annotation: `}},
		"LabelPrefix": {"The prefix of a label must be a domain.", &template{Metadata: labels(map[string]string{"A_B/c": canary})}, []string{`metadata.labels[A_B/c]: `}},
		"LabelLong":   {"The name of a label has at most 63 characters.", &template{Metadata: labels(map[string]string{long[:64]: canary})}, []string{"metadata.labels[" + long[:64] + "]: ", "63"}},
		"Annotation":  {"An annotation needs a name.", &template{Metadata: annotations(map[string]string{"example.com/": canary})}, []string{"metadata.annotations[example.com/]: "}},

		"OwnLabel":      {"The operator's own labels are refused.", &template{Metadata: labels(map[string]string{"direct-secrets.io/managed": canary})}, []string{"metadata.labels[direct-secrets.io/managed]: ", "is reserved for the operator; choose another"}},
		"ModuleLabel":   {"The labels of a module are refused.", &template{Metadata: labels(map[string]string{"aws.direct-secrets.io/managed": canary})}, []string{"metadata.labels[aws.direct-secrets.io/managed]: ", "is reserved for the operator"}},
		"OwnAnnotation": {"The operator's marks are refused.", &template{Metadata: annotations(map[string]string{"direct-secrets.io/es.abc": canary})}, []string{"metadata.annotations[direct-secrets.io/es.abc]: ", "is reserved for the operator"}},
		"DeepDomain":    {"Annotations of a deeper domain are refused.", &template{Metadata: annotations(map[string]string{"a.b.direct-secrets.io/x": canary})}, []string{"metadata.annotations[a.b.direct-secrets.io/x]: ", "is reserved for the operator"}},

		"NoSource":       {"An entry needs a source.", from(v1alpha1.TemplateFrom{}), []string{"templateFrom[1]: 0 of configMap, secret and literal are set; set exactly one"}},
		"TwoSources":     {"An entry must not have two sources.", from(v1alpha1.TemplateFrom{ConfigMap: configMap("k", "", "").ConfigMap, Literal: new(string)}), []string{"templateFrom[1]: 2 of"}},
		"ThreeSources":   {"An entry must not have three sources.", from(v1alpha1.TemplateFrom{ConfigMap: configMap("k", "", "").ConfigMap, Secret: configMap("k", "", "").ConfigMap, Literal: new(string)}), []string{"templateFrom[1]: 3 of"}},
		"Target":         {"Finalizers cannot be set.", from(literal(canary, "Finalizers")), []string{"templateFrom[1]: target: Finalizers is not supported"}},
		"OwnerTarget":    {"Owner references cannot be set.", from(literal(canary, "OwnerReferences")), []string{"templateFrom[1]: target: OwnerReferences is not supported"}},
		"SourceName":     {"The name of a ConfigMap must not be empty.", source(func(s *v1alpha1.TemplateSource) { s.Name = "" }), []string{`templateFrom[0]: configMap.name: "" cannot be the name of a ConfigMap`}},
		"SourceBadName":  {"The name of a ConfigMap must not be a path.", source(func(s *v1alpha1.TemplateSource) { s.Name = "../other" }), []string{`templateFrom[0]: configMap.name: "../other" cannot`}},
		"SecretBadName":  {"The name of a Secret must be valid.", from(v1alpha1.TemplateFrom{Secret: &v1alpha1.TemplateSource{Name: "A"}}), []string{`templateFrom[1]: secret.name: "A" cannot be the name of a Secret`}},
		"ItemsEmpty":     {"The items of a ConfigMap must not be empty.", source(func(s *v1alpha1.TemplateSource) { s.Items = nil }), []string{"templateFrom[0]: configMap.items is empty; name the keys"}},
		"SecretItems":    {"The items of a Secret must not be empty.", from(v1alpha1.TemplateFrom{Secret: &v1alpha1.TemplateSource{Name: "t"}}), []string{"templateFrom[1]: secret.items is empty"}},
		"OwnTarget":      {"A template must not read the Secret that it writes.", from(v1alpha1.TemplateFrom{Secret: &v1alpha1.TemplateSource{Name: "db", Items: []v1alpha1.TemplateSourceItem{{Key: "k"}}}}), []string{`templateFrom[1]: secret.name: "db" is the Secret that this ExternalSecret writes; keep the templates in another`}},
		"TemplateAs":     {"A value from a later CRD is refused.", source(func(s *v1alpha1.TemplateSource) { s.Items[0].TemplateAs = "Lines" }), []string{"templateFrom[0]: configMap.items[0]: templateAs: Lines is not supported"}},
		"SecretAs":       {"The error names the field of a Secret.", from(secretText("k", "Lines", "")), []string{"templateFrom[1]: secret.items[0]: templateAs: Lines"}},
		"FirstOfSeveral": {"The same one of several errors is reported each time.", &template{Data: map[string]string{"b/": "", "a/": "", "c/": ""}}, []string{"data[a/]"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := checkTemplate(tc.template, "db")
			if len(tc.want) == 0 {
				if err != nil {
					t.Errorf("\n%s\ncheckTemplate(): %v", tc.reason, err)
				}
				return
			}
			wantText(t, tc.reason, err, tc.want...)
			_, err = NewPlan(external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = tc.template }))
			wantText(t, tc.reason, err, "spec.target.template."+tc.want[0])
		})
	}
}

func TestTemplateRefsOf(t *testing.T) {
	got := templateRefsOf(&v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{literal("", ""), secretText("a", "", ""), configMap("a", "", ""), configMap("b", "", "Labels")}})
	if diff := cmp.Diff([]TextRef{{Secret: true, Name: "t"}, {Name: "t"}}, got); diff != "" {
		t.Errorf("A Secret and a ConfigMap of the same name are different, and each is read once.\ntemplateRefsOf(): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]TextRef(nil), templateRefsOf(nil)); diff != "" {
		t.Errorf("Without a template no texts are read.\ntemplateRefsOf(): -want, +got:\n%s", diff)
	}
}

// shaped is the result of a template, as text.
type shaped struct{ Data, Labels, Annotations map[string]string }

func shapedOf(out Output) shaped {
	var data map[string]string
	for k, v := range out.Data {
		if data == nil {
			data = map[string]string{}
		}
		data[k] = string(v)
	}
	s := shaped{Data: data}
	if len(out.Labels) > 0 {
		s.Labels = out.Labels
	}
	if len(out.Annotations) > 0 {
		s.Annotations = out.Annotations
	}
	return s
}

// sourcesForTest are the templates of the ConfigMap t and the Secret t.
var sourcesForTest = TemplateSources{
	{Name: "t"}: {
		"one": "map {{ .user }}", "many": "one: map\ntwo: {{ .user }}\n", "list": "[a, b]", "example.com_a": "{{ .user }}", "hidden": canary + "{{",
		"a b": canary, "keys": "{{ .password }}: x", "twice": `{1: a, "1": b}`,
	},
	{Secret: true, Name: "t"}: {"one": "secret {{ .user }}", "hidden": canary + "{{ .nope }}"},
}

func readForTest() Output {
	data := map[string][]byte{"user": []byte("ann"), "password": []byte(canary), "bytes": []byte("\xff\x00"), "yaml": []byte("a: 1\nb: [2]\n")}
	return Output{Data: data, Values: len(data)}
}

func TestRenderTemplate(t *testing.T) {
	type (
		m        = map[string]string
		template = v1alpha1.Template
		from     = []v1alpha1.TemplateFrom
	)
	read := func(changed m) m {
		all := shapedOf(readForTest()).Data
		maps.Copy(all, changed)
		return all
	}
	cases := map[string]struct {
		reason   string
		template template
		want     shaped
	}{
		"Nothing":      {"An empty template keeps the values.", template{}, shaped{Data: read(nil)}},
		"Replace":      {"By default only the keys of the template are kept.", template{Data: m{"a": "{{ .user }}!", "b": "text"}}, shaped{Data: m{"a": "ann!", "b": "text"}}},
		"ReplaceNamed": {"Replace can be set explicitly.", template{MergePolicy: "Replace", Data: m{"a": "{{ .user }}"}}, shaped{Data: m{"a": "ann"}}},
		"Merge":        {"Under Merge the values are kept, unless the template makes their keys.", template{MergePolicy: "Merge", Data: m{"user": "{{ .user | upper }}", "a": "x"}}, shaped{Data: read(m{"user": "ANN", "a": "x"})}},
		"EmptyText":    {"An empty text is an empty value.", template{Data: m{"a": ""}}, shaped{Data: m{"a": ""}}},
		"Bytes":        {"A value can be any bytes.", template{Data: m{"a": "{{ .bytes }}"}}, shaped{Data: m{"a": "\xff\x00"}}},
		"EachItsOwn":   {"A template uses the provider's values, not the results of other templates.", template{MergePolicy: "Merge", Data: m{"password": "x", "user": "{{ .password | len }}"}}, shaped{Data: read(m{"password": "x", "user": fmt.Sprint(len(canary))})}},

		"Metadata":        {"Templates of labels and annotations keep the values.", template{Metadata: v1alpha1.TemplateMetadata{Labels: m{"a": "{{ .user }}", "b": ""}, Annotations: m{"example.com/c": "for {{ .user }}\n"}}}, shaped{Data: read(nil), Labels: m{"a": "ann", "b": ""}, Annotations: m{"example.com/c": "for ann\n"}}},
		"MetadataFrom":    {"Templates of labels and annotations from elsewhere keep the values.", template{TemplateFrom: from{literal("a: '{{ .user }}'", "Labels"), configMap("example.com_a", "", "Annotations")}}, shaped{Data: read(nil), Labels: m{"a": "ann"}, Annotations: m{"example.com_a": "ann"}}},
		"MetadataAndData": {"A template of data replaces the values, also next to one of labels.", template{Metadata: labels(m{"a": "x"}), Data: m{"b": "y"}}, shaped{Data: m{"b": "y"}, Labels: m{"a": "x"}}},
		"LabelLast":       {"The labels and annotations of the spec win over those from elsewhere.", template{TemplateFrom: from{literal("a: from", "Labels"), literal("a: from", "Annotations")}, Metadata: v1alpha1.TemplateMetadata{Labels: m{"a": "spec"}, Annotations: m{"a": "spec"}}}, shaped{Data: read(nil), Labels: m{"a": "spec"}, Annotations: m{"a": "spec"}}},

		"ConfigMap":     {"Templates can come from a ConfigMap.", template{TemplateFrom: from{configMap("one", "", "")}}, shaped{Data: m{"one": "map ann"}}},
		"Secret":        {"Templates can come from a Secret; Values can be set explicitly.", template{TemplateFrom: from{secretText("one", "Values", "Data")}}, shaped{Data: m{"one": "secret ann"}}},
		"KeysAndValues": {"A template can make keys and values.", template{TemplateFrom: from{configMap("many", "KeysAndValues", "")}}, shaped{Data: m{"one": "map", "two": "ann"}}},
		"Order":         {"A later source wins.", template{TemplateFrom: from{configMap("many", "KeysAndValues", ""), secretText("one", "", "")}}, shaped{Data: m{"one": "secret ann", "two": "ann"}}},
		"OrderBack":     {"A later source wins, whatever its kind.", template{TemplateFrom: from{secretText("one", "", ""), configMap("many", "KeysAndValues", "")}}, shaped{Data: m{"one": "map", "two": "ann"}}},
		"SpecLast":      {"The templates of the spec win over those from elsewhere.", template{TemplateFrom: from{literal("one: literal", ""), configMap("one", "", "")}, Data: m{"one": "spec"}}, shaped{Data: m{"one": "spec"}}},
		"MergeFrom":     {"Under Merge a template from elsewhere keeps the other values.", template{MergePolicy: "Merge", TemplateFrom: from{literal("user: x", "")}}, shaped{Data: read(m{"user": "x"})}},
		"Items":         {"Items are rendered in their order.", template{TemplateFrom: from{{ConfigMap: &v1alpha1.TemplateSource{Name: "t", Items: []v1alpha1.TemplateSourceItem{{Key: "one"}, {Key: "many", TemplateAs: "KeysAndValues"}}}}}}, shaped{Data: m{"one": "map", "two": "ann"}}},

		"YAMLNothing":  {"The output can be empty.", template{TemplateFrom: from{literal("{{ if not .user }}a: b{{ end }}\n", "")}}, shaped{}},
		"YAMLComment":  {"The output can be a comment.", template{TemplateFrom: from{literal("# {{ .user }}\n", "")}}, shaped{}},
		"YAMLEmpty":    {"The output can be an empty mapping.", template{TemplateFrom: from{literal("{}", "")}}, shaped{}},
		"YAMLScalars":  {"Scalars of every type are used as written.", template{TemplateFrom: from{literal("a: 1\nb: 1.50\nc: true\nd: yes\ne: null\nf: ~\ng:\nh: 2020-01-02\ni: 0x1F\nj: 012\nk: 1e3\nl: .inf\n", "")}}, shaped{Data: m{"a": "1", "b": "1.50", "c": "true", "d": "yes", "e": "null", "f": "~", "g": "", "h": "2020-01-02", "i": "0x1F", "j": "012", "k": "1e3", "l": ".inf"}}},
		"YAMLQuotes":   {"Quotes are removed, and escapes are resolved.", template{TemplateFrom: from{literal(`{a: 'it''s', "b": "\ta\u00e4", c: " x "}`, "")}}, shaped{Data: m{"a": "it's", "b": "\taä", "c": " x "}}},
		"YAMLKeys":     {"Keys of every type are used as written.", template{TemplateFrom: from{literal("1: a\ntrue: b\n1.0: c\n", "")}}, shaped{Data: m{"1": "a", "true": "b", "1.0": "c"}}},
		"YAMLBlocks":   {"Blocks are values of several lines.", template{TemplateFrom: from{literal("a: |\n  one\n  two: 2\nb: |-\n  one\n\n  two\nc: >\n  one\n  two\nd: |\n{{ .yaml | indent 2 }}", "")}}, shaped{Data: m{"a": "one\ntwo: 2\n", "b": "one\n\ntwo", "c": "one two\n", "d": "a: 1\nb: [2]\n"}}},
		"YAMLDocument": {"The output can have document markers.", template{TemplateFrom: from{literal("%YAML 1.1\n---\na: b\n...\n", "")}}, shaped{Data: m{"a": "b"}}},
		"YAMLJSON":     {"JSON is YAML.", template{TemplateFrom: from{literal(`{{ dict "a" .user "b" 1 | toJson }}`, "")}}, shaped{Data: m{"a": "ann", "b": "1"}}},
		"YAMLAnchor":   {"An anchor without an alias is ignored.", template{TemplateFrom: from{literal("a: &x b", "")}}, shaped{Data: m{"a": "b"}}},

		"AnnotationsFull": {"The maximum size of all annotations is accepted.", template{Metadata: annotations(m{"ab": fmt.Sprintf("{{ repeat %d \"x\" }}", 252<<10-2)})}, shaped{Data: read(nil), Annotations: m{"ab": strings.Repeat("x", 252<<10-2)}}},
		"LabelFull":       {"A label value of 63 characters is accepted.", template{Metadata: labels(m{"a": `{{ repeat 63 "x" }}`})}, shaped{Data: read(nil), Labels: m{"a": strings.Repeat("x", 63)}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, before := readForTest(), readForTest()
			same := out.Data
			if err := renderTemplate(&tc.template, &out, sourcesForTest); err != nil {
				t.Fatalf("\n%s\nrenderTemplate(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, shapedOf(out)); diff != "" {
				t.Errorf("\n%s\nrenderTemplate(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before.Data, same); diff != "" {
				t.Errorf("\n%s\nrenderTemplate() changes what was read: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRenderTemplateErrors(t *testing.T) {
	type (
		m        = map[string]string
		template = v1alpha1.Template
	)
	from := func(f ...v1alpha1.TemplateFrom) template { return template{TemplateFrom: f} }
	templateOf := func(text string) template { return from(literal(text, "")) }
	missing := configMap("one", "", "")
	missing.ConfigMap.Name = "gone"
	const at, lit = "spec.target.template.", "spec.target.template.templateFrom[0].literal: "
	cases := map[string]struct {
		reason   string
		template template
		want     []string
	}{
		"Data":           {"The error names the key and the place.", template{Data: m{"a": "\n {{ .nope }}"}}, []string{at + "data[a]: line 2, column 5: ", `no key "nope"`}},
		"Label":          {"The error names the label.", template{Metadata: labels(m{"a": "{{ .password | atoi | fail }}"})}, []string{at + "metadata.labels[a]: line 1, column "}},
		"Annotation":     {"The error names the annotation.", template{Metadata: annotations(m{"a": "{{ "})}, []string{at + "metadata.annotations[a]: line 1: "}},
		"Literal":        {"The error names the literal.", from(literal("a: b", ""), literal("{{ .password.x }}", "")), []string{at + "templateFrom[1].literal: line 1, column "}},
		"ConfigMap":      {"The error names the key of the ConfigMap, and shows none of its text.", from(configMap("hidden", "", "")), []string{at + `templateFrom[0] ConfigMap "t" key "hidden": line 1: `}},
		"Secret":         {"The error names the key of the Secret, and shows none of its text.", from(secretText("hidden", "KeysAndValues", "")), []string{at + `templateFrom[0] Secret "t" key "hidden": line 1, column `}},
		"FirstOfSeveral": {"The same one of several errors is reported each time.", template{Data: m{"b": "{{", "a": "{{", "c": "{{"}}, []string{at + "data[a]: "}},
		"SourceMissing":  {"The error names a missing source.", from(missing), []string{at + `templateFrom[0]: ConfigMap "gone" does not exist; create it or correct the name`}},
		"KeyMissing":     {"The error names a missing key.", from(secretText("two", "", "")), []string{at + `templateFrom[0] Secret "t" key "two": it has no such key`}},
		"SharedBudget":   {"The templates of a Secret share one budget.", template{Data: m{"a": "{{ range 100000 }}{{ end }}", "b": "{{ range 1000000 }}{{ end }}", "c": ""}}, []string{at + "data[b]: ", "too much work"}},

		"NotYAML":     {"The output of a literal must be YAML.", templateOf("a: b\n  {{ .password }}: d"), []string{lit + "the output is not YAML"}},
		"Tab":         {"The output must not be indented with tabs.", templateOf("a:\n\t{{ .password }}"), []string{lit + "the output is not YAML"}},
		"Control":     {"The output must not contain other bytes.", templateOf("a: {{ .bytes }}"), []string{lit + "the output is not YAML"}},
		"UnknownName": {"An alias without an anchor is not YAML.", templateOf("a: *{{ .password }}"), []string{lit + "the output is not YAML"}},
		"Scalar":      {"The output must be a mapping.", templateOf("{{ .password }}"), []string{lit + "the output is not a YAML mapping of keys to values"}},
		"Null":        {"null is not a mapping.", templateOf("null"), []string{lit + "the output is not a YAML mapping"}},
		"List":        {"A list is not a mapping.", from(configMap("list", "KeysAndValues", "")), []string{at + `templateFrom[0] ConfigMap "t" key "list": the output is not a YAML mapping`}},
		"Documents":   {"A second document is refused, because it would be lost.", templateOf("a: b\n---\nc: {{ .password }}"), []string{lit + "the output is not a single YAML document"}},
		"BadDocument": {"An invalid second document is refused.", templateOf("a: b\n---\nc: {{ .password }}: d"), []string{lit + "the output is not a single YAML document"}},
		"Nested":      {"A value must not be a mapping.", templateOf("a: b\nc:\n  {{ .password }}: e"), []string{lit + "line 2 of the output: ", "as a block with |"}},
		"NestedList":  {"A value must not be a list.", templateOf("a: [{{ .password }}]"), []string{lit + "line 1 of the output: "}},
		"Alias":       {"A value must not be an alias.", templateOf("a: &x {{ .password }}\nb: *x"), []string{lit + "line 2 of the output: "}},
		"AliasKey":    {"A key must not be an alias.", templateOf("a: &x {{ .password }}\n*x : b"), []string{lit + "line 2 of the output: "}},
		"MergeKey":    {"A merge key is refused.", templateOf("<<: {a: b}"), []string{lit + "line 1 of the output: "}},
		"ComplexKey":  {"A key must not be a list.", templateOf("? [{{ .password }}]\n: b"), []string{lit + "line 1 of the output: "}},

		"Twice":      {"A key must not occur twice.", templateOf("{{ .user }}: a\nb: {{ .password }}\nann: c"), []string{lit + "line 3 of the output: the key is already in line 1; output each key once"}},
		"TwiceSpelt": {"A key must not occur twice in different spellings.", from(configMap("twice", "KeysAndValues", "Labels")), []string{at + `templateFrom[0] ConfigMap "t" key "twice": line 1 of the output: the key is already in line 1`}},

		"YieldedKey":        {"A key in the output might be a value, so the error does not show it.", templateOf("a: b\n\"{{ .password }}/\": c"), []string{lit + "line 2 of the output: the key cannot be a key of a Secret"}},
		"YieldedEmpty":      {"A key in the output must not be empty.", templateOf("'': {{ .password }}"), []string{lit + "line 1 of the output: the key cannot be a key of a Secret"}},
		"YieldedLabel":      {"The name of a label in the output must be valid.", from(literal("'{{ .password }} x': c", "Labels")), []string{lit + "line 1 of the output: the key cannot be a label or annotation"}},
		"YieldedAnnotation": {"The name of an annotation in the output must be valid.", from(literal("'{{ .password }} x': c", "Annotations")), []string{lit + "line 1 of the output: the key cannot be a label or annotation"}},
		"YieldedOwn":        {"The operator's labels cannot be set by an output.", from(literal("{{ .password }}.direct-secrets.io/managed: 'no'", "Labels")), []string{lit + "line 1 of the output: the key is reserved for the operator"}},
		"YieldedMark":       {"The operator's marks cannot be set by an output.", from(literal("direct-secrets.io/es.x: '{}'", "Annotations")), []string{lit + "line 1 of the output: the key is reserved for the operator"}},
		"ItemKey":           {"A key of a source must be a valid key of a Secret.", from(configMap("a b", "", "")), []string{at + `templateFrom[0] ConfigMap "t" key "a b": the key cannot be a key of a Secret`}},

		"LabelValue":      {"The value of a label must not contain a space.", template{Metadata: labels(m{"a": "{{ .password }} x"})}, []string{at + "metadata.labels[a]: the value is not a valid label value"}},
		"LabelLong":       {"The value of a label has at most 63 characters.", template{Metadata: labels(m{"a": `{{ repeat 64 "x" }}`})}, []string{at + "metadata.labels[a]: the value is not a valid label value", "at most 63"}},
		"LabelEnd":        {"The value of a label must end with a letter or digit.", from(literal("a: {{ .password }}-", "Labels")), []string{lit + "line 1 of the output: the value is not a valid label value", "a letter or digit"}},
		"AnnotationBytes": {"The value of an annotation must be text.", template{Metadata: annotations(m{"a": "{{ .password }}{{ .bytes }}"})}, []string{at + "metadata.annotations[a]: the value is not UTF-8, as annotations require", "b64enc"}},
		"AnnotationsFull": {"All annotations count, including their names.", template{Metadata: annotations(m{"ab": `{{ repeat 200000 "x" }}`, "cd": fmt.Sprintf("{{ repeat %d \"x\" }}", 252<<10-200000-3)})}, []string{"spec.target.template: the annotations have 258049 bytes in total, at most 258048 are allowed"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := readForTest()
			err := renderTemplate(&tc.template, &out, sourcesForTest)
			wantError(t, tc.reason, err, provider.Template, tc.want...)
		})
	}
}

// TestShape checks when the template is rendered, and how its output is checked.
func TestShape(t *testing.T) {
	type target = v1alpha1.Target
	good, fails, static := map[string]string{"k": "{{ .user }}"}, map[string]string{"k": "{{ .nope }}"}, map[string]string{"k": "x"}
	notFound := provider.NewError(provider.NotFound, "it does not exist")
	some, left, none := readForTest(), readForTest(), Output{Data: map[string][]byte{}}
	left.NotFound, none.NotFound = notFound, notFound
	optional := Output{Data: map[string][]byte{}}
	type want struct {
		Data    map[string]string
		Class   provider.Class
		Message string
	}
	asRead := func(o Output) want { return want{Data: shapedOf(o).Data} }
	half := func() map[string]string {
		return map[string]string{"a": `{{ repeat 700000 "x" }}`, "b": `{{ repeat 700000 "x" }}`}
	}
	cases := map[string]struct {
		reason string
		target target
		read   Output
		want   want
	}{
		"None":           {"Without a template the values do not change.", target{}, some, asRead(some)},
		"Runs":           {"With a template its output counts.", target{Template: &v1alpha1.Template{Data: good}}, some, want{Data: map[string]string{"k": "ann"}}},
		"Fails":          {"A template can fail.", target{Template: &v1alpha1.Template{Data: fails}}, some, want{Class: provider.Template, Message: "spec.target.template.data[k]: "}},
		"RetainMissing":  {"Under Retain a missing value keeps the Secret, and the template is not rendered.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Retain"}, left, asRead(left)},
		"UnsetMissing":   {"Retain is the default.", target{Template: &v1alpha1.Template{Data: fails}}, none, asRead(none)},
		"RetainOptional": {"Missing optional values do not count as missing, so the template is rendered.", target{Template: &v1alpha1.Template{Data: static}, DeletionPolicy: "Retain"}, optional, want{Data: static}},
		"DeleteMissing":  {"Under Delete the Secret is deleted, and the template is not rendered.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Delete"}, none, want{}},
		"DeleteStatic":   {"Under Delete a template without values does not keep the Secret.", target{Template: &v1alpha1.Template{Data: static}, DeletionPolicy: "Delete"}, none, want{}},
		"DeleteTyped":    {"Under Delete a type does not keep the Secret.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/tls", Data: static}, DeletionPolicy: "Delete"}, none, want{}},
		"DeleteSome":     {"Under Delete the remaining values are rendered.", target{Template: &v1alpha1.Template{Data: good}, DeletionPolicy: "Delete"}, left, want{Data: map[string]string{"k": "ann"}}},
		"DeleteSomeFail": {"Under Delete a template that needs a missing value fails.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Delete"}, left, want{Class: provider.Template, Message: "spec.target.template.data[k]: "}},
		"MergeMissing":   {"Under Merge the keys are removed, and the template is not rendered.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Merge"}, none, want{}},
		"MergeTyped":     {"Under Merge a Secret whose type needs keys cannot lose all of them.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/tls", Data: static}, DeletionPolicy: "Merge"}, none, want{Class: provider.Invalid, Message: "no value exists any more, and spec.target.deletionPolicy: Merge cannot empty a Secret of type kubernetes.io/tls; use deletionPolicy: Delete or Retain"}},
		"MergeTypedFree": {"Under Merge a Secret of another type can lose all keys.", target{Template: &v1alpha1.Template{Type: "example.com/any", Data: static}, DeletionPolicy: "Merge"}, none, want{}},
		"MergeTypedPart": {"Under creationPolicy Merge other owners can add the missing keys.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/tls", Data: static}, DeletionPolicy: "Merge", CreationPolicy: "Merge"}, none, want{}},
		"MergeSome":      {"Under Merge the remaining values are rendered.", target{Template: &v1alpha1.Template{Data: good}, DeletionPolicy: "Merge"}, left, want{Data: map[string]string{"k": "ann"}}},
		"MergeOptional":  {"Missing optional values do not count as missing, so the template is rendered.", target{Template: &v1alpha1.Template{Data: static}, DeletionPolicy: "Merge"}, optional, want{Data: static}},

		"Type":        {"The type is checked after the template.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/basic-auth", Data: good}}, some, want{Class: provider.Invalid, Message: "the content is not valid for a Secret of type kubernetes.io/basic-auth: "}},
		"TypeFits":    {"The values can fit the type without a template of data.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/basic-auth", Metadata: labels(good)}}, some, asRead(some)},
		"TypeOfMerge": {"Under creationPolicy Merge other owners can add the missing keys.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/basic-auth", Data: good}, CreationPolicy: "Merge"}, some, want{Data: map[string]string{"k": "ann"}}},
		"Large":       {"The output of all templates must fit into a Secret.", target{Template: &v1alpha1.Template{Data: half()}}, some, want{Class: provider.Invalid, Message: `the values of Secret "db" have 1400000 bytes in total`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(func(s *v1alpha1.ExternalSecretSpec) { s.Target = tc.target })
			out, err := Shape(es, Plan{Target: "db"}, tc.read, nil)
			if tc.want.Message != "" {
				wantError(t, tc.reason, err, tc.want.Class, tc.want.Message)
			} else if err != nil {
				t.Fatalf("\n%s\nShape(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want.Data, shapedOf(out).Data); diff != "" {
				t.Errorf("\n%s\nShape(): -want, +got:\n%s", tc.reason, diff)
			}
			if err == nil && out.NotFound != tc.read.NotFound {
				t.Errorf("\n%s\nShape(): the error for missing values is lost", tc.reason)
			}
		})
	}
}

// FuzzShape renders any template over any values, as data, label and annotation, and any literal.
func FuzzShape(f *testing.F) {
	seeds := []string{
		"", "{{ .user }}", `{{ .user | upper | b64enc }}`, "{{ .nope }}", `{{ range 1000000000000 }}{{ end }}`, `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
		`{{ fromYaml .user | toJson }}`, `{{ .user | pkcs12key }}`, `{{ repeat 1000000 .user }}`, "{{ .user", `{{ jwkPublicKeyPem .user }}`, `{{ filterPEM "CERTIFICATE" .user }}`,
	}
	literals := []string{
		"", "a: {{ .user }}", "{{ .user }}", "{{ .user }}: b", "a: [1]", "a: &x b\nc: *x", "a: |\n{{ .user | indent 2 }}", "a: b\n---\nc: d", "'{{ .user }} x': y",
		"{{ .user }}.direct-secrets.io/x: y", "? a\n: b", "<<: {a: b}", "{{ repeat 100000 \"a: b\\n\" }}", "a: \"\\xff\"", "%YAML 1.9\n---\na: b", "!!binary a: !!int b",
	}
	for i, text := range seeds {
		for j, l := range literals {
			f.Add(text, "value", l, byte(i+3*j))
		}
	}
	for i, v := range []string{"a: b", "\xff\x00", "\n---\n", "'\"\\", "{{ .user }}", "*a", "-----BEGIN A-----\n", `{"kty":"RSA"}`} {
		f.Add("{{ .user }}", v, "{{ .user }}: {{ .user }}", byte(i))
	}
	f.Fuzz(func(t *testing.T, text, value, lit string, flags byte) {
		if strings.Contains(text+lit, canary) {
			return // The error can quote a template that contains it, up to a name.
		}
		targets := []string{"", "Data", "Labels", "Annotations"}
		types := []corev1.SecretType{"", corev1.SecretTypeTLS, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeSSHAuth}
		tmpl := &v1alpha1.Template{
			Type: string(types[flags>>2&3]), TemplateFrom: []v1alpha1.TemplateFrom{literal(lit, targets[flags&3])},
			Data: map[string]string{"a": text}, Metadata: v1alpha1.TemplateMetadata{Annotations: map[string]string{"a": text}},
		}
		if flags&16 > 0 {
			tmpl.MergePolicy = mergeMerge
		}
		if flags&32 > 0 {
			tmpl.Metadata.Labels = map[string]string{"a": text}
		}
		if flags&64 > 0 {
			tmpl.TemplateFrom = append(tmpl.TemplateFrom, secretText("k", templateAsKeysAndValues, targets[flags&3]))
		}
		read := Output{Data: map[string][]byte{"user": []byte(value + canary), "tls.crt": []byte(value), "tls.key": []byte(value), ".dockerconfigjson": []byte(value + canary)}, Values: 4}
		out, err := Shape(external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = tmpl }), Plan{Target: "db"}, read, TemplateSources{{Secret: true, Name: "t"}: {"k": lit}})
		if err != nil {
			c := class(err)
			shown := fmt.Sprintf("%v %+v %#v", err, err, err)
			if strings.Contains(shown, canary) || (c != provider.Template && c != provider.Invalid) {
				t.Errorf("Shape(): class %s: %s", c, shown)
			}
			if diff := cmp.Diff(Output{}, out); diff != "" {
				t.Errorf("Shape(): output with an error:\n%s", diff)
			}
			return
		}
		checkShaped(t, out)
	})
}

// checkShaped fails the test for an output that the API server would refuse.
func checkShaped(t *testing.T, out Output) {
	t.Helper()
	size, noted := 0, 0
	for k, v := range out.Data {
		size += len(v)
		if err := checkKey(k); err != nil {
			t.Error(err)
		}
	}
	for k, v := range out.Labels {
		if err := checkMetadataKey(k); err != nil || len(v) > 63 {
			t.Errorf("label %q: %q, %v", k, v, err)
		}
	}
	for k, v := range out.Annotations {
		noted += len(k) + len(v)
		if err := checkMetadataKey(k); err != nil {
			t.Error(err)
		}
	}
	if size > corev1.MaxSecretSize || noted > maxAnnotations {
		t.Errorf("%d bytes of data, %d of annotations", size, noted)
	}
}
