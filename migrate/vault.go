package migrate

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// vaultServer are the rules for a server of Vault and its logins.
func vaultServer(from string) rules {
	auth := from + ".auth"
	all := rules{
		from + ".server":               vaultAddress,
		from + ".namespace":            scalar("spec.namespace"),
		from + ".caBundle":             scalar("spec.caBundle"),
		from + ".caProvider":           unless(1, "caBundle", caProvider("spec.caProvider")),
		from + ".tls.certSecretRef":    clientTLS("spec.clientTLS.certSecretRef", "tls.crt"),
		from + ".tls.keySecretRef":     clientTLS("spec.clientTLS.keySecretRef", "tls.key"),
		from + ".readYourWrites":       scalar("spec.readYourWrites"),
		from + ".forwardInconsistent":  forwardInconsistent,
		from + ".headers":              headers,
		from + ".checkAndSet.required": drop("every write checks the version"),
		auth + ".namespace":            scalar("spec.auth.namespace"),
		auth + ".tokenSecretRef":       secretKey("spec.auth.tokenSecretRef", ""),

		auth + ".appRole.path":      scalar("spec.auth.appRole.path"),
		auth + ".appRole.roleId":    scalar("spec.auth.appRole.roleId"),
		auth + ".appRole.roleRef":   unless(1, "roleId", secretKey("spec.auth.appRole.roleRef", "")),
		auth + ".appRole.secretRef": secretKey("spec.auth.appRole.secretRef", ""),

		auth + ".kubernetes.mountPath":         scalar("spec.auth.kubernetes.mountPath"),
		auth + ".kubernetes.role":              kubernetesRole,
		auth + ".kubernetes.serviceAccountRef": serviceAccount("spec.auth.kubernetes.serviceAccountRef"),
		auth + ".kubernetes.secretRef":         unless(1, "serviceAccountRef", secretKey("spec.auth.kubernetes.secretRef", "token")),

		auth + ".jwt.path":                          scalar("spec.auth.jwt.path"),
		auth + ".jwt.role":                          scalar("spec.auth.jwt.role"),
		auth + ".jwt.secretRef":                     secretKey("spec.auth.jwt.secretRef", ""),
		auth + ".jwt.kubernetesServiceAccountToken": unless(1, "secretRef", jwtToken),

		auth + ".cert.path":       scalar("spec.auth.cert.path"),
		auth + ".cert.vaultRole":  scalar("spec.auth.cert.vaultRole"),
		auth + ".cert.clientCert": secretKey("spec.auth.cert.clientCert", ""),
		auth + ".cert.secretRef":  secretKey("spec.auth.cert.secretRef", ""),
	}
	maps.Copy(all, vaultGCP(auth+".gcp"))
	for _, method := range []string{"userPass", "ldap"} {
		all[auth+"."+method+".path"] = scalar("spec.auth." + method + ".path")
		all[auth+"."+method+".username"] = scalar("spec.auth." + method + ".username")
		all[auth+"."+method+".secretRef"] = secretKey("spec.auth."+method+".secretRef", "")
	}
	return all.with(vaultIAM(auth + ".iam"))
}

// vaultIAM are the rules for a login with an identity of AWS.
func vaultIAM(from string) rules {
	const to = "spec.auth.iam"
	all := rules{from + ".jwt.serviceAccountRef": iamAccount}
	for _, name := range []string{"path", "region", "role", "vaultRole", "externalID", "vaultAwsIamServerID"} {
		all[from+"."+name] = scalar(to + "." + name)
	}
	all[from+".externalID"] = func(f *field) {
		if f.sibling(1, "role") == nil {
			f.dropped("External Secrets Operator passes it only when it assumes role, and there is none")
			return
		}
		f.exact(to + ".externalID")
	}
	for _, name := range []string{"accessKeyIDSecretRef", "secretAccessKeySecretRef", "sessionTokenSecretRef"} {
		all[from+".secretRef."+name] = unless(2, "jwt", secretKey(to+".secretRef."+name, ""))
	}
	return all
}

// vaultGCP are the rules for a login with a service account of Google. External Secrets Operator prefers a key.
func vaultGCP(from string) rules {
	const to = "spec.auth.gcp"
	noKey := unless(1, "secretRef", never("the login needs a key of the service account", "use secretRef, or the auth method kubernetes or jwt"))
	return rules{
		from + ".path":      scalar(to + ".path"),
		from + ".role":      vaultGCPRole,
		from + ".projectID": drop("a login needs no project"),
		from + ".location":  drop("a login needs no location"),
		from + ".secretRef.secretAccessKeySecretRef": secretKey(to+".secretRef.secretAccessKeySecretRef", ""),
		from + ".workloadIdentity":                   noKey,
		from + ".serviceAccountRef":                  noKey,
	}
}

// vaultGCPRole moves the role, if there is a key: the operator's own credentials of Google are never sent.
func vaultGCPRole(f *field) {
	if f.sibling(1, "secretRef") == nil {
		f.unsupported("the login needs a key of the service account, and the operator's own credentials of Google are never sent", "use secretRef, or the auth method kubernetes or jwt")
		return
	}
	f.exact("spec.auth.gcp.role")
}

var vaultStore = rules{
	"spec.provider.vault.path":    scalar("spec.path"),
	"spec.provider.vault.version": oneOf("spec.version", "v1", "v2"),
}.with(vaultServer("spec.provider.vault"))

// openBaoStore are the rules for a store of OpenBao, which VaultKV reads, too.
var openBaoStore = rules{
	"spec.provider.openBao.path":    scalar("spec.path"),
	"spec.provider.openBao.version": oneOf("spec.version", "v1", "v2"),
}.with(vaultServer("spec.provider.openBao"))

func finishVaultStore(o *object, at []string) {
	if text(o.node, append(at, "path")...) == "" {
		o.add(Finding{Field: strings.Join(append(at, "path"), "."), Verdict: Unsupported, Reason: "the store has no path, so each key begins with the path of its engine", Todo: "make a store for each engine, with its path, and take the path out of the keys"})
	}
}

// vaultAddress moves the address of the server, and makes explicit that it can be a plain one on another host.
func vaultAddress(f *field) {
	if !isPlainHTTP(f.node.Value) {
		f.exact("spec.server")
		return
	}
	f.changed("spec.server", "the traffic is not encrypted, so allowPlainHTTP is set, and the condition Ready says so", "serve Vault with TLS, or check that a service mesh protects the traffic")
	f.out.put(f.at("spec.allowPlainHTTP"), nil, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
}

// isPlainHTTP reports whether an address is without TLS, and on another host than the operator.
func isPlainHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback()
}

// kubernetesRole moves the role, if there is a token: the operator's own is never sent.
func kubernetesRole(f *field) {
	if f.sibling(1, "serviceAccountRef") == nil && f.sibling(1, "secretRef") == nil {
		f.unsupported("External Secrets Operator logs in with its own token, and the operator's own token is never sent", "name a ServiceAccount in serviceAccountRef that the role accepts, and convert it again")
		return
	}
	f.exact("spec.auth.kubernetes.role")
}

// clientTLS moves a part of the client certificate.
func clientTLS(to, missing string) rule {
	move := secretKey(to, missing)
	return func(f *field) {
		if f.sibling(2, "auth", "cert") != nil {
			f.unsupported("a connection shows one certificate only, and that is auth.cert", "remove tls or auth.cert")
			return
		}
		move(f)
	}
}

// forwardInconsistent makes explicit that External Secrets Operator takes it for readYourWrites, too.
func forwardInconsistent(f *field) {
	read := f.sibling(1, "readYourWrites")
	switch {
	case read != nil && read.Value == "true":
		f.exact("spec.forwardInconsistent")
	case f.node.Value != "true":
		f.dropped("it is the default")
	case read != nil:
		f.unsupported("External Secrets Operator takes it for readYourWrites", "set readYourWrites to true")
	default:
		f.exact("spec.readYourWrites")
	}
}

// headers moves the headers. The operator sets those of Vault and of the connection itself.
func headers(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	for key := range pairs(f.node) {
		if strings.HasPrefix(strings.ToLower(key.Value), "x-vault-") {
			f.below(nil, nil, key.Value).unsupported("headers of Vault cannot be set", "remove the header; use namespace, readYourWrites and forwardInconsistent")
			return
		}
	}
	f.exact("spec.headers")
}

// caProvider moves the source of the certificates of a server.
func caProvider(to string) rule {
	return func(f *field) {
		if f.Kind == "ClusterSecretStore" && text(f.node, "namespace") == "" {
			f.unsupported("External Secrets Operator requires the namespace in a ClusterSecretStore", "name it, and convert it again")
			return
		}
		f.selector(to, []string{"type", "name", "key", "namespace"}, func() bool {
			return text(f.node, "key") != "" && slices.Contains([]string{"Secret", "ConfigMap"}, text(f.node, "type"))
		})
	}
}

// jwtToken moves the login with the token of a ServiceAccount by JWT.
func jwtToken(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	if !f.only("serviceAccountRef", "audiences", "expirationSeconds") {
		return
	}
	ref := child(f.node, "serviceAccountRef")
	if ref == nil || ref.Kind != yaml.MappingNode {
		f.invalid("complete")
		return
	}
	audiences := child(f.node, "audiences")
	if audiences == nil {
		audiences = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{scalarNode("vault", &yaml.Node{})}}
	}
	if own := child(ref, "audiences"); own != nil {
		audiences.Content = slices.Concat(own.Content, audiences.Content)
	}
	at := f.below(nil, ref, "serviceAccountRef")
	at.without("audiences")
	ref.Content = append(ref.Content, scalarNode("audiences", &yaml.Node{}), audiences)
	serviceAccount("spec.auth.jwt.serviceAccountRef")(at)
	if n := child(f.node, "expirationSeconds"); n != nil {
		f.below(nil, n, "expirationSeconds").dropped("a token is used once, at the login")
	}
}

// iamAccount moves a login with the token of a ServiceAccount, and makes explicit the role in its annotation.
func iamAccount(f *field) {
	irsa("spec.auth.iam.serviceAccountRef")(f)
	arn, known := f.annotatedRole(f.String(), f.node)
	switch role := f.sibling(2, "role"); {
	case !known:
	case role != nil && role.Value != "":
		f.unsupported("the login assumes two roles, that of the ServiceAccount and role", "let the role trust the ServiceAccount itself, and remove the other")
	default:
		f.out.set(arn, "spec", "auth", "iam", "role")
		f.add(Finding{To: "spec.auth.iam.role", Verdict: Exact, Reason: "External Secrets Operator reads it from the annotation " + roleAnnotation + " of the ServiceAccount"})
	}
}
