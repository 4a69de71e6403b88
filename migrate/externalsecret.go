package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/migrate/internal/actions"
)

// scalarNode returns a string with the comments of the node that it replaces.
func scalarNode(value string, was *yaml.Node) *yaml.Node {
	n := &yaml.Node{HeadComment: was.HeadComment, LineComment: was.LineComment, FootComment: was.FootComment}
	n.SetString(value)
	return n
}

var (
	decodings   = []string{"None", "Base64", "Base64URL", "Auto"}
	conversions = []string{"Default", "Unicode"}
)

// remoteRef are the rules for what one entry reads.
func remoteRef(from, to string) rules {
	return rules{
		from + ".key":                remoteKey(to + ".key"),
		from + ".property":           property(to + ".property"),
		from + ".version":            remoteVersion(to + ".version"),
		from + ".metadataPolicy":     metadataPolicy(to + ".metadataPolicy"),
		from + ".conversionStrategy": oneOf(to+".conversionStrategy", conversions...),
		from + ".decodingStrategy":   oneOf(to+".decodingStrategy", decodings...),
		from + ".nullBytePolicy":     oneOf(to+".nullBytePolicy", "Ignore", "Fail"),
	}
}

// creationPolicy moves the policy that says who creates the Secret.
func creationPolicy(f *field) {
	if f.node.Value == "CreateOrMerge" {
		f.unsupported("no policy creates the Secret if it is missing, and otherwise adds keys to it", "set Merge if another tool creates the Secret, and Orphan otherwise")
		return
	}
	oneOf("spec.target.creationPolicy", "Owner", "Orphan", "Merge", "None")(f)
}

// rewrites are the rules for changes of keys.
func rewrites(at string) rules {
	return rules{
		at + "[].regexp.source":        scalar(at + "[].regexp.source"),
		at + "[].regexp.target":        scalar(at + "[].regexp.target"),
		at + "[].transform.template":   templateText(at + "[].transform.template"),
		at + "[].merge.into":           scalar(at + "[].merge.into"),
		at + "[].merge.strategy":       oneOf(at+"[].merge.strategy", "Extract", "JSON"),
		at + "[].merge.priority":       whole(at+"[].merge.priority", yaml.SequenceNode),
		at + "[].merge.priorityPolicy": oneOf(at+"[].merge.priorityPolicy", "Strict", "IgnoreNotFound"),
		at + "[].merge.conflictPolicy": oneOf(at+"[].merge.conflictPolicy", "Error", "Ignore"),
	}
}

// externalSecrets are the rules for the spec of an ExternalSecret. Fields that both have are exact.
var externalSecrets = rules{
	"spec.refreshPolicy":                      oneOf("spec.refreshPolicy", "Periodic", "OnChange", "CreatedOnce"),
	"spec.refreshInterval":                    interval("spec.refreshInterval"),
	"spec.secretStoreRef":                     storeRef("spec.storeRef"),
	"spec.target.name":                        scalar("spec.target.name"),
	"spec.syncWindows.kind":                   oneOf("spec.syncWindows.kind", "allow", "deny"),
	"spec.syncWindows.windows":                syncWindows,
	"spec.target.creationPolicy":              creationPolicy,
	"spec.target.deletionPolicy":              oneOf("spec.target.deletionPolicy", "Retain", "Delete", "Merge"),
	"spec.target.immutable":                   immutable,
	"spec.target.manifest":                    targetManifest,
	"spec.data[].secretKey":                   scalar("spec.data[].secretKey"),
	"spec.data[].sourceRef.storeRef":          storeRef("spec.data[].sourceRef.storeRef"),
	"spec.dataFrom[].find":                    find,
	"spec.dataFrom[].find.path":               scalar("spec.dataFrom[].find.path"),
	"spec.dataFrom[].find.name.regexp":        scalar("spec.dataFrom[].find.name.regexp"),
	"spec.dataFrom[].find.tags":               findTags,
	"spec.dataFrom[].find.conversionStrategy": oneOf("spec.dataFrom[].find.conversionStrategy", conversions...),
	"spec.dataFrom[].find.nullBytePolicy":     oneOf("spec.dataFrom[].find.nullBytePolicy", "Ignore", "Fail"),
	"spec.dataFrom[].find.decodingStrategy":   oneOf("spec.dataFrom[].find.decodingStrategy", decodings...),
	"spec.dataFrom[].sourceRef.storeRef":      storeRef("spec.dataFrom[].sourceRef.storeRef"),
	"spec.dataFrom[].sourceRef.generatorRef":  generatorRef("spec.dataFrom[].sourceRef.generatorRef"),
	"spec.data[].sourceRef.generatorRef":      never("one key of a generator is not an entry of data", "use dataFrom with the generator, and rewrite its keys"),
}.with(templates("spec.target.template"), remoteRef("spec.data[].remoteRef", "spec.data[].remoteRef"),
	remoteRef("spec.dataFrom[].extract", "spec.dataFrom[].extract"), rewrites("spec.dataFrom[].rewrite"),
	rules{"spec.data[].remoteRef.conversionStrategy": drop("it has no effect in data")})

// init breaks a cycle: find applies the rules that it is one of.
func init() { findRules = externalSecrets.without("spec.dataFrom[].find") }

// oldest are the rules that only the version v1alpha1 has.
var oldest = remoteRef("spec.dataFrom[]", "spec.dataFrom[].extract")

// externalSecret converts an ExternalSecret.
func externalSecret(o *object) {
	o.becomes(kind{name: "ExternalSecret"})
	r := externalSecrets
	if strings.HasSuffix(o.APIVersion, "/v1alpha1") {
		r = r.with(oldest)
		if child(o.node, "spec", "target", "template") != nil && child(o.node, "spec", "target", "template", "engineVersion") == nil {
			o.add(Finding{Field: "spec.target.template.engineVersion", Verdict: Changed, Reason: "v1alpha1 has the template engine v1 by default, and here values are text, as in v2", Todo: "try the templates with dsctl render"})
		}
	}
	r.with(metadata()).walk(&field{object: o, node: o.node})
	o.finishExternalSecret("spec")
	o.copyMetadata("spec", child(o.node, "metadata"))
}

// clusterExternalSecrets are the rules for the spec of a ClusterExternalSecret.
var clusterExternalSecrets = rules{
	"spec.externalSecretSpec":                 nest(externalSecrets, false),
	"spec.externalSecretName":                 scalar("spec.externalSecretName"),
	"spec.externalSecretMetadata.labels":      stringMap("spec.externalSecretMetadata.labels"),
	"spec.externalSecretMetadata.annotations": stringMap("spec.externalSecretMetadata.annotations"),
	"spec.namespaceSelector":                  oneSelector,
	"spec.namespaceSelectors":                 selectors,
	"spec.namespaces":                         distinct("spec.namespaces"),
	"spec.refreshTime":                        drop("namespaces are watched"),
}

// clusterExternalSecret converts a ClusterExternalSecret.
func clusterExternalSecret(o *object) {
	o.becomes(kind{name: "ClusterExternalSecret"})
	clusterExternalSecrets.with(metadata()).walk(&field{object: o, node: o.node})
	o.finishExternalSecret("spec.externalSecretSpec")
	o.copyMetadata("spec.externalSecretSpec", child(o.node, "spec", "externalSecretMetadata"))
}

// oneSelector moves the selector of namespaces that older versions had instead of a list; it counts in addition to the list.
func oneSelector(f *field) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{f.node}}
	if more := f.sibling(1, "namespaceSelectors"); more != nil {
		list.Content = slices.Concat(list.Content, more.Content)
	}
	f.node = list
	f.exact("spec.namespaceSelectors")
}

// selectors moves the selectors of namespaces, unless oneSelector does.
func selectors(f *field) {
	if f.sibling(1, "namespaceSelector") != nil {
		f.add(Finding{Field: f.String(), To: "spec.namespaceSelectors", Verdict: Exact})
		return
	}
	whole("spec.namespaceSelectors", yaml.SequenceNode)(f)
}

// copyMetadata makes explicit what External Secrets Operator does by default: without a template it copies labels and
// annotations of the ExternalSecret to the Secret.
func (o *object) copyMetadata(spec string, metadata *yaml.Node) {
	at := strings.Split(spec, ".")
	if child(o.node, append(at, "target", "template")...) != nil {
		return
	}
	for _, what := range []string{"labels", "annotations"} {
		if n := child(metadata, what); n != nil && n.Kind == yaml.ScalarNode && actions.Is(n.Value) {
			o.add(Finding{Field: "metadata." + what, Verdict: Changed, Reason: "External Secrets Operator copies it to the Secret, and an action of the template makes it", Todo: "add it to target.template.metadata." + what + ", if a reader of the Secret needs it"})
		}
		for k, v := range pairs(child(metadata, what)) {
			key, value := k.Value, v.Value
			if dropped(key) {
				continue // Reported where the annotation is.
			}
			if key == InstanceLabel {
				o.add(Finding{Field: "metadata." + what + "." + key, Verdict: Changed, Reason: "External Secrets Operator copies it to the Secret, too; it is left out there, because Argo CD can know its objects by it, and prunes those that Git does not have", Todo: "add it to target.template.metadata." + what + ", if a reader of the Secret needs it and Argo CD tracks by annotation"})
				continue
			}
			if managed(key) {
				o.add(Finding{Field: "metadata." + what + "." + key, Verdict: Exact, Reason: "External Secrets Operator copies it to the Secret, too; it is left out there, so that no tool takes the Secret for an object that it manages"})
				continue
			}
			node := scalarNode(literal(value), &yaml.Node{})
			if unknown(value) {
				node.Style = v.Style
			}
			o.out.put(append(slices.Clone(at), "target", "template", "metadata", what, key), nil, node)
			o.add(Finding{To: spec + ".target.template.metadata." + what + "." + key, Verdict: Exact, Reason: "External Secrets Operator copies it to the Secret"})
		}
	}
}

// InstanceLabel is a label by which Argo CD may know the objects of an application. It deletes those that Git does not have.
const InstanceLabel = "app.kubernetes.io/instance"

// managed reports whether a label or annotation is one by which Argo CD, Flux and Helm know the objects that they manage.
func managed(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"argocd.argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "meta.helm.sh"}, prefix)
}

// literal returns a template that yields a text.
func literal(s string) string {
	if strings.Contains(s, "{{") {
		return "{{ " + quoted(s) + " }}"
	}
	return s
}
