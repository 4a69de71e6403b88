package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func transformStep(text string) v1alpha1.Rewrite {
	return v1alpha1.Rewrite{Transform: &v1alpha1.RewriteTransform{Template: text}}
}

// rendering holds everything on which the inputs can depend.
type rendering struct {
	es              *v1alpha1.ExternalSecret
	remote          remote
	templateSources TemplateSources
}

func (r rendering) inputs(t *testing.T) [][]byte {
	t.Helper()
	p, err := NewPlan(r.es)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Read(r.es, p, r.remote.values)
	if err != nil {
		out = Output{} // The caller compares the spec then.
	}
	return Inputs(r.es, p, out, r.templateSources)
}

// ordinary returns a rendering in which every part affects the inputs.
func ordinary() rendering {
	return rendering{
		es: external(func(s *v1alpha1.ExternalSecretSpec) {
			s.Data = append(s.Data, v1alpha1.DataEntry{SecretKey: "tags", RemoteRef: v1alpha1.RemoteRef{Key: "shop/db", MetadataPolicy: "Fetch"}})
			s.DataFrom = []v1alpha1.DataFromEntry{find(v1alpha1.Find{Path: "all/"}, regexpStep("^all/", ""))}
			s.Target.Template = &v1alpha1.Template{
				Data: map[string]string{"k": "{{ uuidv4 }}"}, Metadata: labels(map[string]string{"a": "b"}),
				TemplateFrom: []v1alpha1.TemplateFrom{configMap("one", "", ""), secretText("one", "KeysAndValues", ""), literal("a: b", "")},
			}
		}),
		remote: remote{
			"prod/shop/db":  value("x", "v1"),
			"prod/shop/db#": {Value: provider.Value{Data: []byte("x"), Version: "v1", Metadata: map[string]string{"team": "a", "tier": "b"}}},
			"prod?all/":     {Found: []provider.Value{{Key: "all/a", Data: []byte("1"), Version: "v1"}, {Key: "all/b", Data: []byte("2"), Version: "v1"}}},
		},
		templateSources: TemplateSources{{Name: "t"}: {"one": "map"}, {Secret: true, Name: "t"}: {"one": "a: secret"}},
	}
}

func TestInputs(t *testing.T) {
	found := func(values ...provider.Value) provider.Answer { return provider.Answer{Found: values} }
	data := func(key, v string) provider.Value { return provider.Value{Key: key, Data: []byte(v), Version: "v1"} }
	changes := map[string]struct {
		reason string
		change func(*rendering)
	}{
		"Template":      {"The text of a template changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.Data["k"] += " " }},
		"Key":           {"The key of a template changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.Data = map[string]string{"l": "{{ uuidv4 }}"} }},
		"Label":         {"The text of a label changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.Metadata.Labels["a"] = "c" }},
		"Annotation":    {"An annotation changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.Metadata.Annotations = map[string]string{"a": "b"} }},
		"MergePolicy":   {"The mergePolicy changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.MergePolicy = "Merge" }},
		"Type":          {"The type changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.Type = "example.com/a" }},
		"Literal":       {"A literal changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.TemplateFrom[2] = literal("a: c", "") }},
		"Target":        {"The target of a text changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.TemplateFrom[2].Target = "Labels" }},
		"TemplateAs":    {"The templateAs of a text changes the inputs.", func(r *rendering) { r.es.Spec.Target.Template.TemplateFrom[0] = configMap("one", "KeysAndValues", "") }},
		"SourceOrder":   {"The order of the texts changes the inputs.", func(r *rendering) { f := r.es.Spec.Target.Template.TemplateFrom; f[0], f[1] = f[1], f[0] }},
		"Immutable":     {"immutable changes the inputs: an immutable Secret is replaced.", func(r *rendering) { r.es.Spec.Target.Immutable = true }},
		"Text":          {"A text of a ConfigMap changes the inputs.", func(r *rendering) { r.templateSources[TextRef{Name: "t"}]["one"] = "other" }},
		"TextOfSecret":  {"A text of a Secret changes the inputs.", func(r *rendering) { r.templateSources[TextRef{Secret: true, Name: "t"}]["one"] = "a: other" }},
		"TextDeleted":   {"The deletion of a text changes the inputs.", func(r *rendering) { delete(r.templateSources[TextRef{Name: "t"}], "one") }},
		"SourceDeleted": {"The deletion of a ConfigMap changes the inputs.", func(r *rendering) { delete(r.templateSources, TextRef{Name: "t"}) }},
		"Value":         {"A value changes the inputs.", func(r *rendering) { r.remote["prod/shop/db"] = value("y", "v1") }},
		"ValueEmpty":    {"A value that becomes empty changes the inputs.", func(r *rendering) { r.remote["prod/shop/db"] = value("", "v1") }},
		"ValueDeleted":  {"A deleted value differs from an empty one.", func(r *rendering) { delete(r.remote, "prod/shop/db") }},
		"Metadata":      {"A tag changes the inputs.", func(r *rendering) { r.remote["prod/shop/db#"].Value.Metadata["team"] = "c" }},
		"Found":         {"A found value changes the inputs.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a", "1"), data("all/b", "3")) }},
		"FoundMore": {"One more found value changes the inputs.", func(r *rendering) {
			r.remote["prod?all/"] = found(data("all/a", "1"), data("all/b", "2"), data("all/c", ""))
		}},
		"FoundLess":    {"One found value less changes the inputs.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a", "1")) }},
		"FoundRenamed": {"The name of a found value changes the inputs.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a", "1"), data("all/c", "2")) }},
		"FoundMoved":   {"The end of a key is not the start of its value.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a1", ""), data("all/b", "2")) }},
		"SecretKey":    {"The secretKey of a value changes the inputs.", func(r *rendering) { r.es.Spec.Data[0].SecretKey = "pw" }},
		"RemoteKey": {"The remote key changes the inputs.", func(r *rendering) {
			r.es.Spec.Data[0].RemoteRef.Key = "other"
			r.remote["prod/other"] = value("x", "v1")
		}},
		"Property": {"The property changes the inputs.", func(r *rendering) { r.es.Spec.Data[0].RemoteRef.Property = "p" }},
		"Decoding": {"The decodingStrategy changes the inputs.", func(r *rendering) { r.es.Spec.Data[0].RemoteRef.DecodingStrategy = "Base64" }},
		"Optional": {"optional changes the inputs.", func(r *rendering) { r.es.Spec.Data[0].Optional = true }},
		"Rewrite":  {"The rewrite of keys changes the inputs.", func(r *rendering) { r.es.Spec.DataFrom[0].Rewrite[0] = regexpStep("^all/", "a-") }},
		"Store": {"Another store with the same value changes the inputs.", func(r *rendering) {
			r.es.Spec.StoreRef = fakeStore("second")
			r.remote["second/shop/db"] = value("x", "v1")
		}},
		"StoreOfEntry": {"Another store of one entry changes the inputs.", func(r *rendering) {
			r.es.Spec.Data[0].SourceRef = &v1alpha1.DataSourceRef{StoreRef: *fakeStore("second")}
		}},
		"RemoteVersion": {"The requested version changes the inputs.", func(r *rendering) {
			r.es.Spec.Data[0].RemoteRef.Version = "v7"
			r.remote["prod/shop/db@v7"] = value("x", "v7")
		}},
	}
	for name, tc := range changes {
		t.Run("Changes"+name, func(t *testing.T) {
			r := ordinary()
			tc.change(&r)
			if cmp.Equal(ordinary().inputs(t), r.inputs(t)) {
				t.Errorf("\n%s\nInputs(): the same", tc.reason)
			}
		})
	}
	same := map[string]struct {
		reason string
		change func(*rendering)
	}{
		"Nothing": {"The order of maps does not change the inputs.", func(*rendering) {}},
		"FoundOrder": {"The order of a provider's list does not change the inputs.", func(r *rendering) {
			r.remote["prod?all/"] = found(data("all/b", "2"), data("all/a", "1"))
		}},
		"ValueNextToMetadata": {"The value of a secret does not change the inputs if only its metadata is used.", func(r *rendering) {
			a := r.remote["prod/shop/db#"]
			a.Value.Data = []byte("y")
			r.remote["prod/shop/db#"] = a
		}},
		"Version":         {"A new version with the same value does not change the inputs.", func(r *rendering) { r.remote["prod/shop/db"] = value("x", "v2") }},
		"FoundVersion":    {"A new version of a found secret with the same value does not change the inputs.", func(r *rendering) { r.remote["prod?all/"].Found[0].Version = "v2" }},
		"RefreshInterval": {"The refreshInterval does not change the inputs.", func(r *rendering) { r.es.Spec.RefreshInterval = "7m" }},
		"RefreshPolicy":   {"The refreshPolicy does not change the inputs.", func(r *rendering) { r.es.Spec.RefreshPolicy = "OnChange" }},
		"Suspend":         {"suspend does not change the inputs.", func(r *rendering) { r.es.Spec.Suspend = true }},
		"CreationPolicy":  {"The creationPolicy does not change the inputs.", func(r *rendering) { r.es.Spec.Target.CreationPolicy = "Orphan" }},
		"CleanupPolicy":   {"The cleanupPolicy does not change the inputs.", func(r *rendering) { r.es.Spec.Target.CleanupPolicy = "Never" }},
		"DeletionPolicy":  {"The deletionPolicy does not change the inputs while values are left.", func(r *rendering) { r.es.Spec.Target.DeletionPolicy = "Delete" }},
		"Labels": {"The object's own metadata do not change the inputs.", func(r *rendering) {
			r.es.Labels, r.es.Annotations, r.es.Generation = map[string]string{"a": "b"}, map[string]string{"a": "b"}, 9
		}},
		"Status":    {"The object's status does not change the inputs.", func(r *rendering) { r.es.Status.ObservedGeneration = 9 }},
		"OtherText": {"A ConfigMap that the template does not name does not change the inputs.", func(r *rendering) { r.templateSources[TextRef{Name: "other"}] = map[string]string{"one": "x"} }},
		"NotRead":   {"A secret that is not read does not change the inputs.", func(r *rendering) { r.remote["prod/other"] = value("x", "v1") }},
	}
	for name, tc := range same {
		t.Run("Same"+name, func(t *testing.T) {
			r := ordinary()
			tc.change(&r)
			if diff := cmp.Diff(ordinary().inputs(t), r.inputs(t)); diff != "" {
				t.Errorf("\n%s\nInputs(): -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInputsOf compares the inputs of two special renderings.
func TestInputsOf(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	rendered := func(s *spec) { s.Target.Template = &v1alpha1.Template{Data: map[string]string{"k": "{{ uuidv4 }}"}} }
	deletion := func(p v1alpha1.DeletionPolicy) func(*spec) {
		return func(s *spec) { s.Data[0].Optional, s.Target.DeletionPolicy = true, p }
	}
	property := func(s *spec) { s.Data[0].RemoteRef.Property = "a" }
	shadowed := func(s *spec) { s.DataFrom = []v1alpha1.DataFromEntry{extract("all")} }
	transformed := func(s *spec) {
		s.DataFrom = []v1alpha1.DataFromEntry{extract("all"), find(v1alpha1.Find{Path: "all/"})}
		s.DataFrom[0].Rewrite = []v1alpha1.Rewrite{transformStep("{{ uuidv4 }}")}
	}
	text := func(v string) TemplateSources { return TemplateSources{{Secret: true, Name: "t"}: {"one": v}} }
	named := func(s *spec) { s.Target.Template.TemplateFrom = []v1alpha1.TemplateFrom{secretText("one", "", "")} }
	with := func(r remote, changes ...func(*spec)) rendering {
		return rendering{es: external(append([]func(*spec){rendered}, changes...)...), remote: r}
	}
	bytes := func(v string) rendering {
		r := with(remote{"prod/shop/db": value("x", "")}, named)
		r.templateSources = text(v)
		return r
	}
	cases := map[string]struct {
		reason     string
		one, other rendering
		same       bool
	}{
		"OtherProperty":      {"A property that no entry uses does not change the inputs.", with(remote{"prod/shop/db": value(`{"a":"1","b":"1"}`, "")}, property), with(remote{"prod/shop/db": value(`{"b":"2", "a":"1"}`, "")}, property), true},
		"Property":           {"A property that an entry uses changes the inputs.", with(remote{"prod/shop/db": value(`{"a":"1"}`, "")}, property), with(remote{"prod/shop/db": value(`{"a":"2"}`, "")}, property), false},
		"Shadowed":           {"A value that another entry replaces does not change the inputs.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"password":"1","b":"2"}`, "")}, shadowed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"2","password":"3"}`, "")}, shadowed), true},
		"Extracted":          {"An extracted key changes the inputs.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"2"}`, "")}, shadowed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"3"}`, "")}, shadowed), false},
		"NotUTF8":            {"Two values that differ in invalid UTF-8 have different inputs.", bytes("a: \xff"), bytes("a: \xfe"), false},
		"Transformed":        {"Keys with random parts do not change the inputs.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1","b":"2"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"2","a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), true},
		"TransformedValue":   {"A value of transformed keys changes the inputs.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"2"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), false},
		"TransformedEntry":   {"The entry of a transformed key changes the inputs.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1","c":"3"}`, ""), "prod?all/": found(pair{"d", "4"})}, transformed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"}, pair{"d", "4"})}, transformed), false},
		"TransformedBesides": {"A value of another entry changes the inputs.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), with(remote{"prod/shop/db": value("y", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), false},
		"DeletedAll":         {"Without values, the deletionPolicy changes the inputs.", with(nil, deletion("Retain")), with(nil, deletion("Delete")), false},
		"DeletedNone":        {"With values, the deletionPolicy does not change the inputs.", with(remote{"prod/shop/db": value("x", "")}, deletion("Retain")), with(remote{"prod/shop/db": value("x", "")}, deletion("Delete")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			one, other := tc.one.inputs(t), tc.other.inputs(t)
			if len(one) == 0 || len(other) == 0 {
				t.Fatalf("\n%s\nInputs(): none", tc.reason)
			}
			if diff := cmp.Diff(one, other); (diff == "") != tc.same {
				t.Errorf("\n%s\nInputs() are the same: want %t: -one, +other:\n%s", tc.reason, tc.same, diff)
			}
		})
	}
}

func TestInputsWithoutTemplate(t *testing.T) {
	type spec = v1alpha1.ExternalSecretSpec
	template := func(tmpl v1alpha1.Template) func(*spec) {
		return func(s *spec) { s.Target.Template = &tmpl }
	}
	cases := map[string]struct {
		reason string
		change func(*spec)
		want   bool
	}{
		"None":        {"Without a template there are no inputs.", func(*spec) {}, false},
		"Empty":       {"An empty template has no inputs.", template(v1alpha1.Template{}), false},
		"Type":        {"A type is not a template.", template(v1alpha1.Template{Type: "example.com/a"}), false},
		"MergePolicy": {"A mergePolicy is not a template.", template(v1alpha1.Template{MergePolicy: "Merge"}), false},
		"Regexp":      {"A regular expression has the same result each time, so there are no inputs.", rewriting(regexpStep("a", "b")), false},
		"Data":        {"A template of data has inputs.", template(v1alpha1.Template{Data: map[string]string{"a": ""}}), true},
		"Label":       {"A template of a label has inputs.", template(v1alpha1.Template{Metadata: labels(map[string]string{"a": ""})}), true},
		"Annotation":  {"A template of an annotation has inputs.", template(v1alpha1.Template{Metadata: annotations(map[string]string{"a": ""})}), true},
		"From":        {"A template from elsewhere has inputs.", template(v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{literal("", "")}}), true},
		"Transform":   {"A template of keys has inputs.", rewriting(regexpStep("a", "b"), transformStep("{{ .value }}-{{ uuidv4 }}")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := rendering{es: external(tc.change)}.inputs(t)
			if diff := cmp.Diff(tc.want, got != nil); diff != "" {
				t.Errorf("\n%s\nInputs() is not nil: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeysUsed(t *testing.T) {
	all := map[string]string{"one": "1", "two": "2", "three": "3"}
	template := &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{configMap("one", "", ""), configMap("two", "", "Labels"), configMap("gone", "", ""), secretText("three", "", ""), literal("", "")}}
	cases := map[string]struct {
		reason   string
		template *v1alpha1.Template
		ref      TextRef
		want     map[string]string
	}{
		"ConfigMap": {"The keys of all entries are used; a missing key is left out.", template, TextRef{Name: "t"}, map[string]string{"one": "1", "two": "2"}},
		"Secret":    {"A Secret is not a ConfigMap of the same name.", template, TextRef{Secret: true, Name: "t"}, map[string]string{"three": "3"}},
		"Other":     {"No key of another ConfigMap is used.", template, TextRef{Name: "other"}, map[string]string{}},
		"None":      {"Without a template no key is used.", nil, TextRef{Name: "t"}, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = tc.template })
			if diff := cmp.Diff(tc.want, KeysUsed(es, tc.ref, all)); diff != "" {
				t.Errorf("\n%s\nKeysUsed(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	for want, ref := range map[string]TextRef{"ConfigMap/t": {Name: "t"}, "Secret/t": {Secret: true, Name: "t"}} {
		if diff := cmp.Diff(want, ref.String()); diff != "" {
			t.Errorf("String(): -want, +got:\n%s", diff)
		}
	}
}
