package migrate

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// secretObjects are the rules for the Secrets of a class.
var secretObjects = rules{
	"spec.secretObjects[].secretName":        usedBy("spec.target.name"),
	"spec.secretObjects[].type":              csiType,
	"spec.secretObjects[].labels":            stringMapOnly("spec.target.template.metadata.labels"),
	"spec.secretObjects[].annotations":       stringMapOnly("spec.target.template.metadata.annotations"),
	"spec.secretObjects[].data[].objectName": usedBy("spec.data[].remoteRef"),
	"spec.secretObjects[].data[].key":        usedBy("spec.data[].secretKey"),
	"spec.secretObjects[].data[].plainValue": usedBy("spec.target.template.data"),
}

// stringMapOnly checks a mapping of text that becomes a part of a result.
func stringMapOnly(to string) rule {
	return func(f *field) {
		if f.node.Kind != yaml.MappingNode {
			f.invalid("a mapping")
			return
		}
		f.pend()
		for key, value := range pairs(f.node) {
			if !isText(value) {
				f.below(nil, value, key.Value).invalid("text")
				return
			}
		}
		f.add(Finding{Field: f.String(), To: to, Verdict: Exact})
	}
}

// csiType checks the type of a Secret. The driver takes certificate and key out of the values of one for TLS.
func csiType(f *field) {
	f.pend()
	switch {
	case slices.Contains(refusedTypes, f.node.Value):
		f.unsupported("a Secret of this type is never written", "leave this object with "+f.from.name)
	case f.node.Value == "kubernetes.io/tls":
		f.add(Finding{Field: f.String(), To: "spec.target.template.type", Verdict: Changed, Reason: "values are written as they are; the driver takes the certificates for tls.crt and the key for tls.key out of PEM or PKCS#12", Todo: "check that each value has the one part only, or use the function filterPEM in target.template"})
	default:
		f.add(Finding{Field: f.String(), To: "spec.target.template.type", Verdict: Exact})
	}
}

// secret adds the ExternalSecret of one Secret; at is where the class describes it.
func (c *class) secret(at string, n, metadata *yaml.Node) {
	name := text(n, "secretName")
	if name == "" {
		c.refuse(at+".secretName", "it is missing")
		return
	}
	spec, data := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.SequenceNode}
	template := &tree{root: mapping(), lists: map[string]*yaml.Node{}}
	if kind := text(n, "type"); kind != "" && kind != "Opaque" {
		template.set(kind, "type")
	}
	for _, what := range []string{"labels", "annotations"} {
		for key, value := range pairs(child(n, what)) {
			template.set(literal(value.Value), "metadata", what, key.Value)
		}
	}
	entries := child(n, "data")
	for i := range length(entries) {
		entry := entries.Content[i]
		field, key := at+".data["+strconv.Itoa(i)+"]", strings.TrimSpace(text(entry, "key"))
		if value := child(entry, "plainValue"); value != nil && text(entry, "objectName") == "" {
			template.set("Merge", "mergePolicy")
			template.set(literal(value.Value), "data", key)
			continue
		}
		file := c.file(strings.TrimSpace(text(entry, "objectName")))
		if file == nil {
			c.refuse(field+".objectName", "no object has a file of this name")
			continue
		}
		file.synced = true
		data.Content = append(data.Content, c.entry(key, file))
	}
	if len(data.Content) == 0 {
		c.refuse(at+".data", "it reads nothing")
		return
	}
	target := mapping("name", plain(name))
	if len(template.root.Content) > 0 {
		target.Content = append(target.Content, plain("template"), template.root)
	}
	c.externalSecret(at+".secretName", name, metadata, spec, target, data)
}

// externalSecret adds an ExternalSecret. Two of the same name would write the same Secret.
func (c *class) externalSecret(field, name string, metadata, spec, target, data *yaml.Node) {
	place := "ExternalSecret/" + c.inputs.namespace(c.Namespace) + "/" + name
	if _, taken := c.inputs.names[place]; taken {
		c.refuse(field, "another entry or SecretProviderClass writes the Secret "+name+", too")
		return
	}
	c.inputs.names[place] = c.Name.Name
	if len(c.stores) == 1 {
		spec.Content = append(spec.Content, plain("storeRef"), c.stores[0].reference())
	}
	spec.Content = append(spec.Content, plain("target"), target, plain("data"), data)
	c.result(kind{name: "ExternalSecret"}, name, metadata, spec)
}

// entry returns an entry of data.
func (c *class) entry(key string, file *csiFile) *yaml.Node {
	n := mapping("secretKey", plain(key), "remoteRef", new(expansion).copied(file.ref, 0))
	if len(c.stores) > 1 {
		n.Content = append(n.Content, plain("sourceRef"), mapping("storeRef", file.store.reference()))
	}
	return n
}

func (s *csiStore) reference() *yaml.Node {
	return mapping("kind", plain(s.kind.name), "name", plain(s.name))
}

// mounted adds an ExternalSecret with all files, if one of them is in no Secret, and reports what to do with volumes.
func (c *class) mounted(metadata *yaml.Node) {
	var only []string
	for _, f := range c.files {
		if !f.synced {
			only = append(only, f.name)
		}
	}
	volumes := "the volume of the pods"
	for i, m := range c.mounts {
		one := "the volume " + m.volume + " of " + m.workload
		if i == 0 {
			volumes = one
		} else {
			volumes += ", " + one
		}
	}
	if len(only) == 0 {
		c.add(Finding{Field: "spec.secretObjects", Verdict: Changed, Reason: "pods need no volume of the driver any more", Todo: "remove " + volumes + ", or replace csi in it by a Secret, if files are read"})
		return
	}
	name := c.Name.Name
	if c.inputs.names["ExternalSecret/"+c.inputs.namespace(c.Namespace)+"/"+name] != "" {
		name += "-files"
	}
	data, seen := &yaml.Node{Kind: yaml.SequenceNode}, map[string]bool{}
	for _, f := range c.files {
		key := strings.ReplaceAll(f.name, "/", "_")
		if seen[key] {
			c.refuse("spec.parameters", "two files have the key "+key)
			return
		}
		if seen[key] = true; key != f.name {
			c.add(Finding{Field: "spec.parameters", Verdict: Changed, Reason: "the key of the file " + f.name + " is " + key, Todo: "set items of the volume: {key: " + key + ", path: " + f.name + "}"})
		}
		data.Content = append(data.Content, c.entry(key, f))
	}
	c.externalSecret("metadata.name", name, metadata, &yaml.Node{Kind: yaml.MappingNode}, mapping("name", plain(name)), data)
	c.add(Finding{Field: "spec.parameters", Verdict: Changed, Reason: "files are in no Secret (" + strings.Join(only, ", ") + "), so the Secret " + name + " has all files; their values are stored in the cluster", Todo: "replace csi by secret: {secretName: " + name + "} in " + volumes})
}
