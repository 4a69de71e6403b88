package migrate

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubernetesStore are the rules for a store of the Secrets of a namespace.
var kubernetesStore = kubernetesRules("spec.provider.kubernetes")

func kubernetesRules(from string) rules {
	all := rules{
		from + ".server.url":             kubernetesURL,
		from + ".server.caBundle":        ofOtherServer(scalar("spec.server.caBundle")),
		from + ".server.caProvider":      ofOtherServer(unless(1, "caBundle", caProvider("spec.server.caProvider"))),
		from + ".auth.serviceAccount":    serviceAccount("spec.auth.serviceAccount"),
		from + ".auth.token.bearerToken": secretKey("spec.auth.token.bearerToken", ""),
		from + ".auth.cert.clientCert":   secretKey("spec.auth.cert.clientCert", ""),
		from + ".auth.cert.clientKey":    secretKey("spec.auth.cert.clientKey", ""),
	}
	for path, then := range all {
		all[path] = unless(strings.Count(path, ".")-strings.Count(from, "."), "authRef", then)
	}
	all[from+".authRef"] = kubeconfig
	all[from+".remoteNamespace"] = scalar("spec.remoteNamespace")
	return all
}

// isOwnServer reports whether an address is that of the API server of the cluster in which the operator runs.
func isOwnServer(address string) bool {
	host := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(address, "https://"), "/"), ":443")
	return slices.Contains([]string{"", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}, host)
}

// kubernetesURL moves the address of an API server. That of the own cluster is the default.
func kubernetesURL(f *field) {
	const to = "spec.server.url"
	switch {
	case f.byAction(to):
	case f.node.Kind == yaml.ScalarNode && isOwnServer(f.node.Value):
		f.dropped("the API server of this cluster is the default")
	case isPlainHTTP(f.node.Value):
		f.unsupported("the traffic is not encrypted", "use the address with https")
	case f.node.Kind == yaml.ScalarNode && !strings.Contains(f.node.Value, "://"):
		f.node = scalarNode("https://"+f.node.Value, f.node)
		if f.sibling(1, "caBundle") == nil && f.sibling(1, "caProvider") == nil {
			f.changed(to, "without certificates, External Secrets Operator can use http for an address that begins with neither http nor https; here it is https", "check that the API server has a certificate that the operator's system trusts, or set caBundle or caProvider")
			return
		}
		f.move(to, Finding{Verdict: Exact, Reason: "External Secrets Operator uses https for an address without it"})
	default:
		scalar(to)(f)
	}
}

// ofOtherServer drops the certificates of the own cluster, which the operator has.
func ofOtherServer(then rule) rule {
	return func(f *field) {
		if url := f.sibling(1, "url"); url == nil || isNull(url) || isOwnServer(url.Value) {
			f.dropped("the operator has the certificates of the API server of this cluster")
			return
		}
		then(f)
	}
}

// kubeconfig moves the reference to a kubeconfig.
func kubeconfig(f *field) {
	const to = "spec.authRef"
	secretKey(to, "")(f)
	if child(f.out.root, "spec", "authRef") != nil {
		f.add(Finding{Field: f.String(), To: to, Verdict: Changed, Reason: "a kubeconfig that names files, commands, a user name or a proxy, or that skips the check of certificates, is rejected", Todo: "check that it contains token, or client-certificate-data and client-key-data, and certificate-authority-data"})
	}
}

// finishKubernetesStore makes the default namespace explicit.
func finishKubernetesStore(o *object, at []string) {
	if text(o.node, append(at, "remoteNamespace")...) == "" {
		o.out.set("default", "spec", "remoteNamespace")
		o.add(Finding{To: "spec.remoteNamespace", Verdict: Exact, Reason: "it is the default of External Secrets Operator"})
	}
}

// keyOfSecret moves the name of a key of a Secret.
func (f *field) keyOfSecret(to string) {
	key := f.node.Value
	at := strings.Index(key, ".")
	switch {
	case !slices.Contains(f.path, "remoteRef"): // It is of extract.
		f.changed(to, "text in the JSON object is written without quotes; External Secrets Operator keeps the quotes of JSON", "check what readers of the Secret expect")
	case at > 0 && at < len(key)-1 && !slices.Contains([]string{"tls.crt", "tls.key", "ca.crt"}, key):
		f.changed(to, "a property with a dot is the name of a key; if there is no such key, External Secrets Operator takes it for a path in the JSON of the key before the dot", "check that the Secret has a key of this name")
	default:
		scalar(to)(f)
	}
}

// findSecrets returns the rules for a search in Kubernetes; nil if it cannot be converted.
func (f *field) findSecrets() rules {
	const at, todo = "spec.dataFrom[].find", "set name.regexp: .* for all secrets"
	tags, name := child(f.node, "tags"), child(f.node, "name")
	switch {
	case tags != nil && tags.Kind == yaml.MappingNode && len(tags.Content) == 0:
		f.below(nil, tags, "tags").unsupported("External Secrets Operator finds all secrets if tags is empty", "remove tags, and "+todo)
		return nil
	case (tags == nil || isNull(tags)) && (name == nil || isNull(name)):
		f.unsupported("External Secrets Operator refuses it without name and tags", todo)
		return nil
	}
	all := findRules.with(rules{at + ".path": drop("External Secrets Operator ignores it in Kubernetes"), at + ".tags": stringMap(at + ".tags")})
	if tags != nil && !isNull(tags) {
		ignored := drop("in Kubernetes, External Secrets Operator ignores name if tags is set")
		all[at+".name"], all[at+".name.regexp"] = ignored, ignored
	}
	if findsReleases(tags, text(name, "regexp")) {
		f.add(Finding{Field: f.String(), To: f.String(), Verdict: Changed, Reason: "records of Helm releases (sh.helm.release.v1.…) are not found, and External Secrets Operator finds them", Todo: "check that no reader of the Secret needs them"})
	}
	return all
}

// findsReleases reports whether a search can find a Secret in which Helm keeps a release.
func findsReleases(tags *yaml.Node, expression string) bool {
	const release = "sh.helm.release.v1."
	if length := len(contentOf(tags)); length > 0 {
		ofHelm := 0
		for key := range pairs(tags) {
			if slices.Contains([]string{"owner", "name", "status", "version", "modifiedAt", "createdAt"}, key.Value) {
				ofHelm++
			}
		}
		return ofHelm*2 == length
	}
	rest, anchored := strings.CutPrefix(expression, "^")
	re, err := regexp.Compile(rest)
	if !anchored || err != nil || strings.Contains(rest, "|") {
		return true
	}
	begin, _ := re.LiteralPrefix()
	return strings.HasPrefix(release, begin) || strings.HasPrefix(begin, release)
}

// kubernetes converts a setting of a Secret that is pushed.
func (s *settings) kubernetes(name string, value *yaml.Node) {
	at := s.at(name, value)
	switch name {
	case "labels", "annotations":
		if text(s.node, "spec", "targetMergePolicy") == "Ignore" {
			at.dropped("External Secrets Operator does not write it, because targetMergePolicy is Ignore")
			return
		}
		s.put(name, value)
	case "sourceMergePolicy":
		if !slices.Contains([]string{"Merge", "Replace"}, value.Value) {
			at.invalid("one of Merge, Replace")
			return
		}
		at.dropped("only the labels and annotations of metadata are pushed")
	case "targetMergePolicy":
		switch value.Value {
		case "Merge", "Ignore":
			at.dropped("labels and annotations that are not named stay")
		case "Replace":
			at.left("labels and annotations that are not named stay; External Secrets Operator removes them", "remove such labels and annotations by hand, if they are not wanted")
		default:
			at.invalid("one of Merge, Replace, Ignore")
		}
	case "remoteNamespace":
		at.unsupported("a store is for one namespace", "make a store for this namespace, and a PushSecret for that store")
	default:
		s.unknown(name, value)
	}
}

// finishKubernetesPush reports what differs when an entry of data is pushed to a Secret.
func (f *field) finishKubernetesPush(entry *yaml.Node, at string) {
	if text(entry, "match", "secretKey") != "" && text(entry, "match", "remoteRef", "property") == "" {
		f.refuse(at+".match.remoteRef.property", "it is missing, and External Secrets Operator requires it together with secretKey")
	}
	spec := child(entry, "metadata", "spec")
	if text(spec, "sourceMergePolicy") != "Replace" && text(spec, "targetMergePolicy") != "Ignore" {
		f.add(Finding{Field: at + ".metadata", Verdict: Changed, Reason: "labels and annotations of the Secret are not pushed, and External Secrets Operator pushes them", Todo: "name those that readers need in metadata"})
	}
}

// finishKubernetesPushes reports what differs for all Secrets that are pushed to Kubernetes.
func (f *field) finishKubernetesPushes() {
	f.add(Finding{Verdict: Changed, Reason: "a new Secret of a KubernetesSecrets has the type Opaque, unless metadata has another; External Secrets Operator gives it the type of the Secret that is pushed", Todo: "set metadata.type, if the Secret is not Opaque"})
	f.add(Finding{Verdict: Changed, Reason: "a value that is not text cannot be pushed to a KubernetesSecrets, and External Secrets Operator pushes its bytes", Todo: "leave this object with External Secrets Operator, if the Secret has such a value"})
}
