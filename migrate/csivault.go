package migrate

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	csiFileOfNode = "the file is on the nodes"
	csiCA         = "put the certificates into a ConfigMap, and name it in caProvider of a store that you write by hand"
)

var csiVault = csiProvider{
	list: "objects", object: vaultObject, login: vaultLogin,
	parameters: rules{
		"spec.parameters.roleName":                 usedBy("spec.auth.kubernetes.role"),
		"spec.parameters.vaultAddress":             vaultAddress,
		"spec.parameters.vaultNamespace":           usedBy("spec.namespace"),
		"spec.parameters.vaultAuthMountPath":       usedBy("spec.auth.kubernetes.mountPath"),
		"spec.parameters.vaultKubernetesMountPath": usedBy("spec.auth.kubernetes.mountPath"),
		"spec.parameters.audience":                 usedBy("spec.auth.kubernetes.serviceAccountRef.audiences"),
		"spec.parameters.vaultSkipTLSVerify":       onlyFalse("the certificate of the server is always verified", csiCA),
		"spec.parameters.vaultCACertPath":          never(csiFileOfNode, csiCA),
		"spec.parameters.vaultCADirectory":         never(csiFileOfNode, csiCA),
		"spec.parameters.vaultTLSServerName":       never("the certificate of the server must have the name in the address", "write the name of the certificate into vaultAddress"),
		"spec.parameters.vaultTLSClientCertPath":   never(csiFileOfNode, "put the client certificate into a Secret, and name it in clientTLS of a store that you write by hand"),
		"spec.parameters.vaultTLSClientKeyPath":    never(csiFileOfNode, "put the client certificate into a Secret, and name it in clientTLS of a store that you write by hand"),
		"spec.parameters.auth":                     never("other logins than that of vaultAuthMountPath are not converted", "write the store by hand"),
	},
}

// vaultObject converts one object of Vault.
func vaultObject(c *class, f *field) {
	if !f.only("objectName", "secretPath", "secretKey", "method", "secretArgs", "encoding", "filePermission") {
		return
	}
	path, key := text(f.node, "secretPath"), text(f.node, "secretKey")
	mount, name, split := kvPath(path)
	version, known := kvArguments(child(f.node, "secretArgs"))
	method := strings.ToUpper(text(f.node, "method"))
	decoding, decoded := map[string]string{"": "", "utf-8": "", "base64": "Base64"}[strings.ToLower(text(f.node, "encoding"))]
	switch {
	case text(f.node, "objectName") == "" || path == "":
		f.unsupported("it has no objectName or no secretPath", "correct it, and convert it again")
		return
	case key == "":
		f.unsupported("without secretKey, the file has the whole answer of Vault", "name a secretKey, and convert it again")
		return
	case !split:
		f.below(nil, nil, "secretPath").unsupported("it is no path of KV version 2, MOUNT/data/KEY", "for KV version 1 write a VaultKV with version v1 by hand, and for another secrets engine a VaultDynamicSecret")
		return
	case method != "" && method != "GET":
		f.below(nil, nil, "method").unsupported("a KV secrets engine is read with GET", "write a VaultDynamicSecret by hand")
		return
	case !known:
		f.below(nil, nil, "secretArgs").unsupported("a KV secrets engine takes no other argument than version", "remove the others")
		return
	case !decoded:
		f.below(nil, nil, "encoding").unsupported("the value is not one of utf-8, base64", "store the value in one of them, or decode it with a template and hexdec")
		return
	}
	f.fileMode("filePermission")
	ref := withParts(mapping("key", plain(name), "property", plain(literalProperty(key))), [2]string{"version", version}, [2]string{"decodingStrategy", decoding})
	c.addFile(f, &csiFile{name: text(f.node, "objectName"), store: c.store(vaultKV, mount), ref: ref})
	f.add(Finding{Field: f.String() + ".secretPath", To: "spec.path", Verdict: Changed, Reason: "the path is taken for the key " + name + " of the KV secrets engine " + mount + " in version 2", Todo: "check that it is one"})
}

// kvPath returns the mount and the key of a path in the API of KV version 2; false if it is none, or could be several.
func kvPath(path string) (mount, key string, ok bool) {
	path = strings.TrimPrefix(strings.Trim(path, "/"), "v1/")
	mount, key, ok = strings.Cut(path, "/data/")
	return mount, key, ok && mount != "" && key != "" && !strings.Contains("/"+key+"/", "/data/")
}

// kvArguments returns the version in the arguments of a request; false if there are others.
func kvArguments(n *yaml.Node) (version string, ok bool) {
	if n == nil {
		return "", true
	}
	for key, value := range pairs(n) {
		if key.Value != "version" || value.Kind != yaml.ScalarNode {
			return "", false
		}
		version = value.Value
	}
	return version, n.Kind == yaml.MappingNode
}

// vaultLogin completes the stores of Vault.
func vaultLogin(c *class) {
	parameter := func(name string) string { return text(c.node, "spec", "parameters", name) }
	mount := parameter("vaultAuthMountPath")
	if mount == "" {
		mount = parameter("vaultKubernetesMountPath")
	}
	switch {
	case parameter("roleName") == "":
		c.refuse("spec.parameters.roleName", "it is missing")
		return
	case parameter("vaultAddress") == "":
		c.add(Finding{Field: "spec.parameters.vaultAddress", Verdict: Unsupported, Reason: "without vaultAddress, the driver uses that of its own configuration", Todo: "set vaultAddress, and convert it again"})
		return
	case parameter("vaultAuthMountPath") != "" && parameter("vaultKubernetesMountPath") != "":
		c.refuse("spec.parameters.vaultKubernetesMountPath", "vaultAuthMountPath is set, too")
		return
	}
	account := c.account()
	if account == "" {
		return
	}
	ref := mapping("name", plain(account))
	if audience := parameter("audience"); audience != "" {
		ref.Content = append(ref.Content, plain("audiences"), &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{plain(audience)}})
	} else {
		c.add(Finding{Field: "spec.parameters.audience", To: "spec.auth.kubernetes.serviceAccountRef.audiences", Verdict: Changed, Reason: "without audience the token is for the Kubernetes API; that of the driver is for vault, if it is configured so", Todo: "name the audience of the role, if it has one"})
	}
	login := mapping("role", plain(parameter("roleName")), "serviceAccountRef", ref)
	if mount != "" {
		login.Content = append([]*yaml.Node{plain("mountPath"), plain(mount)}, login.Content...)
	}
	for _, s := range c.stores {
		s.spec = mapping("server", plain(parameter("vaultAddress")))
		if namespace := parameter("vaultNamespace"); namespace != "" {
			s.spec.Content = append(s.spec.Content, plain("namespace"), plain(namespace))
		}
		s.spec.Content = append(s.spec.Content, plain("path"), plain(s.place), plain("auth"), mapping("kubernetes", new(expansion).copied(login, 0)))
		c.used.tokens(&s.kind)
	}
}
