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

// A rendering is all that may show in its inputs.
type rendering struct {
	es     *v1alpha1.ExternalSecret
	remote remote
	texts  Texts
}

func (r rendering) inputs(t *testing.T) [][]byte {
	t.Helper()
	p, err := NewPlan(r.es)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Read(r.es, p, r.remote.values)
	if err != nil {
		out = Output{} // As the caller has it; then the spec must tell.
	}
	return Inputs(r.es, p, out, r.texts)
}

// ordinary returns a rendering in which everything counts.
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
		texts: Texts{{Name: "t"}: {"one": "map"}, {Secret: true, Name: "t"}: {"one": "a: secret"}},
	}
}

func TestInputs(t *testing.T) {
	found := func(values ...provider.Value) provider.Answer { return provider.Answer{Found: values} }
	data := func(key, v string) provider.Value { return provider.Value{Key: key, Data: []byte(v), Version: "v1"} }
	changes := map[string]struct {
		reason string
		change func(*rendering)
	}{
		"Template":     {"The text of a template.", func(r *rendering) { r.es.Spec.Target.Template.Data["k"] += " " }},
		"Key":          {"Its key.", func(r *rendering) { r.es.Spec.Target.Template.Data = map[string]string{"l": "{{ uuidv4 }}"} }},
		"Label":        {"The text of a label.", func(r *rendering) { r.es.Spec.Target.Template.Metadata.Labels["a"] = "c" }},
		"Annotation":   {"An annotation.", func(r *rendering) { r.es.Spec.Target.Template.Metadata.Annotations = map[string]string{"a": "b"} }},
		"MergePolicy":  {"What becomes of the values.", func(r *rendering) { r.es.Spec.Target.Template.MergePolicy = "Merge" }},
		"Type":         {"The type.", func(r *rendering) { r.es.Spec.Target.Template.Type = "example.com/a" }},
		"Literal":      {"A literal.", func(r *rendering) { r.es.Spec.Target.Template.TemplateFrom[2] = literal("a: c", "") }},
		"Target":       {"Where it goes.", func(r *rendering) { r.es.Spec.Target.Template.TemplateFrom[2].Target = "Labels" }},
		"TemplateAs":   {"How a text is taken.", func(r *rendering) { r.es.Spec.Target.Template.TemplateFrom[0] = configMap("one", "KeysAndValues", "") }},
		"SourceOrder":  {"Which of two wins.", func(r *rendering) { f := r.es.Spec.Target.Template.TemplateFrom; f[0], f[1] = f[1], f[0] }},
		"Immutable":    {"An immutable Secret is made anew.", func(r *rendering) { r.es.Spec.Target.Immutable = true }},
		"Text":         {"A text of a ConfigMap.", func(r *rendering) { r.texts[TextRef{Name: "t"}]["one"] = "other" }},
		"TextOfSecret": {"A text of a Secret.", func(r *rendering) { r.texts[TextRef{Secret: true, Name: "t"}]["one"] = "a: other" }},
		"TextGone":     {"A text that goes.", func(r *rendering) { delete(r.texts[TextRef{Name: "t"}], "one") }},
		"SourceGone":   {"A ConfigMap that goes.", func(r *rendering) { delete(r.texts, TextRef{Name: "t"}) }},
		"Value":        {"A value.", func(r *rendering) { r.remote["prod/shop/db"] = value("y", "v1") }},
		"ValueEmpty":   {"A value that becomes empty.", func(r *rendering) { r.remote["prod/shop/db"] = value("", "v1") }},
		"ValueGone":    {"A value that goes is not an empty one.", func(r *rendering) { delete(r.remote, "prod/shop/db") }},
		"Metadata":     {"A tag.", func(r *rendering) { r.remote["prod/shop/db#"].Value.Metadata["team"] = "c" }},
		"Found":        {"A value that is found.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a", "1"), data("all/b", "3")) }},
		"FoundMore": {"One more of them.", func(r *rendering) {
			r.remote["prod?all/"] = found(data("all/a", "1"), data("all/b", "2"), data("all/c", ""))
		}},
		"FoundLess":    {"One less.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a", "1")) }},
		"FoundRenamed": {"The name of one.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a", "1"), data("all/c", "2")) }},
		"FoundMoved":   {"Where a name ends and a value begins.", func(r *rendering) { r.remote["prod?all/"] = found(data("all/a1", ""), data("all/b", "2")) }},
		"SecretKey":    {"The key that a value gets.", func(r *rendering) { r.es.Spec.Data[0].SecretKey = "pw" }},
		"RemoteKey": {"What is read.", func(r *rendering) {
			r.es.Spec.Data[0].RemoteRef.Key = "other"
			r.remote["prod/other"] = value("x", "v1")
		}},
		"Property": {"What is taken out of it.", func(r *rendering) { r.es.Spec.Data[0].RemoteRef.Property = "p" }},
		"Decoding": {"How it is decoded.", func(r *rendering) { r.es.Spec.Data[0].RemoteRef.DecodingStrategy = "Base64" }},
		"Optional": {"Whether it must be there.", func(r *rendering) { r.es.Spec.Data[0].Optional = true }},
		"Rewrite":  {"How keys are made.", func(r *rendering) { r.es.Spec.DataFrom[0].Rewrite[0] = regexpStep("^all/", "a-") }},
		"Store": {"Another store, though it holds the same.", func(r *rendering) {
			r.es.Spec.StoreRef = fakeStore("second")
			r.remote["second/shop/db"] = value("x", "v1")
		}},
		"StoreOfEntry": {"So for one entry.", func(r *rendering) {
			r.es.Spec.Data[0].SourceRef = &v1alpha1.DataSourceRef{StoreRef: *fakeStore("second")}
		}},
		"RemoteVersion": {"Another version is asked for.", func(r *rendering) {
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
		"Nothing": {"The same again, whatever the order of maps.", func(*rendering) {}},
		"FoundOrder": {"The order in which a provider lists.", func(r *rendering) {
			r.remote["prod?all/"] = found(data("all/b", "2"), data("all/a", "1"))
		}},
		"ValueBesideMetadata": {"The value of a secret of which only the metadata are taken.", func(r *rendering) {
			a := r.remote["prod/shop/db#"]
			a.Value.Data = []byte("y")
			r.remote["prod/shop/db#"] = a
		}},
		"Version":         {"A provider's version that holds the same value.", func(r *rendering) { r.remote["prod/shop/db"] = value("x", "v2") }},
		"FoundVersion":    {"So for what is found.", func(r *rendering) { r.remote["prod?all/"].Found[0].Version = "v2" }},
		"RefreshInterval": {"When the next read is.", func(r *rendering) { r.es.Spec.RefreshInterval = "7m" }},
		"RefreshPolicy":   {"What leads to it.", func(r *rendering) { r.es.Spec.RefreshPolicy = "OnChange" }},
		"Suspend":         {"Whether there is one.", func(r *rendering) { r.es.Spec.Suspend = true }},
		"CreationPolicy":  {"Who owns the Secret.", func(r *rendering) { r.es.Spec.Target.CreationPolicy = "Orphan" }},
		"CleanupPolicy":   {"What becomes of it.", func(r *rendering) { r.es.Spec.Target.CleanupPolicy = "Never" }},
		"DeletionPolicy":  {"And of its keys.", func(r *rendering) { r.es.Spec.Target.DeletionPolicy = "Delete" }},
		"Labels": {"The object's own metadata.", func(r *rendering) {
			r.es.Labels, r.es.Annotations, r.es.Generation = map[string]string{"a": "b"}, map[string]string{"a": "b"}, 9
		}},
		"Status":    {"Its status.", func(r *rendering) { r.es.Status.ObservedGeneration = 9 }},
		"OtherText": {"A ConfigMap that the template does not name.", func(r *rendering) { r.texts[TextRef{Name: "other"}] = map[string]string{"one": "x"} }},
		"NotRead":   {"A secret that nobody reads.", func(r *rendering) { r.remote["prod/other"] = value("x", "v1") }},
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

// TestInputsOf compares the inputs of two renderings that are not ordinary.
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
	text := func(v string) Texts { return Texts{{Secret: true, Name: "t"}: {"one": v}} }
	named := func(s *spec) { s.Target.Template.TemplateFrom = []v1alpha1.TemplateFrom{secretText("one", "", "")} }
	with := func(r remote, changes ...func(*spec)) rendering {
		return rendering{es: external(append([]func(*spec){rendered}, changes...)...), remote: r}
	}
	bytes := func(v string) rendering {
		r := with(remote{"prod/shop/db": value("x", "")}, named)
		r.texts = text(v)
		return r
	}
	cases := map[string]struct {
		reason     string
		one, other rendering
		same       bool
	}{
		"OtherProperty":      {"A property that nobody takes.", with(remote{"prod/shop/db": value(`{"a":"1","b":"1"}`, "")}, property), with(remote{"prod/shop/db": value(`{"b":"2", "a":"1"}`, "")}, property), true},
		"Property":           {"One that somebody takes.", with(remote{"prod/shop/db": value(`{"a":"1"}`, "")}, property), with(remote{"prod/shop/db": value(`{"a":"2"}`, "")}, property), false},
		"Shadowed":           {"A value that another one covers.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"password":"1","b":"2"}`, "")}, shadowed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"2","password":"3"}`, "")}, shadowed), true},
		"Extracted":          {"A key that is extracted.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"2"}`, "")}, shadowed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"3"}`, "")}, shadowed), false},
		"NotUTF8":            {"Two texts that JSON could not tell apart.", bytes("a: \xff"), bytes("a: \xfe"), false},
		"Transformed":        {"Keys that differ each time.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1","b":"2"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"b":"2","a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), true},
		"TransformedValue":   {"One of their values.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"2"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), false},
		"TransformedEntry":   {"The entry that a key comes from.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1","c":"3"}`, ""), "prod?all/": found(pair{"d", "4"})}, transformed), with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"}, pair{"d", "4"})}, transformed), false},
		"TransformedBesides": {"A value beside them.", with(remote{"prod/shop/db": value("x", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), with(remote{"prod/shop/db": value("y", ""), "prod/all": value(`{"a":"1"}`, ""), "prod?all/": found(pair{"c", "3"})}, transformed), false},
		"DeletedAll":         {"With nothing left, what is to be done with the Secret.", with(nil, deletion("Retain")), with(nil, deletion("Delete")), false},
		"DeletedNone":        {"With something left it is all the same.", with(remote{"prod/shop/db": value("x", "")}, deletion("Retain")), with(remote{"prod/shop/db": value("x", "")}, deletion("Delete")), true},
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
		"None":        {"Without a template the output tells.", func(*spec) {}, false},
		"Empty":       {"An empty one yields nothing.", template(v1alpha1.Template{}), false},
		"Type":        {"A type is no template.", template(v1alpha1.Template{Type: "example.com/a"}), false},
		"MergePolicy": {"Nor is a policy.", template(v1alpha1.Template{MergePolicy: "Merge"}), false},
		"Regexp":      {"An expression yields the same each time.", rewriting(regexpStep("a", "b")), false},
		"Data":        {"A template may yield something else each time.", template(v1alpha1.Template{Data: map[string]string{"a": ""}}), true},
		"Label":       {"So may that of a label.", template(v1alpha1.Template{Metadata: labels(map[string]string{"a": ""})}), true},
		"Annotation":  {"And of an annotation.", template(v1alpha1.Template{Metadata: annotations(map[string]string{"a": ""})}), true},
		"From":        {"And one from elsewhere.", template(v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{literal("", "")}}), true},
		"Transform":   {"And one of keys.", rewriting(regexpStep("a", "b"), transformStep("{{ .value }}-{{ uuidv4 }}")), true},
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

func TestTextsUsed(t *testing.T) {
	all := map[string]string{"one": "1", "two": "2", "three": "3"}
	template := &v1alpha1.Template{TemplateFrom: []v1alpha1.TemplateFrom{configMap("one", "", ""), configMap("two", "", "Labels"), configMap("gone", "", ""), secretText("three", "", ""), literal("", "")}}
	cases := map[string]struct {
		reason   string
		template *v1alpha1.Template
		ref      TextRef
		want     map[string]string
	}{
		"ConfigMap": {"Of all entries that name it; a key that is not there is none.", template, TextRef{Name: "t"}, map[string]string{"one": "1", "two": "2"}},
		"Secret":    {"A Secret of the same name is another.", template, TextRef{Secret: true, Name: "t"}, map[string]string{"three": "3"}},
		"Other":     {"Of others nothing is used.", template, TextRef{Name: "other"}, map[string]string{}},
		"None":      {"Without a template nothing is.", nil, TextRef{Name: "t"}, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = tc.template })
			if diff := cmp.Diff(tc.want, TextsUsed(es, tc.ref, all)); diff != "" {
				t.Errorf("\n%s\nTextsUsed(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	for want, ref := range map[string]TextRef{"ConfigMap/t": {Name: "t"}, "Secret/t": {Secret: true, Name: "t"}} {
		if diff := cmp.Diff(want, ref.String()); diff != "" {
			t.Errorf("String(): -want, +got:\n%s", diff)
		}
	}
}
