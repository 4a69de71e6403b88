package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// Inputs returns everything that the output of a template depends on: the spec, the output of Read, and the texts of
// other objects. Some templates have a different output each time, for example archives because of their salts. So
// only the inputs show whether anything has changed.
//
// Inputs is nil if there is no template, neither of the Secret nor of its keys: then the caller compares the output.
// The inputs contain values; use them for hashing only.
func Inputs(es *v1alpha1.ExternalSecret, p Plan, read Output, templateSources TemplateSources) [][]byte {
	if !templated(es) {
		return nil
	}
	consequence := policy.OnNotFound(es.Spec.Target.DeletionPolicy, read.NotFound != nil, read.Values)
	dropped := consequence == policy.DropKeys || consequence == policy.DropSecret
	inputs := [][]byte{
		encode(es.Spec.Target.Template), encode(es.Spec.Data), encode(es.Spec.DataFrom), encode(es.Spec.Target.Immutable),
		encode(p.Sources), encode(dropped),
	}
	if transforms(es) {
		for _, kvs := range read.Taken {
			inputs = append(inputs, encode(len(kvs)))
			for _, kv := range kvs {
				inputs = append(inputs, []byte(kv.Key), kv.Value)
			}
		}
	} else {
		inputs = appendMap(inputs, read.Data)
	}
	for _, ref := range p.TemplateRefs {
		text, found := templateSources[ref]
		inputs = appendMap(append(inputs, encode(ref), encode(found)), text)
	}
	return inputs
}

// appendMap appends the size of a map, and its keys and values, sorted by key. The values are not encoded: JSON would
// make all invalid UTF-8 equal.
func appendMap[V string | []byte](inputs [][]byte, m map[string]V) [][]byte {
	inputs = append(inputs, encode(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		inputs = append(inputs, []byte(k), []byte(m[k]))
	}
	return inputs
}

// templated reports whether the object has any template.
func templated(es *v1alpha1.ExternalSecret) bool {
	t := es.Spec.Target.Template
	return transforms(es) || (t != nil && len(t.Data)+len(t.TemplateFrom)+len(t.Metadata.Labels)+len(t.Metadata.Annotations) > 0)
}

// transforms reports whether a template rewrites keys.
func transforms(es *v1alpha1.ExternalSecret) bool {
	return slices.ContainsFunc(es.Spec.DataFrom, func(e v1alpha1.DataFromEntry) bool {
		return slices.ContainsFunc(e.Rewrite, func(w v1alpha1.Rewrite) bool { return w.Transform != nil })
	})
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil // An object from the API server can always be encoded.
	}
	return b
}

// KeysUsed returns those keys of a ConfigMap or Secret that the template of an ExternalSecret names.
func KeysUsed(es *v1alpha1.ExternalSecret, ref TextRef, all map[string]string) map[string]string {
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

// String returns the kind and name of a text source.
func (r TextRef) String() string { return strings.Join([]string{r.Kind(), r.Name}, "/") }
