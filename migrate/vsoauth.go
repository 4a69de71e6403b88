package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// vaultMethods are the logins of Vault Secrets Operator, and where the mount of each one is in a store.
var vaultMethods = map[string]string{
	"kubernetes": "spec.auth.kubernetes.mountPath", "jwt": "spec.auth.jwt.path", "appRole": "spec.auth.appRole.path", "aws": "spec.auth.iam.path", "gcp": "",
}

const tokenOnce = "a token is used once, at the login"

// vaultLogins are the rules for each login.
var vaultLogins = map[string]rules{
	"kubernetes": {
		"spec.kubernetes.role":                   scalar("spec.auth.kubernetes.role"),
		"spec.kubernetes.serviceAccount":         vaultAccount("spec.auth.kubernetes.serviceAccountRef.name"),
		"spec.kubernetes.audiences":              whole("spec.auth.kubernetes.serviceAccountRef.audiences", yaml.SequenceNode),
		"spec.kubernetes.tokenExpirationSeconds": drop(tokenOnce),
	},
	"jwt": {
		"spec.jwt.role":                   scalar("spec.auth.jwt.role"),
		"spec.jwt.serviceAccount":         vaultAccount("spec.auth.jwt.serviceAccountRef.name"),
		"spec.jwt.audiences":              whole("spec.auth.jwt.serviceAccountRef.audiences", yaml.SequenceNode),
		"spec.jwt.tokenExpirationSeconds": drop(tokenOnce),
		"spec.jwt.secretRef":              keyOf("spec.auth.jwt.secretRef", "jwt"),
	},
	"appRole": {
		"spec.appRole.roleId":    scalar("spec.auth.appRole.roleId"),
		"spec.appRole.secretRef": keyOf("spec.auth.appRole.secretRef", "id"),
	},
	"aws": {
		"spec.aws.role":        scalar("spec.auth.iam.vaultRole"),
		"spec.aws.region":      scalar("spec.auth.iam.region"),
		"spec.aws.headerValue": scalar("spec.auth.iam.vaultAwsIamServerID"),
		"spec.aws.sessionName": func(f *field) {
			f.pend()
			f.add(Finding{Field: f.String(), Verdict: Changed, Reason: "the session has a name of its own", Todo: "check that no policy depends on the name of the session"})
		},
		"spec.aws.stsEndpoint":        never("the endpoint of STS is that of the region", "remove it, and set region"),
		"spec.aws.iamEndpoint":        never("the endpoint of IAM is not used", "remove it"),
		"spec.aws.secretRef":          awsKeys,
		"spec.aws.irsaServiceAccount": vaultAccount("spec.auth.iam.serviceAccountRef.name"),
	},
}

// vaultAuths are the rules for what every VaultAuth has.
var vaultAuths = rules{
	"spec.vaultConnectionRef": usedBy("spec.server"),
	"spec.vaultAuthGlobalRef": func(f *field) { f.pend() }, // mergeGlobal reports on it.
	"spec.namespace":          usedBy("spec.namespace"),
	"spec.allowedNamespaces":  drop("each namespace that uses it gets a store of its own, and those that are not listed are refused"),
	"spec.method":             drop("the field below auth says so"),
	"spec.headers":            headers,
	"spec.params": func(f *field) {
		if f.node.Kind == yaml.MappingNode && len(f.node.Content) == 0 {
			f.dropped("it is empty")
			return
		}
		f.unsupported("a login has no parameters of its own", "remove params")
	},
	"spec.storageEncryption": drop("it is about the cache of Vault Secrets Operator"),
}

// usedBy records a field that decides about another one of the result.
func usedBy(to string) rule {
	return func(f *field) {
		if f.node.Kind != yaml.ScalarNode {
			f.invalid("a single value")
			return
		}
		f.pend()
		f.add(Finding{Field: f.String(), To: to, Verdict: Exact})
	}
}

// vaultAccount moves the name of a ServiceAccount whose token is sent.
func vaultAccount(to string) rule {
	return func(f *field) {
		scalar(to)(f)
		f.used.tokens(&vaultKV)
	}
}

// keyOf moves the name of a Secret, of which one key is read.
func keyOf(to, key string) rule {
	return func(f *field) {
		if f.node.Kind != yaml.ScalarNode {
			f.invalid("a single value")
			return
		}
		f.node = mapping("name", f.node, "key", plain(key))
		f.exact(to)
	}
}

// awsKeys moves the Secret with an access key of AWS.
func awsKeys(f *field) {
	if f.node.Kind != yaml.ScalarNode {
		f.invalid("a single value")
		return
	}
	name := f.node.Value
	f.node = mapping("accessKeyIDSecretRef", mapping("name", f.node, "key", plain("access_key_id")),
		"secretAccessKeySecretRef", mapping("name", plain(name), "key", plain("secret_access_key")))
	f.changed("spec.auth.iam.secretRef", "the key session_token of the Secret is not read, because only temporary access keys have one", "name it in sessionTokenSecretRef, if the access key is a temporary one")
}

// vaultAuth converts a VaultAuth to the login of a store.
func vaultAuth(o *object) {
	merged := o.mergeGlobal()
	o.merged = merged
	if o.verdict() == Unsupported {
		return
	}
	method := text(merged, "spec", "method")
	mount, known := vaultMethods[method]
	switch {
	case !known:
		o.refuse("spec.method", "it is not one of kubernetes, jwt, appRole, aws")
		return
	case method == "gcp":
		o.add(Finding{Field: "spec.method", Verdict: Unsupported, Reason: "Vault is not logged in to with a workload identity of Google", Todo: "use the auth method kubernetes or jwt, or write the store with auth.gcp and a key of the service account"})
		return
	case strings.Trim(text(merged, "spec", "mount"), "/") == "":
		o.refuse("spec.mount", "it is missing")
		return
	}
	r := vaultAuths.with(vaultLogins[method], rules{"spec.mount": scalar(mount)}, partMetadata())
	for other := range vaultMethods {
		if other != method {
			r["spec."+other] = drop("method selects " + method)
		}
	}
	r.walk(&field{object: o, node: merged})
	o.finishLogin(method, merged)
	o.connection = o.refer("spec.vaultConnectionRef", "VaultConnection", text(merged, "spec", "vaultConnectionRef"))
}

// finishLogin reports logins that are not complete, and of which Vault Secrets Operator uses one.
func (o *object) finishLogin(method string, merged *yaml.Node) {
	switch method {
	case "jwt":
		if child(merged, "spec", "jwt", "serviceAccount") != nil {
			o.first("spec.jwt.serviceAccount", "spec.jwt.secretRef", "jwt", "secretRef")
			if length(child(merged, "spec", "jwt", "audiences")) == 0 {
				o.add(Finding{Field: "spec.jwt.audiences", To: "spec.auth.jwt.serviceAccountRef.audiences", Verdict: Changed, Reason: "without audiences the token is for vault, and in Vault Secrets Operator for the Kubernetes API", Todo: "name an audience that the role accepts"})
			}
		}
	case "aws":
		if child(merged, "spec", "aws", "secretRef") != nil {
			o.first("spec.aws.secretRef", "spec.aws.irsaServiceAccount", "iam", "serviceAccountRef")
			return
		}
		if child(merged, "spec", "aws", "irsaServiceAccount") == nil {
			o.add(Finding{Field: "spec.aws", Verdict: Unsupported, Reason: "there are no credentials, and the node's own are never sent to Vault", Todo: "name a Secret or a ServiceAccount, and convert it again"})
		}
	}
}

// first leaves out a login if there is another one that Vault Secrets Operator prefers.
func (o *object) first(prefers, other string, to ...string) {
	if path := append([]string{"spec", "auth"}, to...); child(o.out.root, path...) != nil {
		o.out.remove(path...)
		o.add(Finding{Field: other, Verdict: Exact, Reason: "Vault Secrets Operator uses " + prefers + " instead"})
	}
}

// vaultAuthGlobals are the rules for the spec of a VaultAuthGlobal. Each VaultAuth that refers to it inherits these fields.
func vaultAuthGlobals() rules {
	merged := drop("each VaultAuth that refers to it has it, unless it sets its own")
	all := rules{}
	for _, name := range []string{"allowedNamespaces", "vaultConnectionRef", "defaultVaultNamespace", "defaultAuthMethod", "defaultMount", "params", "headers", "gcp"} {
		all["spec."+name] = merged
	}
	for method, login := range vaultLogins {
		for path := range login {
			all[path] = merged
		}
		for _, name := range []string{"namespace", "mount", "params", "headers"} {
			all["spec."+method+"."+name] = merged
		}
	}
	return all
}

// vaultAuthGlobal checks a VaultAuthGlobal.
func vaultAuthGlobal(o *object) {
	vaultAuthGlobals().with(partMetadata()).walk(&field{object: o, node: o.node})
}

// mergeGlobal returns a VaultAuth with what its VaultAuthGlobal adds.
func (o *object) mergeGlobal() *yaml.Node {
	merged := new(expansion).copied(o.node, 0)
	at := &field{object: o, node: child(merged, "spec", "vaultAuthGlobalRef"), path: []string{"spec", "vaultAuthGlobalRef"}}
	if at.node == nil {
		return merged
	}
	if at.node.Kind != yaml.MappingNode {
		at.invalid("a mapping")
		return merged
	}
	if !at.only("name", "namespace", "mergeStrategy", "allowDefault") {
		return merged
	}
	if text(at.node, "name") == "" {
		at.unsupported("it names no VaultAuthGlobal", "name it, and convert it again")
		return merged
	}
	global := o.refer(at.String(), "VaultAuthGlobal", o.globalRef(at.node))
	switch {
	case global == nil:
		return merged
	case !global.admits(o.inputs.namespace(o.Namespace)):
		at.unsupported("VaultAuthGlobal "+global.Name.Name+" does not allow the namespace", "add the namespace to its allowedNamespaces, and convert it again")
		return merged
	}
	o.global = global
	at.mergeFrom(child(global.node, "spec"), child(merged, "spec"))
	return merged
}

// globalRef returns a reference to a VaultAuthGlobal as NAMESPACE/NAME.
func (o *object) globalRef(n *yaml.Node) string {
	name, namespace := text(n, "name"), text(n, "namespace")
	if name == "" {
		name = "default"
	}
	if namespace == "" {
		namespace = o.inputs.namespace(o.Namespace)
	}
	return namespace + "/" + name
}

// mergeFrom adds what the spec of a VaultAuthGlobal has to that of a VaultAuth, which takes precedence.
func (f *field) mergeFrom(global, spec *yaml.Node) {
	inherit := func(to *yaml.Node, name string, from *yaml.Node, key string) {
		if value := child(from, key); value != nil && child(to, name) == nil {
			cut(to, name)
			to.Content = append(to.Content, plain(name), new(expansion).copied(value, 0))
		}
	}
	inherit(spec, "vaultConnectionRef", global, "vaultConnectionRef")
	inherit(spec, "method", global, "defaultAuthMethod")
	method := text(spec, "method")
	login := child(global, method)
	for _, name := range []string{"namespace", "mount"} {
		inherit(spec, name, login, name)
	}
	inherit(spec, "namespace", global, "defaultVaultNamespace")
	inherit(spec, "mount", global, "defaultMount")
	for _, name := range []string{"params", "headers"} {
		strategy := text(f.node, "mergeStrategy", name)
		if strategy != "" && strategy != "none" && (child(global, name) != nil || child(login, name) != nil) {
			f.below(nil, nil, "mergeStrategy."+name).unsupported(name+" of a VaultAuthGlobal are not merged", "write them into the VaultAuth, and remove mergeStrategy")
			return
		}
	}
	if login != nil && child(spec, method) == nil {
		cut(spec, method)
		spec.Content = append(spec.Content, plain(method), &yaml.Node{Kind: yaml.MappingNode})
	}
	for key, value := range pairs(login) {
		if own := child(spec, method); own.Kind == yaml.MappingNode && !slices.Contains([]string{"namespace", "mount", "params", "headers"}, key.Value) && !isNull(value) {
			inherit(own, key.Value, login, key.Value)
		}
	}
	f.add(Finding{Field: f.String(), Verdict: Exact, Reason: "its fields are merged, unless the VaultAuth sets its own"})
}
