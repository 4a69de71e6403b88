package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/render/cryptofuncs"
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The enums of a template. Unset means the first of each.
const (
	mergeReplace, mergeMerge                            = v1alpha1.TemplateMergePolicy("Replace"), v1alpha1.TemplateMergePolicy("Merge")
	targetData, targetLabels, targetAnnotations         = "Data", "Labels", "Annotations"
	templateAsValues, templateAsKeysAndValues           = "Values", "KeysAndValues"
	templateField, labelsField, annotationsField string = "spec.target.template", "metadata.labels", "metadata.annotations"
)

const (
	// maxAnnotations limits the annotations of a template in total, in bytes. The API server accepts 256 KiB; the
	// rest is for the operator's marks.
	maxAnnotations = 252 << 10
	// maxYAML limits the elements of the YAML that all templates of a Secret make. Each sixteen bytes count as one
	// more element. An element takes about a microsecond and some hundred bytes.
	maxYAML = 200_000
)

// A TextRef names a ConfigMap or Secret with templates, in the namespace of the ExternalSecret.
type TextRef struct {
	// Secret is true for a Secret, false for a ConfigMap.
	Secret bool
	Name   string
}

// Kind returns the Kind of the object.
func (r TextRef) Kind() string {
	if r.Secret {
		return "Secret"
	}
	return "ConfigMap"
}

// TemplateSources are the contents of the ConfigMaps and Secrets that a plan names, by key. An object without an entry does not
// exist.
type TemplateSources map[TextRef]map[string]string

// templateRefsOf returns the objects from which a template reads texts, without duplicates.
func templateRefsOf(t *v1alpha1.Template) []TextRef {
	var refs []TextRef
	if t == nil {
		return nil
	}
	for _, f := range t.TemplateFrom {
		if ref, src := sourceOf(f); src != nil && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

func sourceOf(f v1alpha1.TemplateFrom) (TextRef, *v1alpha1.TemplateSource) {
	switch {
	case f.ConfigMap != nil:
		return TextRef{Name: f.ConfigMap.Name}, f.ConfigMap
	case f.Secret != nil:
		return TextRef{Secret: true, Name: f.Secret.Name}, f.Secret
	}
	return TextRef{}, nil
}

// checkTemplate returns an error if a template is invalid, as far as that is known without values. target is the name
// of the Secret that it makes.
func checkTemplate(t *v1alpha1.Template, target string) error {
	if t == nil {
		return nil
	}
	if t.Type == string(corev1.SecretTypeServiceAccountToken) || t.Type == string(corev1.SecretTypeBootstrapToken) {
		return errors.Errorf("type: %s is refused, because it grants permissions in the cluster; use another type", t.Type)
	}
	if err := known(enum{"mergePolicy", string(t.MergePolicy), names(mergeReplace, mergeMerge)}); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(t.Data)) {
		if err := checkKey(k); err != nil {
			return errors.Wrapf(err, "data[%.64s]", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.Metadata.Labels)) {
		if err := checkMetadataKey(k); err != nil {
			return errors.Wrapf(err, "%s[%.64s]", labelsField, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.Metadata.Annotations)) {
		if err := checkMetadataKey(k); err != nil {
			return errors.Wrapf(err, "%s[%.64s]", annotationsField, k)
		}
	}
	for i, f := range t.TemplateFrom {
		if err := checkTemplateFrom(f, target); err != nil {
			return errors.Wrapf(err, "templateFrom[%d]", i)
		}
	}
	return nil
}

func checkTemplateFrom(f v1alpha1.TemplateFrom, target string) error {
	set := 0
	for _, is := range []bool{f.ConfigMap != nil, f.Secret != nil, f.Literal != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return errors.Errorf("%d of configMap, secret and literal are set; set exactly one", set)
	}
	if err := known(enum{"target", f.Target, []string{targetData, targetLabels, targetAnnotations}},
		enum{"valuesDecodingStrategy", f.ValuesDecodingStrategy, decodings}); err != nil {
		return err
	}
	ref, src := sourceOf(f)
	if src == nil {
		return nil
	}
	field := strings.ToLower(ref.Kind()[:1]) + ref.Kind()[1:]
	if msgs := validation.IsDNS1123Subdomain(src.Name); len(msgs) > 0 {
		return errors.Errorf("%s.name: %q cannot be the name of a %s", field, src.Name, ref.Kind())
	}
	if ref.isTarget(target) { // Each write would cause another one.
		return errors.Errorf("%s.name: %q is the %s that this ExternalSecret writes; keep the templates in another", field, src.Name, ref.Kind())
	}
	if len(src.Items) == 0 {
		return errors.Errorf("%s.items is empty; name the keys that hold templates", field)
	}
	for i, item := range src.Items {
		if err := known(enum{"templateAs", item.TemplateAs, []string{templateAsValues, templateAsKeysAndValues}}); err != nil {
			return errors.Wrapf(err, "%s.items[%d]", field, i)
		}
	}
	return nil
}

func checkKey(k string) error { return named(k, refusedKey(k)) }

func checkMetadataKey(k string) error { return named(k, refusedMetadataKey(k)) }

// named returns an error with a key of the spec and why it is refused; nil if why is empty.
func named(k, why string) error {
	if why == "" {
		return nil
	}
	return errors.Errorf("%.64q %s", k, why)
}

// refusedKey returns why a key is refused, without the key; empty if it is not.
func refusedKey(k string) string {
	if len(validation.IsConfigMapKey(k)) > 0 {
		return "cannot be a key of a Secret; use letters, digits, '-', '_' and '.'"
	}
	return ""
}

// refusedMetadataKey returns why a key of a label or annotation is refused, without the key; empty if it is not. It
// refuses this project's own labels and annotations, because they decide which objects the operator can change.
func refusedMetadataKey(k string) string {
	if msgs := validation.IsQualifiedName(k); len(msgs) > 0 {
		return "cannot be a label or annotation: " + msgs[0]
	}
	prefix, _, _ := strings.Cut(k, "/")
	if prefix == v1alpha1.Group || strings.HasSuffix(prefix, "."+v1alpha1.Group) {
		return "is reserved for the operator; choose another"
	}
	return ""
}

// engine renders all templates.
var engine = func() *template.Engine {
	added := map[string]template.Function{}
	for name, call := range cryptofuncs.Functions() {
		added[name] = template.Function{Call: call, Steps: costOf(name)}
	}
	e, err := template.New(added)
	if err != nil {
		panic(err) // All functions are known at compile time, and a test creates an engine.
	}
	return e
}()

// CheckText reports why the engine does not accept a text as a template; nil if it does.
func CheckText(text string) error { return engine.Check(text) }

// renderTemplate applies a template to an output. The error has class Template, names the template and the line, and
// shows no value.
func renderTemplate(t *v1alpha1.Template, out *Output, templateSources TemplateSources) error {
	return newShaping(templateSources).render(t, out)
}

func newShaping(templateSources TemplateSources) *shaping {
	return &shaping{values: map[string]string{}, templateSources: templateSources, budget: template.NewBudget()}
}

func (s *shaping) render(t *v1alpha1.Template, out *Output) error {
	for k, v := range out.Data {
		s.values[k] = string(v)
	}
	out.Data = maps.Clone(out.Data)
	if makesData(t) && t.MergePolicy != mergeMerge {
		out.Data = map[string][]byte{}
	}
	s.out = out
	out.Labels, out.Annotations = map[string]string{}, map[string]string{}
	for i, f := range t.TemplateFrom {
		if err := s.from(f, fmt.Sprintf("%s.templateFrom[%d]", templateField, i)); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		field, target string
		templates     map[string]string
	}{
		{"data", targetData, t.Data},
		{labelsField, targetLabels, t.Metadata.Labels},
		{annotationsField, targetAnnotations, t.Metadata.Annotations},
	} {
		for _, k := range slices.Sorted(maps.Keys(m.templates)) {
			name := fmt.Sprintf("%s.%s[%s]", templateField, m.field, k)
			v, err := s.execute(name, m.templates[k])
			if err == nil {
				err = s.put(name, m.target, k, v)
			}
			if err != nil {
				return err
			}
		}
	}
	size := 0
	for k, v := range out.Annotations {
		size += len(k) + len(v)
	}
	if size > maxAnnotations {
		return failed("%s: the annotations have %d bytes in total, at most %d are allowed", templateField, size, maxAnnotations)
	}
	return nil
}

// makesData reports whether a template makes data, and not only labels and annotations.
func makesData(t *v1alpha1.Template) bool {
	return len(t.Data) > 0 || slices.ContainsFunc(t.TemplateFrom, func(f v1alpha1.TemplateFrom) bool {
		return f.Target == "" || f.Target == targetData
	})
}

// failed returns an error of class Template.
func failed(format string, args ...any) *provider.Error {
	return provider.NewError(provider.Template, format, args...)
}

type shaping struct {
	values          map[string]string
	templateSources TemplateSources
	budget          *template.Budget
	out             *Output
	// placeholders is true if the values are placeholders, which are not checked.
	placeholders bool
	// yaml counts elements, up to maxYAML.
	yaml int
}

func (s *shaping) execute(name, text string) ([]byte, error) {
	v, err := engine.Execute(name, text, s.values, s.budget)
	if err != nil {
		return nil, failed("%s", err)
	}
	return v, nil
}

// from renders the templates of another object, or of a literal.
func (s *shaping) from(f v1alpha1.TemplateFrom, at string) error {
	if f.Literal != nil {
		return s.keysAndValues(at+".literal", f, *f.Literal)
	}
	ref, src := sourceOf(f)
	contents, ok := s.templateSources[ref]
	if !ok {
		return failed("%s: %s %q does not exist; create it or correct the name", at, ref.Kind(), ref.Name)
	}
	for _, item := range src.Items {
		text, ok := contents[item.Key]
		name := fmt.Sprintf("%s %s %q key %q", at, ref.Kind(), ref.Name, item.Key)
		switch {
		case !ok:
			return failed("%s: it has no such key", name)
		case item.TemplateAs == templateAsKeysAndValues:
			if err := s.keysAndValues(name, f, text); err != nil {
				return err
			}
			continue
		}
		v, err := s.execute(name, text)
		if err == nil {
			err = s.decoded(name, f, item.Key, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// put stores a value in its target. Its errors do not show the key, which might be a value.
func (s *shaping) put(name, target, key string, value []byte) error {
	switch target {
	case targetLabels:
		if why := refusedMetadataKey(key); why != "" {
			return failed("%s: the key %s", name, why)
		}
		if !s.placeholders && len(validation.IsValidLabelValue(string(value))) > 0 {
			return failed("%s: the value is not a valid label value; use at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit", name)
		}
		s.out.Labels[key] = string(value)
	case targetAnnotations:
		if why := refusedMetadataKey(key); why != "" {
			return failed("%s: the key %s", name, why)
		}
		if !utf8.Valid(value) {
			return failed("%s: the value is not UTF-8, as annotations require; encode it, for example with b64enc", name)
		}
		s.out.Annotations[key] = string(value)
	default:
		if why := refusedKey(key); why != "" {
			return failed("%s: the key %s", name, why)
		}
		s.out.Data[key] = value
	}
	return nil
}

// costOf returns the cost of a function in steps of the engine's budget, about a microsecond each. Hostile archives
// and RSA keys can take a hundred times as long, so only a few such calls are served.
func costOf(name string) int {
	switch {
	case strings.HasPrefix(name, "pkcs12"):
		return 240_000 // Its keys are derived from a password, in as many rounds as the archive sets: up to 0.4 s.
	case name == "rsaDecrypt":
		return 100_000
	case strings.HasPrefix(name, "jwk"):
		return 60_000 // An RSA key is validated before its use.
	}
	return 20_000
}
