package render

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Inputs are all that the output of a template depends on: the spec, the values that were read, and the
// templates kept elsewhere. Some output differs each time it is rendered, as archives do for their salts, so
// only these tell whether anything has changed. They are nil where there is no template, neither of the Secret
// nor of its keys: then the output tells. They hold values, and are only good for hashing.
func Inputs(es *v1alpha1.ExternalSecret, p Plan, values Values, texts Texts) [][]byte {
	if !templated(es) {
		return nil
	}
	inputs := [][]byte{encode(es.Spec.Target.Template), encode(es.Spec.Data), encode(es.Spec.DataFrom), encode(es.Spec.Target.Immutable)}
	for _, s := range p.Sources {
		a := values(s)
		inputs = append(inputs, encode(s), encode(a.Err == nil), a.Value.Data, encode(a.Value.Metadata))
		for _, v := range a.Found {
			inputs = append(inputs, []byte(v.Key), v.Data)
		}
	}
	for _, ref := range p.Texts {
		inputs = append(inputs, encode(ref), encode(texts[ref]))
	}
	return inputs
}

// templated reports whether anything is rendered.
func templated(es *v1alpha1.ExternalSecret) bool {
	if t := es.Spec.Target.Template; t != nil && len(t.Data)+len(t.TemplateFrom)+len(t.Metadata.Labels)+len(t.Metadata.Annotations) > 0 {
		return true
	}
	return slices.ContainsFunc(es.Spec.DataFrom, func(e v1alpha1.DataFromEntry) bool {
		return slices.ContainsFunc(e.Rewrite, func(w v1alpha1.Rewrite) bool { return w.Transform != nil })
	})
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil // What came from the API server encodes.
	}
	return b
}

// TextsUsed returns the keys of a ConfigMap or Secret that the template of an ExternalSecret names.
func TextsUsed(es *v1alpha1.ExternalSecret, ref TextRef, all map[string]string) map[string]string {
	used := map[string]string{}
	if es.Spec.Target.Template == nil {
		return used
	}
	for _, f := range es.Spec.Target.Template.TemplateFrom {
		r, src := sourceOf(f)
		if src == nil || r != ref {
			continue
		}
		for _, item := range src.Items {
			if v, ok := all[item.Key]; ok {
				used[item.Key] = v
			}
		}
	}
	return used
}

// String names a text source.
func (r TextRef) String() string { return strings.Join([]string{r.Kind(), r.Name}, "/") }
