package migrate

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// vaultFor returns the server and the login that an object of Vault Secrets Operator uses, as the spec of a store; nil if
// it cannot be converted, which is reported. Its field namespace is the namespace of Vault.
func (o *object) vaultFor() (*object, *yaml.Node) {
	auth := o.refer("spec.vaultAuthRef", "VaultAuth", text(o.node, "spec", "vaultAuthRef"))
	namespace := o.inputs.namespace(o.Namespace)
	switch {
	case auth == nil:
		return nil, nil
	case !auth.admits(namespace):
		o.add(Finding{Field: "spec.vaultAuthRef", Verdict: Unsupported, Reason: "VaultAuth " + auth.Name.Name + " does not allow the namespace " + namespace, Todo: "add the namespace to its allowedNamespaces, and convert it again"})
		return nil, nil
	}
	copied := func(n *yaml.Node) *yaml.Node { return new(expansion).copied(n, 0) }
	spec := &yaml.Node{Kind: yaml.MappingNode}
	if server := child(auth.connection.out.root, "spec"); server != nil {
		spec = copied(server)
	}
	if login := child(auth.out.root, "spec"); login != nil {
		o.mergeHeaders(spec, copied(login))
	}
	o.certificates(auth.connection, spec)
	o.role(spec)
	o.vaultNamespace(auth, spec)
	o.used.add(auth.used)
	return auth, spec
}

// mergeHeaders adds a login, and its headers to those of the server.
func (o *object) mergeHeaders(spec, login *yaml.Node) {
	own := cut(login, "headers")
	spec.Content = append(spec.Content, login.Content...)
	if own == nil {
		return
	}
	there := child(spec, "headers")
	if there == nil {
		spec.Content = append(spec.Content, own...)
		return
	}
	for key, value := range pairs(own[1]) {
		if child(there, key.Value) != nil {
			o.add(Finding{Field: "spec.vaultAuthRef", Verdict: Unsupported, Reason: "the VaultAuth and its VaultConnection both have the header " + key.Value, Todo: "remove one of them"})
			return
		}
		there.Content = append(there.Content, key, value)
	}
}

// certificates reports certificates that are in another namespace than the store.
func (o *object) certificates(connection *object, spec *yaml.Node) {
	from, to := o.inputs.namespace(connection.Namespace), o.inputs.namespace(o.Namespace)
	if name := text(spec, "caProvider", "name"); name != "" && from != to {
		o.add(Finding{Field: "spec.vaultAuthRef", To: "spec.caProvider", Verdict: Changed, Reason: "the store reads the Secret " + name + " of its own namespace, and Vault Secrets Operator that of the VaultConnection", Todo: "copy the Secret from the namespace " + from + " to " + to})
	}
}

// role makes explicit the role of a ServiceAccount that logs in with an identity of AWS.
func (o *object) role(spec *yaml.Node) {
	iam := child(spec, "auth", "iam")
	if ref := child(iam, "serviceAccountRef"); ref != nil {
		if arn, known := o.annotatedRole("spec.vaultAuthRef", ref); known {
			iam.Content = append(iam.Content, plain("role"), plain(arn))
		}
		audience, found, _ := o.annotation(o.accountOf(ref), text(ref, "name"), audienceAnnotation)
		if found && audience != "" {
			ref.Content = append(ref.Content, plain("audiences"), &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{plain(audience)}})
		}
	}
}

// vaultNamespace sets the namespaces of Vault: that of the secrets, and that of the login.
func (o *object) vaultNamespace(auth *object, spec *yaml.Node) {
	login := text(auth.merged, "spec", "namespace")
	secrets := text(o.node, "spec", "namespace")
	if secrets == "" || secrets == login {
		secrets, login = login, ""
	} else if login == "" {
		login = "root"
		o.add(Finding{Field: "spec.namespace", To: "spec.auth.namespace", Verdict: Changed, Reason: "the VaultAuth names no namespace, so the login is in the root namespace", Todo: "check that the auth method is in the root namespace, which Vault also calls root"})
	}
	if secrets != "" {
		spec.Content = append(spec.Content, plain("namespace"), plain(secrets))
	}
	if in := child(spec, "auth"); login != "" && in != nil {
		in.Content = append(in.Content, plain("namespace"), plain(login))
	}
}

// comments returns the comments of an object that becomes a part of others, without those of its fields.
func (o *object) comments() []string {
	var all []string
	add := func(comments ...string) {
		for _, c := range comments {
			all = append(all, nonEmpty(c)...)
		}
	}
	for _, part := range []*object{o.connection, o.global} {
		if part != nil {
			add(part.comments()...)
		}
	}
	add(o.head, o.node.HeadComment)
	for key := range pairs(o.out.root) {
		add(key.HeadComment, key.LineComment, key.FootComment)
	}
	add(o.out.rest(), o.node.FootComment, o.foot)
	return all
}

// notInNames matches what a name of an object cannot have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// freeName returns a name for a result that several objects share. The same key yields the same name.
func (in *inputs) freeName(k kind, namespace, key string, parts ...string) string {
	base := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.Join(parts, "-")), "-"), "-")
	if base == "" {
		base = "vault"
	}
	base = strings.Trim(base[:min(len(base), longestName)], "-")
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		place := k.name + "/" + namespace + "/" + name
		if in.named(groupESO, "SecretStore", namespace, name) != nil || in.named(groupGenerators, k.name, namespace, name) != nil {
			continue
		}
		if taken, found := in.names[place]; !found || taken == key {
			in.names[place] = key
			return name
		}
	}
}

// longestName leaves room for a number behind a name, which has at most 253 characters.
const longestName = 240

// metadataFor returns the metadata of a result in the namespace of an object.
func (o *object) metadataFor(name string) *yaml.Node {
	n := mapping("name", plain(name))
	if o.Namespace != "" {
		n.Content = append(n.Content, plain("namespace"), plain(o.Namespace))
	}
	return n
}

// newResult adds a result in front of that of the object.
func (o *object) newResult(k kind, metadata, spec *yaml.Node, shared string) *tree {
	t := newTree()
	t.root, t.shared = mapping("apiVersion", plain(k.apiVersion()), "kind", plain(k.name), "metadata", metadata, "spec", spec), shared
	o.before = append(o.before, t)
	o.used.module(k.module)
	return t
}

// ordered sorts the keys of a mapping; those that are not named stay behind.
func ordered(n *yaml.Node, keys ...string) {
	var all []*yaml.Node
	for _, key := range keys {
		all = append(all, cut(n, key)...)
	}
	if n != nil {
		n.Content = append(all, n.Content...)
	}
}
