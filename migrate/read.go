package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// remoteKey moves the key of a remote secret. Of a store of Vault it is without the path of the store.
func remoteKey(to string) rule {
	return func(f *field) {
		found, known := f.storeFor()
		if known && found.is(onePassword) {
			f.itemKey(to)
			return
		}
		if known && found.is(azureKeyVault) {
			f.vaultObjectKey(to)
			return
		}
		if f.node.Kind != yaml.ScalarNode || !known || !found.is(vaultKV) {
			scalar(to)(f)
			return
		}
		path, version := found.vault()
		fetch := f.sibling(1, "metadataPolicy")
		switch {
		case fetch == nil || fetch.Value != "Fetch":
			f.vaultKey(to, vaultKey(f.node.Value, path, version))
		case version == "v1":
			f.unsupported("KV version 1 has no metadata", "remove metadataPolicy")
		default:
			f.vaultKey(to, f.node.Value)
		}
	}
}

// remoteVersion moves the version of a remote secret. Kubernetes and Connect have none.
func remoteVersion(to string) rule {
	return func(f *field) {
		switch found, known := f.storeFor(); {
		case known && found.is(kubernetesSecrets):
			f.dropped("Kubernetes keeps no versions, and External Secrets Operator ignores it")
		case known && found.is(onePassword):
			f.itemVersion()
		case known && found.is(azureKeyVault):
			f.vaultObjectVersion(to)
		default:
			scalar(to)(f)
		}
	}
}

// metadataPolicy moves the policy that reads the metadata of a remote secret.
func metadataPolicy(to string) rule {
	return func(f *field) {
		switch found, known := f.storeFor(); {
		case known && found.is(onePassword):
			f.dropped("External Secrets Operator ignores it for 1Password, and reads the value")
		case known && found.is(azureKeyVault):
			f.vaultObjectMetadata(to, found)
		default:
			oneOf(to, "None", "Fetch")(f)
		}
	}
}

// vaultKey moves a key of Vault.
func (f *field) vaultKey(to, key string) {
	parts := slices.DeleteFunc(strings.Split(key, "/"), func(p string) bool { return p == "" })
	if slices.Contains(parts, ".") || slices.Contains(parts, "..") || len(parts) == 0 {
		f.unsupported("a key has no parts . and .., and is not empty", "write the key without them")
		return
	}
	key = strings.Join(parts, "/")
	if key == f.node.Value {
		f.exact(to)
		return
	}
	f.node = scalarNode(key, f.node)
	f.move(to, Finding{Verdict: Exact, Reason: "a key is without the path of the store, data/ and empty parts; External Secrets Operator takes them out"})
}

// vaultKey returns a key as External Secrets Operator reads it: without the path of the store, and data/ behind it.
func vaultKey(key, path, version string) string {
	rest, found := strings.CutPrefix(key, path+"/")
	if !found || path == "" {
		return key
	}
	if version != "v1" {
		rest = strings.TrimPrefix(rest, "data/")
	}
	return rest
}

// property moves the path inside a remote secret. The metadata of Google and Kubernetes has another shape.
func property(to string) rule {
	return func(f *field) {
		fetch := f.sibling(1, "metadataPolicy")
		found, known := f.storeFor()
		switch fetches := fetch != nil && fetch.Value == "Fetch"; {
		case known && found.is(onePassword):
			f.itemProperty(to)
		case known && found.is(azureKeyVault):
			f.vaultObjectProperty(to)
		case f.node.Kind != yaml.ScalarNode || !known:
			scalar(to)(f)
		case fetches && found.hasLabels():
			f.metadataProperty(to, found)
		case !fetches && found.is(kubernetesSecrets):
			f.keyOfSecret(to)
		default:
			scalar(to)(f)
		}
	}
}

// hasLabels reports whether the metadata of a store has labels and annotations.
func (t target) hasLabels() bool { return t.is(gcpSecretManager) || t.is(kubernetesSecrets) }

// metadataProperty moves the path of a label or an annotation.
func (f *field) metadataProperty(to string, store target) {
	of, name, cut := strings.Cut(f.node.Value, ".")
	switch {
	case !cut || name == "" || (of != "labels" && of != "annotations"):
		f.unsupported("labels and annotations are read one by one here", "name one, as labels.NAME or annotations.NAME")
	case store.is(kubernetesSecrets) && strings.Contains(name, "."):
		f.unsupported("in Kubernetes, External Secrets Operator takes a second dot for the end of the name, and here it is a part of the name", "name a label or annotation without a dot")
	default:
		f.node = scalarNode(name, f.node)
		f.changed(to, "labels and annotations are read together, and a label takes precedence", "check that no label and annotation have the same name")
	}
}

// metadataShape reports metadata of Google or Kubernetes that is read as a whole: it has another shape.
func (f *field) metadataShape() {
	fetch := child(f.node, "metadataPolicy")
	found, known := f.storeFor()
	if fetch != nil && fetch.Value == "Fetch" && known && found.hasLabels() && child(f.node, "property") == nil {
		f.below(nil, fetch, "metadataPolicy").unsupported("labels and annotations are one object here, and two in External Secrets Operator", "name a property, as labels.NAME or annotations.NAME")
	}
}

// findRules are those for what a find has.
var findRules rules

// find walks a search, and makes explicit how External Secrets Operator searches.
func find(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	name, tags, path := child(f.node, "name"), child(f.node, "tags"), text(f.node, "path")
	found, known := f.storeFor()
	vault := known && found.is(vaultKV)
	all := findRules
	switch {
	case !known: // The error is reported at the reference.
	case found.is(kubernetesSecrets):
		all = f.findSecrets()
	case found.is(onePassword):
		all = f.findFields()
	case found.is(azureKeyVault):
		all = f.findInVault()
	case name == nil && (tags == nil || len(tags.Content) == 0) && (!vault || path == ""):
		f.unsupported("External Secrets Operator finds nothing, or refuses it, without name and tags", "set name.regexp: .* for all secrets")
		return
	case !vault && text(found.object.node, "spec", "provider", "aws", "prefix") != "":
		f.add(Finding{Field: f.String(), To: f.String(), Verdict: Changed, Reason: "External Secrets Operator ignores prefix when it searches, and here path and the keys that are found are without it", Todo: "check path, and the keys of the Secret"})
	case found.is(awsParameterStore) && name != nil && path == "":
		at := f.at("spec.dataFrom[].find.path")
		f.out.set("/", at...)
		f.add(Finding{To: (&field{path: at}).String(), Verdict: Exact, Reason: "External Secrets Operator searches parameters in hierarchies only, which begin with /"})
	}
	if all != nil {
		all.walk(f)
	}
}

// findTags moves the tags of a search.
func findTags(f *field) {
	found, known := f.storeFor()
	switch {
	case f.node.Kind != yaml.MappingNode:
		f.invalid("a mapping")
	case !known && f.sibling(1, "name") != nil: // The error is reported at the reference.
		f.exact("spec.dataFrom[].find.tags")
	case !found.is(awsSecretsManager) && f.sibling(1, "name") != nil:
		f.dropped("External Secrets Operator ignores tags if name is set")
	case known && found.is(awsSecretsManager): // Name and tags both apply.
		f.changed("spec.dataFrom[].find.tags", "a secret must have each tag as it is written; External Secrets Operator has AWS compare how keys and values of tags begin, of any tag", "check that the tags of the secrets are spelled out")
	default:
		f.exact("spec.dataFrom[].find.tags")
	}
}
