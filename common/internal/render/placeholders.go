package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Placeholders returns the output of an ExternalSecret without values: a text takes the place of each value, and names the remote
// key and property. dataFrom has placeholders for the keys that the templates read by name and data does not fill. The error is
// like that of Shape; the type of the Secret is not checked.
func Placeholders(es *v1alpha1.ExternalSecret, p Plan) (Output, error) {
	t, out := es.Spec.Target.Template, Output{Data: map[string][]byte{}}
	for _, e := range es.Spec.Data {
		out.Data[e.SecretKey] = []byte(placeholder(remoteName(e.RemoteRef)))
	}
	if t == nil {
		return out, nil
	}
	for _, k := range keysRead(t) {
		if len(es.Spec.DataFrom) > 0 && out.Data[k] == nil {
			out.Data[k] = []byte(placeholder("dataFrom key " + k))
		}
	}
	s := newShaping(placeholderSources(t, p))
	s.placeholders = true
	err := s.render(t, &out)
	return out, err
}

// placeholder returns a text that takes the place of a value.
func placeholder(name string) string { return "<" + name + ">" }

// remoteName returns the key and property of a remoteRef.
func remoteName(rr v1alpha1.RemoteRef) string {
	if rr.Property == "" {
		return rr.Key
	}
	return rr.Key + " property " + rr.Property
}

// keysRead returns the keys that the templates of an object read by name.
func keysRead(t *v1alpha1.Template) (keys []string) {
	var templates []string
	for _, m := range []map[string]string{t.Data, t.Metadata.Labels, t.Metadata.Annotations} {
		templates = slices.AppendSeq(templates, maps.Values(m))
	}
	for _, f := range t.TemplateFrom {
		if f.Literal != nil {
			templates = append(templates, *f.Literal)
		}
	}
	for _, text := range templates {
		keys = append(keys, engine.Keys(text)...)
	}
	return keys
}

// placeholderSources returns a text in place of each template of another object. A template of keys and values makes none.
func placeholderSources(t *v1alpha1.Template, p Plan) TemplateSources {
	all := make(TemplateSources, len(p.TemplateRefs))
	for _, f := range t.TemplateFrom {
		ref, src := sourceOf(f)
		if src == nil {
			continue
		}
		if all[ref] == nil {
			all[ref] = map[string]string{}
		}
		for _, item := range src.Items {
			if all[ref][item.Key] = ""; item.TemplateAs != templateAsKeysAndValues {
				all[ref][item.Key] = placeholder(fmt.Sprintf("%s %s key %s", ref.Kind(), ref.Name, item.Key))
			}
		}
	}
	return all
}
