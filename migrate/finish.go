package migrate

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// immutable moves the mark of a Secret that is never changed.
func immutable(f *field) {
	policy := f.sibling(1, "creationPolicy")
	if policy != nil && policy.Value == "None" {
		f.dropped("no Secret is written")
		return
	}
	if f.node.Value == "true" && text(f.sibling(1, "manifest"), "kind") == configMap {
		f.unsupported("External Secrets Operator writes the ConfigMap once, and does not make it immutable", "set refreshPolicy: CreatedOnce instead, and convert it again")
		return
	}
	f.exact("spec.target.immutable")
}

// finishExternalSecret reports what External Secrets Operator refuses, and what its policies do differently.
func (o *object) finishExternalSecret(at string) {
	spec := child(o.node, strings.Split(at, ".")...)
	data, from := child(spec, "data"), child(spec, "dataFrom")
	if length(data)+length(from) == 0 {
		o.add(Finding{Field: at, Verdict: Unsupported, Reason: "it reads nothing: data and dataFrom are empty", Todo: "complete it, and convert it again"})
		return
	}
	store := text(spec, "secretStoreRef", "name") != ""
	policy := text(spec, "target", "deletionPolicy")
	retain := policy != "Delete" && policy != "Merge"
	seen := map[string]bool{}
	for i := range length(data) {
		entry, field := data.Content[i], at+".data["+strconv.Itoa(i)+"]"
		o.finishData(field, entry, store)
		key := text(entry, "secretKey")
		if seen[key] && retain {
			o.refuse(field+".secretKey", "the key occurs twice")
		}
		seen[key] = true
		o.shape(at, "data", i, entry, "remoteRef")
	}
	for i := range length(from) {
		o.finishDataFrom(at+".dataFrom["+strconv.Itoa(i)+"]", from.Content[i], store)
		o.shape(at, "dataFrom", i, from.Content[i], "extract")
	}
	o.deletionPolicy(at, spec, hasProperty(data, "remoteRef") || hasProperty(from, "extract"))
	o.allowConfigMaps(at)
}

// finishData reports what External Secrets Operator refuses in an entry of data; store says that the object names one.
func (o *object) finishData(field string, entry *yaml.Node, store bool) {
	if text(entry, "secretKey") == "" {
		o.refuse(field+".secretKey", "it is missing")
	}
	if !store && text(entry, "sourceRef", "storeRef", "name") == "" && child(entry, "sourceRef", "generatorRef") == nil {
		o.refuse(field, "it names no store")
	}
}

// finishDataFrom reports what External Secrets Operator refuses in an entry of dataFrom.
func (o *object) finishDataFrom(field string, entry *yaml.Node, store bool) {
	generator := child(entry, "sourceRef", "generatorRef") != nil
	if !store && text(entry, "sourceRef", "storeRef", "name") == "" && !generator {
		o.refuse(field, "it names no store")
	}
	old := strings.HasSuffix(o.APIVersion, "/v1alpha1") && child(entry, "key") != nil
	if child(entry, "extract") == nil && child(entry, "find") == nil && !generator && !old {
		o.refuse(field, "it has none of extract, find and sourceRef.generatorRef")
	}
}

// hasProperty reports whether an entry of a list reads a property.
func hasProperty(list *yaml.Node, name string) bool {
	return length(list) > 0 && slices.ContainsFunc(list.Content, func(entry *yaml.Node) bool { return text(entry, name, "property") != "" })
}

// shape reports metadata of an entry that has another shape here.
func (o *object) shape(at, list string, i int, entry *yaml.Node, name string) {
	if ref := child(entry, name); ref != nil {
		path := append(strings.Split(at, "."), list, index(i), name)
		(&field{object: o, node: ref, path: path, nested: at}).metadataShape()
	}
}

// deletionPolicy reports what differs when a value no longer exists.
func (o *object) deletionPolicy(at string, spec *yaml.Node, properties bool) {
	policy := text(spec, "target", "deletionPolicy")
	if policy == "Delete" && text(spec, "target", "creationPolicy") == "Orphan" {
		o.add(Finding{Field: at + ".target.deletionPolicy", To: at + ".target.deletionPolicy", Verdict: Changed, Reason: "the Secret is deleted with the last of its values; External Secrets Operator deletes none that it does not own", Todo: "check that the Secret may be deleted, or set Retain"})
	}
	if (policy == "Delete" || policy == "Merge") && properties {
		o.add(Finding{Field: at + ".target.deletionPolicy", To: at + ".target.deletionPolicy", Verdict: Changed, Reason: "a property that is absent counts as gone, and its key is removed; in External Secrets Operator it is an error, and the Secret stays", Todo: "check that a key may be removed with its property, or set Retain"})
	}
}

// refuse reports what External Secrets Operator refuses, too.
func (o *object) refuse(field, reason string) {
	o.add(Finding{Field: field, Verdict: Unsupported, Reason: reason, Todo: "correct it, and convert it again"})
}

// length returns the number of elements of a list.
func length(n *yaml.Node) int {
	if n == nil || n.Kind != yaml.SequenceNode {
		return 0
	}
	return len(n.Content)
}
