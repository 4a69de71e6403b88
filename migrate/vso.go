package migrate

import (
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// groupVSO is the API group of Vault Secrets Operator.
const groupVSO = "secrets.hashicorp.com"

var v1beta1 = []string{"v1beta1"}

// vso is HashiCorp's Vault Secrets Operator. A VaultConnection, a VaultAuth and a VaultAuthGlobal become parts of the
// stores and generators of the objects that use them.
var vso = &tool{name: "Vault Secrets Operator", groups: map[string]map[string]source{groupVSO: {
	"VaultConnection":    {v1beta1, 0, vaultConnection},
	"VaultAuthGlobal":    {v1beta1, 0, vaultAuthGlobal},
	"VaultAuth":          {v1beta1, 1, vaultAuth},
	"VaultStaticSecret":  {v1beta1, 2, vaultStaticSecret},
	"VaultDynamicSecret": {v1beta1, 2, vaultDynamicSecret},
}}}

// isPart reports whether the objects of a Kind become parts of others.
func (o *object) isPart() bool {
	return groupOf(o.APIVersion) == groupVSO && slices.Contains([]string{"VaultConnection", "VaultAuthGlobal", "VaultAuth"}, o.Kind)
}

// decideAsPart decides about an object that became a part of others: it stays if one of them cannot be converted. Those that
// users refer to are settled after their users.
func (o *object) decideAsPart() {
	if !o.isPart() || o.verdict() == Unsupported || o.omitted {
		return
	}
	const todo = "convert it together with all objects that use it"
	var names []string
	for _, u := range o.users() {
		u.decideAsPart()
		if u.verdict() == Unsupported {
			o.add(Finding{Verdict: Unsupported, Reason: u.Kind + " " + u.Name.Name + ", which uses it, cannot be converted", Todo: todo})
			return
		}
		if u.own {
			names = append(names, u.Kind+" "+u.Name.Name)
		}
	}
	if len(names) == 0 {
		o.add(Finding{Verdict: Unsupported, Reason: "no object of the input uses it, and it becomes a part of those that do", Todo: todo})
		return
	}
	o.omitted = true
	o.add(Finding{Verdict: Exact, Reason: "it became a part of what " + strings.Join(names, ", ") + " became"})
}

// partMetadata are the rules for the metadata of an object that becomes a part of others.
func partMetadata() rules {
	pend := func(f *field) { f.pend() }
	lost := func(f *field) {
		f.pend()
		for key, value := range pairs(f.node) {
			at := f.below(key, value, key.Value)
			if f.path[len(f.path)-1] == "annotations" && dropped(key.Value) {
				at.dropped("it is about the original alone")
				continue
			}
			at.pend()
			at.add(Finding{Field: at.String(), Verdict: Changed, Reason: "the objects that it becomes a part of do not have it", Todo: "add it to them, if another tool needs it"})
		}
	}
	return metadata().with(rules{
		"apiVersion": pend, "kind": pend, "metadata.name": pend, "metadata.namespace": pend,
		"metadata.labels": lost, "metadata.annotations": lost,
	})
}

// vaultConnections are the rules for the spec of a VaultConnection.
var vaultConnections = rules{
	"spec.address":         vaultAddress,
	"spec.headers":         headers,
	"spec.tlsServerName":   tlsServerName,
	"spec.caCertSecretRef": caCertSecret,
	"spec.skipTLSVerify":   onlyFalse("the certificate of the server is always verified", "name a Secret with the certificates of its authority in caCertSecretRef"),
	"spec.timeout": func(f *field) {
		f.pend()
		f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "the time limits of requests are fixed", Todo: "check that Vault answers within 15 seconds"})
	},
}

// vaultConnection converts a VaultConnection to the fields of a server.
func vaultConnection(o *object) {
	vaultConnections.with(partMetadata()).walk(&field{object: o, node: o.node})
	if text(o.node, "spec", "address") == "" {
		o.refuse("spec.address", "it is missing")
	}
}

// tlsServerName drops the name in the certificate of a server, if it is that of the address.
func tlsServerName(f *field) {
	u, err := url.Parse(text(f.object.node, "spec", "address"))
	switch {
	case f.node.Value == "":
		f.dropped("it is empty")
	case err == nil && u.Hostname() == f.node.Value:
		f.dropped("it is the name in the address")
	default:
		f.unsupported("the certificate of the server must have the name in the address", "write the name of the certificate into address, or add the name of the address to the certificate")
	}
}

// caCertSecret moves the Secret with the certificates of a server.
func caCertSecret(f *field) {
	if f.node.Kind != yaml.ScalarNode {
		f.invalid("a single value")
		return
	}
	if f.node.Value == "" {
		f.dropped("it is empty")
		return
	}
	f.node = mapping("type", plain("Secret"), "name", f.node, "key", plain("ca.crt"))
	f.exact("spec.caProvider")
}

// plain returns a string as YAML has it.
func plain(s string) *yaml.Node { return scalarNode(s, &yaml.Node{}) }

// lookup finds the object that a reference names as NAME or NAMESPACE/NAME. Without a name it is the object default in
// the namespace of Vault Secrets Operator, so it is known only if the input has one of that name.
func (o *object) lookup(kind, ref string) *object {
	if ref != "" {
		namespace, name, qualified := strings.Cut(ref, "/")
		if !qualified {
			namespace, name = o.Namespace, ref
		}
		return o.inputs.named(groupVSO, kind, o.inputs.namespace(namespace), name)
	}
	var found *object
	for _, other := range o.inputs.objects {
		if groupOf(other.APIVersion) != groupVSO || other.Kind != kind || other.Name.Name != "default" {
			continue
		}
		if found != nil && o.inputs.namespace(found.Namespace) != o.inputs.namespace(other.Namespace) {
			return nil
		}
		if found == nil {
			found = other
		}
	}
	return found
}

// refer returns the object that a field refers to; nil if it cannot be converted, which is reported.
func (o *object) refer(field, kind, ref string) *object {
	found := o.lookup(kind, ref)
	why := ""
	switch {
	case found == nil && ref == "":
		why = "it is the " + kind + " default of the namespace of Vault Secrets Operator, and the input has none of this name, or several"
	case found == nil:
		why = kind + " " + ref + " is not in the input"
	case found.verdict() == Unsupported:
		why = kind + " " + found.Name.Name + " cannot be converted"
	default:
		if ref == "" {
			namespace := o.inputs.namespace(found.Namespace)
			o.add(Finding{Field: field, Verdict: Changed, Reason: "it is the " + kind + " default of the namespace of Vault Secrets Operator, which is taken for " + namespace, Todo: "check that Vault Secrets Operator is installed in " + namespace})
		}
		return found
	}
	o.add(Finding{Field: field, Verdict: Unsupported, Reason: why, Todo: "add it to the input, or use --cluster; if it is there, see its own findings"})
	return nil
}

// users returns the objects that an object becomes a part of.
func (o *object) users() []*object {
	var all []*object
	for _, u := range o.inputs.objects {
		if groupOf(u.APIVersion) == groupVSO && u.refersTo(o) {
			all = append(all, u)
		}
	}
	return all
}

// refersTo reports whether an object uses one that becomes a part of others.
func (o *object) refersTo(part *object) bool {
	spec := child(o.node, "spec")
	ref := text(spec, "vaultConnectionRef")
	switch part.Kind + " " + o.Kind {
	case "VaultConnection VaultAuth":
		if o.merged != nil {
			ref = text(o.merged, "spec", "vaultConnectionRef")
		}
		return o.lookup(part.Kind, ref) == part
	case "VaultConnection VaultAuthGlobal":
		return ref != "" && o.lookup(part.Kind, ref) == part
	case "VaultAuthGlobal VaultAuth":
		global := child(spec, "vaultAuthGlobalRef")
		return global != nil && o.lookup(part.Kind, o.globalRef(global)) == part
	}
	ofVault := !o.isPart() && !strings.HasPrefix(o.Kind, "HCP") && o.Kind != "SecretTransformation"
	return part.Kind == "VaultAuth" && ofVault && o.lookup(part.Kind, text(spec, "vaultAuthRef")) == part
}

// admits reports whether the object can be used in a namespace.
func (o *object) admits(namespace string) bool {
	if namespace == o.inputs.namespace(o.Namespace) {
		return true
	}
	allowed := child(o.node, "spec", "allowedNamespaces")
	return length(allowed) > 0 && slices.ContainsFunc(allowed.Content, func(n *yaml.Node) bool { return n.Value == "*" || n.Value == namespace })
}
