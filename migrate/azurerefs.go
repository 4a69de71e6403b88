package migrate

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The types of what a key of Azure Key Vault names.
const (
	azureSecret      = "secret"
	azureCertificate = "cert"
	azureKey         = "key"
)

var azureVersion = regexp.MustCompile(`^[0-9a-f]{32}$`)

// splitAzureKey returns the type and the name in a key. External Secrets Operator ignores what follows them.
func splitAzureKey(key string) (of, name string, more bool) {
	of, rest, typed := strings.Cut(key, "/")
	if !typed {
		return azureSecret, key, false
	}
	name, _, more = strings.Cut(rest, "/")
	return of, name, more
}

// vaultObjectKey moves the key of a secret, a certificate or a key of Azure Key Vault.
func (f *field) vaultObjectKey(to string) {
	if f.byAction(to) {
		return
	}
	of, name, more := splitAzureKey(f.node.Value)
	extracted := !slices.Contains(f.path, "remoteRef")
	switch {
	case f.node.Kind != yaml.ScalarNode || name == "" || !slices.Contains([]string{azureSecret, azureCertificate, azureKey}, of):
		f.invalid("the name of a secret, or secret/, cert/ or key/ with a name")
	case of != azureSecret && extracted:
		f.unsupported("External Secrets Operator extracts only secrets", "read it as an entry of data")
	case of != azureSecret && f.fetchesTags():
		f.unsupported("tags of certificates and keys are not converted", "write the entry yourself, or remove metadataPolicy")
	case of == azureKey:
		f.node = scalarNode(of+"/"+name, f.node)
		f.exact(to)
	case of == azureCertificate:
		f.node = scalarNode(of+"/"+name, f.node)
		f.out.set("cer", f.at(strings.TrimSuffix(to, "key")+"property")...)
		f.changed(to, "the certificate is read as the secret of its name, and External Secrets Operator reads it as a certificate", "grant the identity the permission Get of secrets, such as by the role Key Vault Secrets User")
	case more:
		f.node = scalarNode(of+"/"+name, f.node)
		f.changed(to, "a key is a name only, and External Secrets Operator ignores what follows it", "check the key")
	default:
		f.exact(to)
	}
}

// fetchesTags reports whether the entry of the field reads metadata.
func (f *field) fetchesTags() bool {
	fetch := f.sibling(1, "metadataPolicy")
	return fetch != nil && fetch.Value == "Fetch"
}

// vaultObjectProperty moves the path inside a secret, or the name of a tag.
func (f *field) vaultObjectProperty(to string) {
	key := f.sibling(1, "key")
	of := azureSecret
	if key != nil {
		of, _, _ = splitAzureKey(key.Value)
	}
	switch fetches := f.fetchesTags(); {
	case f.node.Kind != yaml.ScalarNode || !fetches && of == azureSecret:
		scalar(to)(f)
	case f.byAction(to):
	case !fetches && of == azureKey:
		f.exact(to) // It is a member of the JSON Web Key.
	case !fetches:
		f.dropped("External Secrets Operator ignores it for a certificate")
	case strings.HasPrefix(f.node.Value, "attribute."):
		f.unsupported("the metadata of a secret are its tags", "write the date into a tag of the secret, and name that tag")
	case strings.Contains(f.node.Value, "."):
		f.node = scalarNode(literalProperty(f.node.Value), f.node)
		f.changed(to, "a property with a dot is the name of a tag; if there is no such tag, External Secrets Operator takes it for a path in the JSON of the tag before the dot", "check that the secret has a tag of this name")
	default:
		f.exact(to)
	}
}

// vaultObjectMetadata moves the policy that reads the tags of a secret.
func (f *field) vaultObjectMetadata(to string, store target) {
	whole := f.node.Value == "Fetch" && f.sibling(1, "property") == nil
	switch {
	case whole && !slices.Contains(f.path, "remoteRef"):
		f.unsupported("the keys are the names of the tags here, and in External Secrets Operator the name of the secret precedes them", "read each tag as an entry of data, with the name of the tag in property")
	case whole && !store.object.usesNewSDK():
		f.changed(to, "the JSON object has the tags; newer versions of External Secrets Operator add dates (attribute.created and others), unless useAzureSDK is true", "check that readers of the Secret need only tags")
	default:
		oneOf(to, "None", "Fetch")(f)
	}
}

// vaultObjectVersion moves the ID of a version.
func (f *field) vaultObjectVersion(to string) {
	switch {
	case f.node.Kind == yaml.ScalarNode && f.node.Value == "":
		f.dropped("it is empty")
	case f.byAction(to):
	case f.node.Kind != yaml.ScalarNode || !azureVersion.MatchString(f.node.Value):
		f.unsupported("it is not the ID of a version", "write the ID, which has 32 hexadecimal digits in lower case")
	default:
		f.exact(to)
	}
}

// findInVault returns the rules for a search in Azure Key Vault.
func (f *field) findInVault() rules {
	const at = "spec.dataFrom[].find"
	f.add(Finding{Field: f.String(), To: f.String(), Verdict: Changed, Reason: "secrets that are part of certificates are not found, and a disabled one is an error; External Secrets Operator finds the former, and omits the latter", Todo: "read certificates as entries of data, and let name.regexp match no disabled secret"})
	every := func(f *field) {
		if f.node.Value == "" {
			f.node = scalarNode(".*", f.node)
		}
		scalar(at + ".name.regexp")(f)
	}
	if name := child(f.node, "name"); (name == nil || isNull(name)) && len(contentOf(child(f.node, "tags"))) == 0 {
		to := f.at(at + ".name.regexp")
		f.out.set(".*", to...)
		f.add(Finding{To: (&field{path: to}).String(), Verdict: Exact, Reason: "External Secrets Operator finds all secrets of the vault without name and tags"})
	}
	return findRules.with(rules{
		at + ".name.regexp": every,
		at + ".tags":        stringMap(at + ".tags"),
		at + ".path":        drop("External Secrets Operator ignores it in Azure Key Vault"),
	})
}

// pushVaultKey moves the key of a secret that is pushed to Azure Key Vault. It reports whether it has dealt with the field.
func (f *field) pushVaultKey(to string) bool {
	of, name, more := splitAzureKey(f.node.Value)
	switch {
	case f.node.Kind != yaml.ScalarNode || unknown(f.node.Value):
		return false
	case of == azureCertificate || of == azureKey:
		f.unsupported("certificates and keys are not written", "push the value as a secret, or leave this object with External Secrets Operator")
	case of != azureSecret || name == "":
		f.invalid("the name of a secret, or secret/ with a name")
	case more:
		f.node = scalarNode(of+"/"+name, f.node)
		f.changed(to, "a key is a name only, and External Secrets Operator ignores what follows it", "check the key")
	default:
		return false
	}
	return true
}

// azure converts a setting of a secret that is pushed to Azure Key Vault.
func (s *settings) azure(name string, value *yaml.Node) {
	switch name {
	case "expirationDate", "contentType":
		if value.Value == "" {
			s.at(name, value).dropped("it is empty")
			return
		}
		s.put(name, value)
		if newSDK := func(t target) bool { return t.object.usesNewSDK() }; name == "expirationDate" && slices.ContainsFunc(s.storesOf(azureKeyVault), newSDK) {
			s.add(Finding{Field: s.String() + ".spec." + name, Verdict: Changed, Reason: "the date is set; External Secrets Operator ignores it, if useAzureSDK is true", Todo: "check that the secret can expire"})
		}
	case "tags":
		s.tags(value)
	default:
		s.unknown(name, value)
	}
}
