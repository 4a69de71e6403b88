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

// literal is a template in the spec that yields keys and values.
func literal(text, target string) v1alpha1.TemplateFrom {
	return v1alpha1.TemplateFrom{Literal: &text, Target: target}
}

// configMap takes one template from the ConfigMap t, secretText one from the Secret t.
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

// wantError says what is wrong with an error that must be of a class, say all of some texts, the first
// of them at its beginning, and show no value.
func wantError(t *testing.T, reason string, err error, c provider.Class, says ...string) {
	t.Helper()
	if diff := cmp.Diff(c, class(err)); diff != "" {
		t.Errorf("\n%s\nclass of %q: -want, +got:\n%s", reason, err, diff)
	}
	wantText(t, reason, err, says...)
}

func wantText(t *testing.T, reason string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("\n%s\nno error", reason)
	}
	msg := err.Error()
	if len(says) > 0 && !strings.HasPrefix(msg, says[0]) {
		t.Errorf("\n%s\n%q does not begin with %q", reason, msg, says[0])
	}
	for _, s := range says {
		if !strings.Contains(msg, s) {
			t.Errorf("\n%s\n%q does not say %q", reason, msg, s)
		}
	}
	if strings.Contains(msg, canary) || len(msg) > 600 {
		t.Errorf("\n%s\na message of %d bytes that shows a value or too much: %.600q", reason, len(msg), msg)
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
		// want is what the error says, its beginning first; none means that there is no error.
		want []string
	}{
		"None":  {"There need be no template.", nil, nil},
		"Empty": {"An empty template asks for nothing.", &template{}, nil},
		"Whole": {
			"All that is served.",
			&template{
				Type: "kubernetes.io/tls", MergePolicy: "Merge", Data: map[string]string{"tls.crt": "{{ .a }}", "A-b_c.9": ""},
				Metadata:     v1alpha1.TemplateMetadata{Labels: map[string]string{"a": "{{ .a }}", "example.com/b": "{{"}, Annotations: map[string]string{"example.com/c.D_e": ""}},
				TemplateFrom: []v1alpha1.TemplateFrom{literal("", ""), literal("", "Labels"), configMap("k", "Values", "Data"), secretText("k", "KeysAndValues", "Annotations")},
			}, nil,
		},
		"Replace":      {"Replace can be written out.", &template{MergePolicy: "Replace"}, nil},
		"OtherType":    {"Any other type is somebody's own matter.", &template{Type: "example.com/any"}, nil},
		"HelmType":     {"So is one that begins like a refused one.", &template{Type: "kubernetes.io/service-account-token-2"}, nil},
		"Similar":      {"A domain that only ends like the operator's is another.", &template{Metadata: labels(map[string]string{"undirect-secrets.io/a": "", "direct-secrets.io.example.com/a": ""})}, nil},
		"SameName":     {"A ConfigMap may have the name of the Secret.", from(v1alpha1.TemplateFrom{ConfigMap: &v1alpha1.TemplateSource{Name: "db", Items: []v1alpha1.TemplateSourceItem{{Key: "k"}}}}), nil},
		"EmptyLiteral": {"An empty literal is one.", from(literal("", "")), nil},

		"AccountToken":   {"Its token would be made by the cluster.", &template{Type: "kubernetes.io/service-account-token"}, []string{"type: kubernetes.io/service-account-token ", "refused"}},
		"BootstrapToken": {"With it a node joins the cluster.", &template{Type: "bootstrap.kubernetes.io/token"}, []string{"type: bootstrap.kubernetes.io/token ", "refused"}},
		"MergePolicy":    {"A later CRD may know more.", &template{MergePolicy: "Deep"}, []string{"mergePolicy: Deep is not supported"}},

		"DataKey":     {"A key of a Secret has no slash.", &template{Data: map[string]string{"ok": "", "a/b": canary}}, []string{`data[a/b]: "a/b" cannot be a key of a Secret; use letters`}},
		"DataEmpty":   {"A key of a Secret is not empty.", &template{Data: map[string]string{"": canary}}, []string{`data[]: "" cannot be a key`}},
		"DataDots":    {"The kubelet uses names that begin with two dots.", &template{Data: map[string]string{"..data": canary}}, []string{`data[..data]: `}},
		"DataLong":    {"The message does not repeat more than it must.", &template{Data: map[string]string{long: canary}}, []string{"data[" + long[:64] + `]: "` + long[:64] + `" cannot`}},
		"Label":       {"A label has no space.", &template{Metadata: labels(map[string]string{"a b": canary})}, []string{`metadata.labels[a b]: "a b" cannot be a label or annotation: `}},
		"LabelPrefix": {"The prefix of a label is a domain.", &template{Metadata: labels(map[string]string{"A_B/c": canary})}, []string{`metadata.labels[A_B/c]: `}},
		"LabelLong":   {"A name has at most 63 characters.", &template{Metadata: labels(map[string]string{long[:64]: canary})}, []string{"metadata.labels[" + long[:64] + "]: ", "63"}},
		"Annotation":  {"An annotation has a name.", &template{Metadata: annotations(map[string]string{"example.com/": canary})}, []string{"metadata.annotations[example.com/]: "}},

		"OwnLabel":      {"By its labels the operator knows what it may change.", &template{Metadata: labels(map[string]string{"direct-secrets.io/managed": canary})}, []string{"metadata.labels[direct-secrets.io/managed]: ", "the operator's own; choose another"}},
		"ModuleLabel":   {"So it does by those of each module.", &template{Metadata: labels(map[string]string{"aws.direct-secrets.io/managed": canary})}, []string{"metadata.labels[aws.direct-secrets.io/managed]: ", "the operator's own"}},
		"OwnAnnotation": {"The marks are annotations.", &template{Metadata: annotations(map[string]string{"direct-secrets.io/es.abc": canary})}, []string{"metadata.annotations[direct-secrets.io/es.abc]: ", "the operator's own"}},
		"DeepDomain":    {"However deep the domain is.", &template{Metadata: annotations(map[string]string{"a.b.direct-secrets.io/x": canary})}, []string{"metadata.annotations[a.b.direct-secrets.io/x]: ", "the operator's own"}},

		"NoSource":       {"A source is named.", from(v1alpha1.TemplateFrom{}), []string{"templateFrom[1]: it has 0 of configMap, secret and literal; set exactly one"}},
		"TwoSources":     {"Which of two comes first would be chance.", from(v1alpha1.TemplateFrom{ConfigMap: configMap("k", "", "").ConfigMap, Literal: new(string)}), []string{"templateFrom[1]: it has 2 of"}},
		"ThreeSources":   {"So it would be for three.", from(v1alpha1.TemplateFrom{ConfigMap: configMap("k", "", "").ConfigMap, Secret: configMap("k", "", "").ConfigMap, Literal: new(string)}), []string{"templateFrom[1]: it has 3 of"}},
		"Target":         {"Finalizers cannot be set.", from(literal(canary, "Finalizers")), []string{"templateFrom[1]: target: Finalizers is not supported"}},
		"OwnerTarget":    {"Owner references cannot be set.", from(literal(canary, "OwnerReferences")), []string{"templateFrom[1]: target: OwnerReferences is not supported"}},
		"SourceName":     {"A ConfigMap has a name.", source(func(s *v1alpha1.TemplateSource) { s.Name = "" }), []string{`templateFrom[0]: configMap.name: "" cannot be the name of a ConfigMap`}},
		"SourceBadName":  {"It is not a path.", source(func(s *v1alpha1.TemplateSource) { s.Name = "../other" }), []string{`templateFrom[0]: configMap.name: "../other" cannot`}},
		"SecretBadName":  {"Nor is that of a Secret.", from(v1alpha1.TemplateFrom{Secret: &v1alpha1.TemplateSource{Name: "A"}}), []string{`templateFrom[1]: secret.name: "A" cannot be the name of a Secret`}},
		"ItemsEmpty":     {"Not every key is a template.", source(func(s *v1alpha1.TemplateSource) { s.Items = nil }), []string{"templateFrom[0]: configMap.items is empty; name the keys"}},
		"SecretItems":    {"Nor is it in a Secret.", from(v1alpha1.TemplateFrom{Secret: &v1alpha1.TemplateSource{Name: "t"}}), []string{"templateFrom[1]: secret.items is empty"}},
		"OwnTarget":      {"A Secret cannot be made of itself.", from(v1alpha1.TemplateFrom{Secret: &v1alpha1.TemplateSource{Name: "db", Items: []v1alpha1.TemplateSourceItem{{Key: "k"}}}}), []string{`templateFrom[1]: secret.name: "db" is the Secret that this ExternalSecret writes; keep the templates in another`}},
		"TemplateAs":     {"A later CRD may know more.", source(func(s *v1alpha1.TemplateSource) { s.Items[0].TemplateAs = "Lines" }), []string{"templateFrom[0]: configMap.items[0]: templateAs: Lines is not supported"}},
		"SecretAs":       {"The field of a Secret is named.", from(secretText("k", "Lines", "")), []string{"templateFrom[1]: secret.items[0]: templateAs: Lines"}},
		"FirstOfSeveral": {"Of several mistakes the same one is reported each time.", &template{Data: map[string]string{"b/": "", "a/": "", "c/": ""}}, []string{"data[a/]"}},
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

func TestTextsOf(t *testing.T) {
	got := textsOf(&v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{literal("", ""), secretText("a", "", ""), configMap("a", "", ""), configMap("b", "", "Labels")}})
	if diff := cmp.Diff([]TextRef{{Secret: true, Name: "t"}, {Name: "t"}}, got); diff != "" {
		t.Errorf("A Secret and a ConfigMap of one name are two; each is read once.\ntextsOf(): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]TextRef(nil), textsOf(nil)); diff != "" {
		t.Errorf("Without a template nothing is read.\ntextsOf(): -want, +got:\n%s", diff)
	}
}

// A shaped is what a template yields, in strings.
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

// textsForTest are templates of the ConfigMap and the Secret t.
var textsForTest = Texts{
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
		"Nothing":      {"A template that yields nothing leaves the values.", template{}, shaped{Data: read(nil)}},
		"Replace":      {"By default only what the template yields is there.", template{Data: m{"a": "{{ .user }}!", "b": "text"}}, shaped{Data: m{"a": "ann!", "b": "text"}}},
		"ReplaceNamed": {"Replace can be written out.", template{MergePolicy: "Replace", Data: m{"a": "{{ .user }}"}}, shaped{Data: m{"a": "ann"}}},
		"Merge":        {"Under Merge the values stay, unless the template yields their keys.", template{MergePolicy: "Merge", Data: m{"user": "{{ .user | upper }}", "a": "x"}}, shaped{Data: read(m{"user": "ANN", "a": "x"})}},
		"EmptyText":    {"An empty template yields an empty value.", template{Data: m{"a": ""}}, shaped{Data: m{"a": ""}}},
		"Bytes":        {"Values need not be text.", template{Data: m{"a": "{{ .bytes }}"}}, shaped{Data: m{"a": "\xff\x00"}}},
		"EachItsOwn":   {"A template reads what the provider holds, not what another one yields.", template{MergePolicy: "Merge", Data: m{"password": "x", "user": "{{ .password | len }}"}}, shaped{Data: read(m{"password": "x", "user": fmt.Sprint(len(canary))})}},

		"Metadata":        {"Labels and annotations leave the values.", template{Metadata: v1alpha1.TemplateMetadata{Labels: m{"a": "{{ .user }}", "b": ""}, Annotations: m{"example.com/c": "for {{ .user }}\n"}}}, shaped{Data: read(nil), Labels: m{"a": "ann", "b": ""}, Annotations: m{"example.com/c": "for ann\n"}}},
		"MetadataFrom":    {"So they do if they come from elsewhere.", template{TemplateFrom: from{literal("a: '{{ .user }}'", "Labels"), configMap("example.com_a", "", "Annotations")}}, shaped{Data: read(nil), Labels: m{"a": "ann"}, Annotations: m{"example.com_a": "ann"}}},
		"MetadataAndData": {"Beside a template of data they do not.", template{Metadata: labels(m{"a": "x"}), Data: m{"b": "y"}}, shaped{Data: m{"b": "y"}, Labels: m{"a": "x"}}},
		"LabelLast":       {"Those of the spec win.", template{TemplateFrom: from{literal("a: from", "Labels"), literal("a: from", "Annotations")}, Metadata: v1alpha1.TemplateMetadata{Labels: m{"a": "spec"}, Annotations: m{"a": "spec"}}}, shaped{Data: read(nil), Labels: m{"a": "spec"}, Annotations: m{"a": "spec"}}},

		"ConfigMap":     {"A ConfigMap holds templates.", template{TemplateFrom: from{configMap("one", "", "")}}, shaped{Data: m{"one": "map ann"}}},
		"Secret":        {"So does a Secret; the values can be named.", template{TemplateFrom: from{secretText("one", "Values", "Data")}}, shaped{Data: m{"one": "secret ann"}}},
		"KeysAndValues": {"A template can yield keys and values.", template{TemplateFrom: from{configMap("many", "KeysAndValues", "")}}, shaped{Data: m{"one": "map", "two": "ann"}}},
		"Order":         {"A later source wins.", template{TemplateFrom: from{configMap("many", "KeysAndValues", ""), secretText("one", "", "")}}, shaped{Data: m{"one": "secret ann", "two": "ann"}}},
		"OrderBack":     {"Whatever it is.", template{TemplateFrom: from{secretText("one", "", ""), configMap("many", "KeysAndValues", "")}}, shaped{Data: m{"one": "map", "two": "ann"}}},
		"SpecLast":      {"The templates of the spec win over all.", template{TemplateFrom: from{literal("one: literal", ""), configMap("one", "", "")}, Data: m{"one": "spec"}}, shaped{Data: m{"one": "spec"}}},
		"MergeFrom":     {"Under Merge the values stay beside those.", template{MergePolicy: "Merge", TemplateFrom: from{literal("user: x", "")}}, shaped{Data: read(m{"user": "x"})}},
		"Items":         {"Items come in their order.", template{TemplateFrom: from{{ConfigMap: &v1alpha1.TemplateSource{Name: "t", Items: []v1alpha1.TemplateSourceItem{{Key: "one"}, {Key: "many", TemplateAs: "KeysAndValues"}}}}}}, shaped{Data: m{"one": "map", "two": "ann"}}},

		"YAMLNothing":  {"A template may yield nothing.", template{TemplateFrom: from{literal("{{ if not .user }}a: b{{ end }}\n", "")}}, shaped{}},
		"YAMLComment":  {"Or a comment.", template{TemplateFrom: from{literal("# {{ .user }}\n", "")}}, shaped{}},
		"YAMLEmpty":    {"Or no keys.", template{TemplateFrom: from{literal("{}", "")}}, shaped{}},
		"YAMLScalars":  {"Scalars of every kind are taken as they are written.", template{TemplateFrom: from{literal("a: 1\nb: 1.50\nc: true\nd: yes\ne: null\nf: ~\ng:\nh: 2020-01-02\ni: 0x1F\nj: 012\nk: 1e3\nl: .inf\n", "")}}, shaped{Data: m{"a": "1", "b": "1.50", "c": "true", "d": "yes", "e": "null", "f": "~", "g": "", "h": "2020-01-02", "i": "0x1F", "j": "012", "k": "1e3", "l": ".inf"}}},
		"YAMLQuotes":   {"Quotes are taken away, escapes followed.", template{TemplateFrom: from{literal(`{a: 'it''s', "b": "\ta\u00e4", c: " x "}`, "")}}, shaped{Data: m{"a": "it's", "b": "\taä", "c": " x "}}},
		"YAMLKeys":     {"Keys are taken as they are written, too.", template{TemplateFrom: from{literal("1: a\ntrue: b\n1.0: c\n", "")}}, shaped{Data: m{"1": "a", "true": "b", "1.0": "c"}}},
		"YAMLBlocks":   {"Values of several lines are blocks.", template{TemplateFrom: from{literal("a: |\n  one\n  two: 2\nb: |-\n  one\n\n  two\nc: >\n  one\n  two\nd: |\n{{ .yaml | indent 2 }}", "")}}, shaped{Data: m{"a": "one\ntwo: 2\n", "b": "one\n\ntwo", "c": "one two\n", "d": "a: 1\nb: [2]\n"}}},
		"YAMLDocument": {"The marks of a document may be there.", template{TemplateFrom: from{literal("%YAML 1.1\n---\na: b\n...\n", "")}}, shaped{Data: m{"a": "b"}}},
		"YAMLJSON":     {"JSON is YAML.", template{TemplateFrom: from{literal(`{{ dict "a" .user "b" 1 | toJson }}`, "")}}, shaped{Data: m{"a": "ann", "b": "1"}}},
		"YAMLAnchor":   {"An anchor that nobody follows is nothing.", template{TemplateFrom: from{literal("a: &x b", "")}}, shaped{Data: m{"a": "b"}}},

		"AnnotationsFull": {"All annotations together may be large.", template{Metadata: annotations(m{"ab": fmt.Sprintf("{{ repeat %d \"x\" }}", 252<<10-2)})}, shaped{Data: read(nil), Annotations: m{"ab": strings.Repeat("x", 252<<10-2)}}},
		"LabelFull":       {"A label has 63 characters.", template{Metadata: labels(m{"a": `{{ repeat 63 "x" }}`})}, shaped{Data: read(nil), Labels: m{"a": strings.Repeat("x", 63)}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, before := readForTest(), readForTest()
			same := out.Data
			if err := renderTemplate(&tc.template, &out, textsForTest); err != nil {
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
	yields := func(text string) template { return from(literal(text, "")) }
	missing := configMap("one", "", "")
	missing.ConfigMap.Name = "gone"
	const at, lit = "spec.target.template.", "spec.target.template.templateFrom[0].literal: "
	cases := map[string]struct {
		reason   string
		template template
		want     []string
	}{
		"Data":           {"The key and the place are named.", template{Data: m{"a": "\n {{ .nope }}"}}, []string{at + "data[a]: line 2, column 5: ", `no key "nope"`}},
		"Label":          {"So are those of a label.", template{Metadata: labels(m{"a": "{{ .password | atoi | fail }}"})}, []string{at + "metadata.labels[a]: line 1, column "}},
		"Annotation":     {"And of an annotation.", template{Metadata: annotations(m{"a": "{{ "})}, []string{at + "metadata.annotations[a]: line 1: "}},
		"Literal":        {"And of a literal.", from(literal("a: b", ""), literal("{{ .password.x }}", "")), []string{at + "templateFrom[1].literal: line 1, column "}},
		"ConfigMap":      {"The key of a ConfigMap is named, and nothing that it holds.", from(configMap("hidden", "", "")), []string{at + `templateFrom[0] ConfigMap "t" key "hidden": line 1: `}},
		"Secret":         {"So is that of a Secret.", from(secretText("hidden", "KeysAndValues", "")), []string{at + `templateFrom[0] Secret "t" key "hidden": line 1, column `}},
		"FirstOfSeveral": {"Of several mistakes the same is reported each time.", template{Data: m{"b": "{{", "a": "{{", "c": "{{"}}, []string{at + "data[a]: "}},
		"SourceMissing":  {"A source that is missing is named.", from(missing), []string{at + `templateFrom[0]: ConfigMap "gone" does not exist; create it or correct the name`}},
		"KeyMissing":     {"A key that is missing is named.", from(secretText("two", "", "")), []string{at + `templateFrom[0] Secret "t" key "two": it has no such key`}},
		"SharedBudget":   {"The templates of a Secret share one budget.", template{Data: m{"a": "{{ range 100000 }}{{ end }}", "b": "{{ range 1000000 }}{{ end }}", "c": ""}}, []string{at + "data[b]: ", "too much work"}},

		"NotYAML":     {"What a literal yields is YAML.", yields("a: b\n  {{ .password }}: d"), []string{lit + "what it yields is not YAML"}},
		"Tab":         {"YAML has no tabs.", yields("a:\n\t{{ .password }}"), []string{lit + "what it yields is not YAML"}},
		"Control":     {"Nor has it bytes that are no text.", yields("a: {{ .bytes }}"), []string{lit + "what it yields is not YAML"}},
		"UnknownName": {"An alias follows an anchor.", yields("a: *{{ .password }}"), []string{lit + "what it yields is not YAML"}},
		"Scalar":      {"It is a mapping.", yields("{{ .password }}"), []string{lit + "what it yields is not a YAML mapping of keys to values"}},
		"Null":        {"null is none.", yields("null"), []string{lit + "what it yields is not a YAML mapping"}},
		"List":        {"Nor is a list.", from(configMap("list", "KeysAndValues", "")), []string{at + `templateFrom[0] ConfigMap "t" key "list": what it yields is not a YAML mapping`}},
		"Documents":   {"What comes in a second document would be lost.", yields("a: b\n---\nc: {{ .password }}"), []string{lit + "what it yields is not one YAML document"}},
		"BadDocument": {"Also if it is none.", yields("a: b\n---\nc: {{ .password }}: d"), []string{lit + "what it yields is not one YAML document"}},
		"Nested":      {"A value has no structure.", yields("a: b\nc:\n  {{ .password }}: e"), []string{lit + "line 2 of what it yields: ", "into a block with |"}},
		"NestedList":  {"A list is one.", yields("a: [{{ .password }}]"), []string{lit + "line 1 of what it yields: "}},
		"Alias":       {"Aliases are not followed.", yields("a: &x {{ .password }}\nb: *x"), []string{lit + "line 2 of what it yields: "}},
		"AliasKey":    {"In keys neither.", yields("a: &x {{ .password }}\n*x : b"), []string{lit + "line 2 of what it yields: "}},
		"MergeKey":    {"So they cannot be merged.", yields("<<: {a: b}"), []string{lit + "line 1 of what it yields: "}},
		"ComplexKey":  {"A key has no structure.", yields("? [{{ .password }}]\n: b"), []string{lit + "line 1 of what it yields: "}},

		"Twice":      {"Which of two values of a key counts, would be chance.", yields("{{ .user }}: a\nb: {{ .password }}\nann: c"), []string{lit + "line 3 of what it yields: the key is already in line 1; yield each key once"}},
		"TwiceSpelt": {"However it is spelt.", from(configMap("twice", "KeysAndValues", "Labels")), []string{at + `templateFrom[0] ConfigMap "t" key "twice": line 1 of what it yields: the key is already in line 1`}},

		"YieldedKey":        {"A key that is yielded may be a value.", yields("a: b\n\"{{ .password }}/\": c"), []string{lit + "line 2 of what it yields: the key cannot be a key of a Secret"}},
		"YieldedEmpty":      {"It is not empty.", yields("'': {{ .password }}"), []string{lit + "line 1 of what it yields: the key cannot be a key of a Secret"}},
		"YieldedLabel":      {"A label has a name.", from(literal("'{{ .password }} x': c", "Labels")), []string{lit + "line 1 of what it yields: the key cannot be a label or annotation"}},
		"YieldedAnnotation": {"So has an annotation.", from(literal("'{{ .password }} x': c", "Annotations")), []string{lit + "line 1 of what it yields: the key cannot be a label or annotation"}},
		"YieldedOwn":        {"The operator's own labels cannot be set from elsewhere.", from(literal("{{ .password }}.direct-secrets.io/managed: 'no'", "Labels")), []string{lit + "line 1 of what it yields: the key is the operator's own"}},
		"YieldedMark":       {"Nor can its marks.", from(literal("direct-secrets.io/es.x: '{}'", "Annotations")), []string{lit + "line 1 of what it yields: the key is the operator's own"}},
		"ItemKey":           {"A key of a Secret is checked wherever it comes from.", from(configMap("a b", "", "")), []string{at + `templateFrom[0] ConfigMap "t" key "a b": the key cannot be a key of a Secret`}},

		"LabelValue":      {"The value of a label has no space.", template{Metadata: labels(m{"a": "{{ .password }} x"})}, []string{at + "metadata.labels[a]: the value cannot be that of a label"}},
		"LabelLong":       {"It has at most 63 characters.", template{Metadata: labels(m{"a": `{{ repeat 64 "x" }}`})}, []string{at + "metadata.labels[a]: the value cannot", "at most 63"}},
		"LabelEnd":        {"It ends as it begins, with a letter or digit.", from(literal("a: {{ .password }}-", "Labels")), []string{lit + "line 1 of what it yields: the value cannot", "a letter or digit"}},
		"AnnotationBytes": {"An annotation is text.", template{Metadata: annotations(m{"a": "{{ .password }}{{ .bytes }}"})}, []string{at + "metadata.annotations[a]: the value cannot be that of an annotation", "b64enc"}},
		"AnnotationsFull": {"All annotations count, with their names.", template{Metadata: annotations(m{"ab": `{{ repeat 200000 "x" }}`, "cd": fmt.Sprintf("{{ repeat %d \"x\" }}", 252<<10-200000-3)})}, []string{"spec.target.template: the annotations are 258049 bytes in all, and at most 258048 are served"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := readForTest()
			err := renderTemplate(&tc.template, &out, textsForTest)
			wantError(t, tc.reason, err, provider.Template, tc.want...)
		})
	}
}

// TestShape decides whether a template runs, and what is checked of its output.
func TestShape(t *testing.T) {
	type target = v1alpha1.Target
	good, fails, static := map[string]string{"k": "{{ .user }}"}, map[string]string{"k": "{{ .nope }}"}, map[string]string{"k": "x"}
	gone := provider.NewError(provider.NotFound, "it does not exist")
	some, left, none := readForTest(), readForTest(), Output{Data: map[string][]byte{}}
	left.Gone, none.Gone = gone, gone
	optional := Output{Data: map[string][]byte{}}
	type want struct {
		Data  map[string]string
		Class provider.Class
		Says  string
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
		"None":           {"Without a template all stays.", target{}, some, asRead(some)},
		"Runs":           {"With one it runs.", target{Template: &v1alpha1.Template{Data: good}}, some, want{Data: map[string]string{"k": "ann"}}},
		"Fails":          {"And may fail.", target{Template: &v1alpha1.Template{Data: fails}}, some, want{Class: provider.Template, Says: "spec.target.template.data[k]: "}},
		"RetainGone":     {"What is kept as it is needs no template.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Retain"}, left, asRead(left)},
		"UnsetGone":      {"Retain is the default.", target{Template: &v1alpha1.Template{Data: fails}}, none, asRead(none)},
		"RetainOptional": {"Nothing is gone if all was optional; then it runs.", target{Template: &v1alpha1.Template{Data: static}, DeletionPolicy: "Retain"}, optional, want{Data: static}},
		"DeleteGone":     {"What goes needs no template.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Delete"}, none, want{}},
		"DeleteStatic":   {"A template that reads nothing must not keep the Secret.", target{Template: &v1alpha1.Template{Data: static}, DeletionPolicy: "Delete"}, none, want{}},
		"DeleteTyped":    {"Nor does its type.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/tls", Data: static}, DeletionPolicy: "Delete"}, none, want{}},
		"DeleteSome":     {"What is left is rendered.", target{Template: &v1alpha1.Template{Data: good}, DeletionPolicy: "Delete"}, left, want{Data: map[string]string{"k": "ann"}}},
		"DeleteSomeFail": {"A template that needs what is gone fails.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Delete"}, left, want{Class: provider.Template, Says: "spec.target.template.data[k]: "}},
		"MergeGone":      {"Under Merge the keys go, whatever the template says.", target{Template: &v1alpha1.Template{Data: fails}, DeletionPolicy: "Merge"}, none, want{}},
		"MergeTyped":     {"A Secret of a type that needs keys cannot lose all of them.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/tls", Data: static}, DeletionPolicy: "Merge"}, none, want{Class: provider.Invalid, Says: "all values are gone, and a Secret of type kubernetes.io/tls cannot be emptied, as spec.target.deletionPolicy: Merge asks; use deletionPolicy: Delete or Retain"}},
		"MergeTypedFree": {"One of another type can.", target{Template: &v1alpha1.Template{Type: "example.com/any", Data: static}, DeletionPolicy: "Merge"}, none, want{}},
		"MergeTypedPart": {"Under creationPolicy Merge others give the rest.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/tls", Data: static}, DeletionPolicy: "Merge", CreationPolicy: "Merge"}, none, want{}},
		"MergeSome":      {"What is left is rendered.", target{Template: &v1alpha1.Template{Data: good}, DeletionPolicy: "Merge"}, left, want{Data: map[string]string{"k": "ann"}}},
		"MergeOptional":  {"Nothing is gone if all was optional; then it runs.", target{Template: &v1alpha1.Template{Data: static}, DeletionPolicy: "Merge"}, optional, want{Data: static}},

		"Type":        {"The type is checked after the template.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/basic-auth", Data: good}}, some, want{Class: provider.Invalid, Says: "a Secret of type kubernetes.io/basic-auth cannot be written: "}},
		"TypeFits":    {"It may fit by what was read.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/basic-auth", Metadata: labels(good)}}, some, asRead(some)},
		"TypeOfMerge": {"Under creationPolicy Merge others give the rest.", target{Template: &v1alpha1.Template{Type: "kubernetes.io/basic-auth", Data: good}, CreationPolicy: "Merge"}, some, want{Data: map[string]string{"k": "ann"}}},
		"Large":       {"Templates together yield no more than fits.", target{Template: &v1alpha1.Template{Data: half()}}, some, want{Class: provider.Invalid, Says: `the values of Secret "db" are 1400000 bytes in all`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(func(s *v1alpha1.ExternalSecretSpec) { s.Target = tc.target })
			out, err := Shape(es, Plan{Target: "db"}, tc.read, nil)
			if tc.want.Says != "" {
				wantError(t, tc.reason, err, tc.want.Class, tc.want.Says)
			} else if err != nil {
				t.Fatalf("\n%s\nShape(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want.Data, shapedOf(out).Data); diff != "" {
				t.Errorf("\n%s\nShape(): -want, +got:\n%s", tc.reason, diff)
			}
			if err == nil && out.Gone != tc.read.Gone {
				t.Errorf("\n%s\nShape(): what is gone is lost", tc.reason)
			}
		})
	}
}

// FuzzShape renders any template over any values, as data, label and annotation, and any literal.
func FuzzShape(f *testing.F) {
	texts := []string{
		"", "{{ .user }}", `{{ .user | upper | b64enc }}`, "{{ .nope }}", `{{ range 1000000000000 }}{{ end }}`, `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
		`{{ fromYaml .user | toJson }}`, `{{ .user | pkcs12key }}`, `{{ repeat 1000000 .user }}`, "{{ .user", `{{ jwkPublicKeyPem .user }}`, `{{ filterPEM "CERTIFICATE" .user }}`,
	}
	literals := []string{
		"", "a: {{ .user }}", "{{ .user }}", "{{ .user }}: b", "a: [1]", "a: &x b\nc: *x", "a: |\n{{ .user | indent 2 }}", "a: b\n---\nc: d", "'{{ .user }} x': y",
		"{{ .user }}.direct-secrets.io/x: y", "? a\n: b", "<<: {a: b}", "{{ repeat 100000 \"a: b\\n\" }}", "a: \"\\xff\"", "%YAML 1.9\n---\na: b", "!!binary a: !!int b",
	}
	for i, text := range texts {
		for j, l := range literals {
			f.Add(text, "value", l, byte(i+3*j))
		}
	}
	for i, v := range []string{"a: b", "\xff\x00", "\n---\n", "'\"\\", "{{ .user }}", "*a", "-----BEGIN A-----\n", `{"kty":"RSA"}`} {
		f.Add("{{ .user }}", v, "{{ .user }}: {{ .user }}", byte(i))
	}
	f.Fuzz(func(t *testing.T, text, value, lit string, flags byte) {
		if strings.Contains(text+lit, canary) {
			return // A template that holds it may be quoted, up to a name.
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
		out, err := Shape(external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = tmpl }), Plan{Target: "db"}, read, Texts{{Secret: true, Name: "t"}: {"k": lit}})
		if err != nil {
			c := class(err)
			shown := fmt.Sprintf("%v %+v %#v", err, err, err)
			if strings.Contains(shown, canary) || (c != provider.Template && c != provider.Invalid) {
				t.Errorf("Shape(): class %s: %s", c, shown)
			}
			if diff := cmp.Diff(Output{}, out); diff != "" {
				t.Errorf("Shape(): output beside an error:\n%s", diff)
			}
			return
		}
		checkShaped(t, out)
	})
}

// checkShaped says what is wrong with an output, that the API server would refuse.
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
