package render

import (
	"regexp"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// CheckTemplate says what is wrong with the template of an object that writes no Secret.
func CheckTemplate(t *v1alpha1.Template) error {
	return errors.Wrap(checkTemplate(t, ""), "spec.template")
}

// TextsOf returns the ConfigMaps and Secrets that a template reads, without duplicates.
func TextsOf(t *v1alpha1.Template) []TextRef { return textsOf(t) }

// CheckRewrite says what is wrong with the steps of a rewrite.
func CheckRewrite(steps []v1alpha1.Rewrite) error {
	for i, s := range steps {
		if err := checkRewrite(s); err != nil {
			return errors.Wrapf(err, "rewrite[%d]", i)
		}
	}
	return nil
}

// ShapeData returns values as a template shapes them. Without one they stay as they are. The error is of
// class Template and shows no value.
func ShapeData(t *v1alpha1.Template, data map[string][]byte, texts Texts) (map[string][]byte, error) {
	if t == nil {
		return data, nil
	}
	out := Output{Data: data}
	if err := renderTemplate(t, &out, texts); err != nil {
		return nil, err
	}
	return out.Data, nil
}

var encoded = regexp.MustCompile(`_U([0-9a-fA-F]{4,6})_`)

// RevertKey is the reverse of ConvertKey with the strategy Unicode: _Uxxxx_ becomes the character of that
// code.
func RevertKey(key string) string {
	return encoded.ReplaceAllStringFunc(key, func(m string) string {
		code, err := strconv.ParseUint(m[2:len(m)-1], 16, 32)
		if err != nil || !validRune(rune(code)) {
			return m
		}
		return string(rune(code))
	})
}

// validRune reports whether a code is that of a character that a key may hold.
func validRune(r rune) bool { return r >= ' ' && r <= '\U0010FFFF' && (r < 0xD800 || r > 0xDFFF) }
