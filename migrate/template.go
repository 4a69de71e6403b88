package migrate

import (
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"
)

// refusedTypes are types of Secrets that no ExternalSecret writes.
var refusedTypes = []string{"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"}

func secretType(to string) rule {
	return func(f *field) {
		if text(f.sibling(2, "manifest"), "kind") == configMap {
			f.unsupported("a ConfigMap has no type", "remove it, and convert it again")
			return
		}
		if slices.Contains(refusedTypes, f.node.Value) {
			f.unsupported("a Secret of this type is never written", "leave this object with "+f.from.name)
			return
		}
		f.exact(to)
	}
}

// finalizers refuses those of a Secret.
func finalizers(f *field) {
	if f.node.Kind == yaml.SequenceNode && len(f.node.Content) == 0 {
		f.dropped("there are none")
		return
	}
	f.unsupported("the operator sets no finalizer on a Secret", "remove it, and protect the Secret in another way")
}

// templates are the rules for what shapes a Secret.
func templates(at string) rules {
	from := at + ".templateFrom[]"
	all := rules{
		at + ".type": secretType(at + ".type"),
		at + ".engineVersion": func(f *field) {
			if f.node.Value != "v2" {
				f.unsupported("the template engine "+f.node.Value+" does not exist here", "rewrite the templates for the engine v2")
				return
			}
			f.dropped("it is the only engine")
		},
		at + ".metadata.labels":          templateMap(at + ".metadata.labels"),
		at + ".metadata.annotations":     templateMap(at + ".metadata.annotations"),
		at + ".metadata.finalizers":      finalizers,
		at + ".mergePolicy":              mergePolicy(at + ".mergePolicy"),
		at + ".data":                     templateMap(at + ".data"),
		from + ".target":                 templateTarget(from + ".target"),
		from + ".literal":                templateText(from + ".literal"),
		from + ".valuesDecodingStrategy": oneOf(from+".valuesDecodingStrategy", decodings...),
	}
	for _, kind := range []string{".configMap", ".secret"} {
		all[from+kind+".name"] = scalar(from + kind + ".name")
		all[from+kind+".items[].key"] = scalar(from + kind + ".items[].key")
		all[from+kind+".items[].templateAs"] = oneOf(from+kind+".items[].templateAs", "Values", "KeysAndValues")
	}
	return all
}

// templateMap moves templates by their names.
func templateMap(to string) rule {
	return func(f *field) {
		if f.byAction(to) {
			return
		}
		if f.node.Kind != yaml.MappingNode {
			f.invalid("a mapping")
			return
		}
		for key, value := range pairs(f.node) {
			if why := faultOf(value); why != "" && !variable.MatchString(value.Value) {
				f.below(nil, nil, key.Value).unsupported(why, "correct the template, and try it with dsctl render")
				return
			}
			f.below(nil, nil, key.Value).compare(value.Value, to)
		}
		f.exact(to)
	}
}

// templateText moves one template.
func templateText(to string) rule {
	return func(f *field) {
		if why := faultOf(f.node); why != "" && !variable.MatchString(f.node.Value) {
			f.unsupported(why, "correct the template, and try it with dsctl render")
			return
		}
		f.compare(f.node.Value, to)
		f.exact(to)
	}
}

// compare reports a template whose result can differ from that in External Secrets Operator.
func (f *field) compare(text, to string) {
	if name := exactValues.FindString(text); name != "" {
		f.add(Finding{
			Field: f.String(), To: to, Verdict: Changed,
			Reason: "the function " + name + " never changes a value silently: numbers keep their digits, and null, ambiguous or unfit input is an error",
			Todo:   "compare the result with that of External Secrets Operator, as with dsctl render",
		})
	}
}

// exactValues matches functions that can have another result than in External Secrets Operator.
var exactValues = regexp.MustCompile(`\b(mustFromJson|fromJson|fromYaml|atoi)\b`)
