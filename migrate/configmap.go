package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// configMap is the only Kind besides Secret that an ExternalSecret writes.
const configMap = "ConfigMap"

// targetManifest moves a target that is a ConfigMap, and refuses other Kinds.
func targetManifest(f *field) {
	version, kind := text(f.node, "apiVersion"), text(f.node, "kind")
	switch {
	case f.node.Kind != yaml.MappingNode:
		f.invalid("a mapping")
	case unknown(version) || unknown(kind):
		f.unsupported("the Kind of the target is made when the manifest is applied", "write the Kind, and convert it again")
	case version == "" || kind == "":
		f.unsupported("it needs apiVersion and kind", "complete it, and convert it again")
	case version == "v1" && kind == "Secret":
		f.unsupported("External Secrets Operator does not write such a Secret as it writes others", "remove the field, and convert it again")
	case version != "v1" || kind != configMap:
		f.unsupported("only a Secret or a ConfigMap is written", "leave this object with "+f.from.name)
	case f.only("apiVersion", "kind"):
		f.configMapTarget()
	}
}

// configMapTarget moves a target that is a ConfigMap. External Secrets Operator has differences to a Secret.
func (f *field) configMapTarget() {
	from := f.sibling(2, "dataFrom")
	for i := range length(from) {
		if child(from.Content[i], "sourceRef", "generatorRef") != nil {
			f.unsupported("generated values are secret, and are not written to a ConfigMap", "write them to a Secret, by an ExternalSecret of its own")
			return
		}
	}
	if t := f.sibling(1, "template"); t != nil && child(t, "data") == nil && child(t, "templateFrom") == nil {
		f.add(Finding{
			Field: f.String(), Verdict: Changed,
			Reason: "the template has no data, and the ConfigMap gets all values; External Secrets Operator writes none",
			Todo:   "check which keys readers of the ConfigMap expect",
		})
	}
	for key, value := range pairs(f.node) {
		f.out.pend(len(f.path)+1, key, value)
	}
	f.node = scalarNode(configMap, f.node)
	f.changed("spec.target.kind",
		"a value that is not UTF-8 text is an error, and the module of the store needs the chart value configMapTargets.enabled; External Secrets Operator needs --unsafe-allow-generic-targets",
		"check that no value is secret: anyone who can read ConfigMaps can read it; and set the chart value, as --values writes it")
}

// mergePolicy moves the policy for keys without a template.
func mergePolicy(to string) rule {
	return func(f *field) {
		if text(f.sibling(2, "manifest"), "kind") == configMap && f.node.Value == "Merge" {
			f.dropped("External Secrets Operator ignores it for a ConfigMap")
			return
		}
		oneOf(to, "Replace", "Merge")(f)
	}
}

// templateTarget moves what a template writes.
func templateTarget(to string) rule {
	parts := []string{"Data", "Annotations", "Labels"}
	return func(f *field) {
		if i := slices.IndexFunc(parts, func(p string) bool { return strings.EqualFold(p, f.node.Value) }); i >= 0 {
			f.node = scalarNode(parts[i], f.node)
		}
		if part, _, path := strings.Cut(f.node.Value, "."); (path || part == "spec") && !unknown(f.node.Value) {
			f.unsupported("a template writes keys, labels or annotations, and no other path of an object", "write a key with its whole value, or leave this object with "+f.from.name)
			return
		}
		oneOf(to, parts...)(f)
	}
}

// allowConfigMaps lets the module that reconciles an ExternalSecret write its ConfigMap. at is its spec.
func (o *object) allowConfigMaps(at string) {
	spec := child(o.out.root, strings.Split(at, ".")...)
	if text(spec, "target", "kind") != configMap {
		return
	}
	for _, k := range storesOf(spec) {
		o.used.module(k.module).configMaps = true
	}
}

// storesOf returns the Kind of the store whose module reconciles an ExternalSecret with a spec; none if no store is named.
func storesOf(spec *yaml.Node) []kind {
	list := "data"
	if child(spec, list) == nil {
		list = "dataFrom"
	}
	store := text(spec, "storeRef", "kind")
	if store == "" {
		store = text(spec, list, index(0), "sourceRef", "storeRef", "kind")
	}
	var all []kind
	for _, k := range storeKinds {
		if strings.TrimPrefix(store, "Cluster") == k.name {
			all = append(all, k)
		}
	}
	return all
}
