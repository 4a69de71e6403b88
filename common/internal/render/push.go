package render

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// CheckTemplate returns an error if the template of an object that writes no Secret is invalid.
func CheckTemplate(t *v1alpha1.Template) error {
	return errors.Wrap(checkTemplate(t, ""), "spec.template")
}

// TemplateRefsOf returns the ConfigMaps and Secrets that a template reads, without duplicates.
func TemplateRefsOf(t *v1alpha1.Template) []TextRef { return templateRefsOf(t) }

// CheckRewrite returns an error if a step of a rewrite is invalid.
func CheckRewrite(steps []v1alpha1.Rewrite) error {
	for i, s := range steps {
		if err := checkRewrite(s); err != nil {
			return errors.Wrapf(err, "rewrite[%d]", i)
		}
	}
	return nil
}

// ShapeData renders a template over values. Without a template it returns the values unchanged. The error has class
// Template and shows no value.
func ShapeData(t *v1alpha1.Template, data map[string][]byte, templateSources TemplateSources) (map[string][]byte, error) {
	if t == nil {
		return data, nil
	}
	out := Output{Data: data}
	if err := renderTemplate(t, &out, templateSources); err != nil {
		return nil, err
	}
	return out.Data, nil
}

var encoded = regexp.MustCompile(`_U([0-9a-fA-F]{4,6})_`)

// RevertKey reverses ConvertKey with the strategy Unicode: it replaces _Uxxxx_ by the character with that code.
func RevertKey(key string) string {
	return encoded.ReplaceAllStringFunc(key, func(m string) string {
		code, err := strconv.ParseUint(m[2:len(m)-1], 16, 32)
		if err != nil || !validRune(rune(code)) {
			return m
		}
		return string(rune(code))
	})
}

// validRune reports whether a code is a character that a key can contain.
func validRune(r rune) bool { return r >= 0 && r <= '\U0010FFFF' && (r < 0xD800 || r > 0xDFFF) }

// ParseTemplates reports the first template of an object that the engine does not accept; nil if it accepts all. The error
// names the field.
func ParseTemplates(t *v1alpha1.Template) error {
	if t == nil {
		return nil
	}
	for i, f := range t.TemplateFrom {
		if f.Literal == nil {
			continue
		}
		if err := CheckText(*f.Literal); err != nil {
			return errors.Wrapf(err, "%s.templateFrom[%d].literal", templateField, i)
		}
	}
	for _, m := range []struct {
		field     string
		templates map[string]string
	}{{"data", t.Data}, {labelsField, t.Metadata.Labels}, {annotationsField, t.Metadata.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(m.templates)) {
			if err := CheckText(m.templates[key]); err != nil {
				return errors.Wrapf(err, "%s.%s[%s]", templateField, m.field, key)
			}
		}
	}
	return nil
}
