package migrate

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pushKinds returns the Kinds of the stores of a PushSecret, each once and without Cluster; what is wrong with a
// reference is reported where it is moved.
func (f *field) pushKinds() map[string]bool {
	kinds := map[string]bool{}
	refs := child(f.object.node, strings.Split(f.specPath("spec.secretStoreRefs"), ".")...)
	for i := range length(refs) {
		all, _ := (&field{object: f.object, node: refs.Content[i]}).pushStore()
		for _, r := range all {
			kinds[strings.TrimPrefix(text(r, "kind"), "Cluster")] = true
		}
	}
	return kinds
}

// storesOf returns the stores of a Kind that a PushSecret names.
func (f *field) storesOf(k kind) []target {
	var all []target
	refs := child(f.object.node, strings.Split(f.specPath("spec.secretStoreRefs"), ".")...)
	for i := range length(refs) {
		n := refs.Content[i]
		if found, err := f.storeOf(text(n, "kind"), text(n, "name")); err == nil && found.is(k) {
			all = append(all, found)
		}
	}
	return all
}

// pushKey moves the key of a remote secret that is written.
func pushKey(to string) rule {
	return func(f *field) {
		if strings.Contains(f.node.Value, "${name}") || strings.Contains(f.node.Value, "${namespace}") {
			f.unsupported("${name} and ${namespace} stand for those of the Secret here", "write the key without them")
			return
		}
		kinds := f.pushKinds()
		if kinds[azureKeyVault.name] && f.pushVaultKey(to) {
			return
		}
		for _, s := range f.storesOf(vaultKV) {
			path, version := s.vault()
			key := vaultKey(f.node.Value, path, version)
			if key == f.node.Value {
				continue
			}
			if len(kinds) > 1 {
				f.unsupported("the key begins with the path of one of several stores", "make a PushSecret for each store")
				return
			}
			f.node = scalarNode(key, f.node)
			f.changed(to, "a key is without the path of the store; External Secrets Operator takes it out for the value, but not for the metadata", "check the key")
			return
		}
		scalar(to)(f)
	}
}

// A service is what the stores of a Kind read, with its name for reports.
type service struct {
	kind kind
	name string
}

// servicesOf returns the names of those whose Kind is one of several.
func servicesOf(kinds map[string]bool, of ...service) (names []string) {
	for _, s := range of {
		if kinds[s.kind.name] {
			names = append(names, s.name)
		}
	}
	return names
}

// pushProperty moves the property of a remote secret that is written. In Vault, Kubernetes and 1Password, External Secrets Operator takes it
// for one key, here dots separate the parts of a path.
func pushProperty(f *field) {
	const to = "spec.data[].match.remoteRef.property"
	kinds := f.pushKinds()
	whole := servicesOf(kinds, service{awsParameterStore, "Parameter Store"}, service{azureKeyVault, "Azure Key Vault"})
	switch {
	case len(whole) > 0 && len(kinds) > len(whole):
		f.unsupported("External Secrets Operator ignores it at "+strings.Join(whole, " and ")+", and not in other stores", "make a PushSecret for each provider")
		return
	case len(whole) > 0:
		f.dropped("External Secrets Operator ignores it at " + strings.Join(whole, " and ") + ", and writes the whole value")
		return
	}
	literal := servicesOf(kinds, service{vaultKV, "Vault"}, service{kubernetesSecrets, "Kubernetes"}, service{onePassword, "1Password"})
	if len(literal) == 0 || !strings.ContainsAny(f.node.Value, `.\\`) {
		scalar(to)(f)
		return
	}
	if len(kinds) > len(literal) {
		f.unsupported("a property with a dot is one key in "+strings.Join(literal, " and ")+", and a path in other stores", "make a PushSecret for each store")
		return
	}
	f.node = scalarNode(literalProperty(f.node.Value), f.node)
	f.move(to, Finding{Verdict: Exact, Reason: "in " + strings.Join(literal, " and ") + ", External Secrets Operator takes a property with a dot for one key"})
}

// literalProperty returns a property that is one key, also if the key has dots.
func literalProperty(key string) string {
	return strings.NewReplacer(`\`, `\\`, ".", `\.`).Replace(key)
}

// pushMetadata converts the settings of a pushed secret, which are those of the store's provider.
func pushMetadata(f *field) {
	const pushKind = "PushSecretMetadata"
	kinds := f.pushKinds()
	switch {
	case f.node.Kind != yaml.MappingNode:
		f.invalid("a mapping")
	case len(kinds) == 1 && kinds[vaultKV.name]:
		f.dropped("External Secrets Operator ignores it for Vault")
	case text(f.node, "kind") != pushKind:
		f.unsupported("the settings are not of the Kind "+pushKind, "write them as the page of the store's Kind describes")
	case len(kinds) != 1:
		f.unsupported("the settings depend on the provider, and the stores have several or are not known", "make a PushSecret for each provider")
	default:
		s := &settings{field: f, result: &yaml.Node{Kind: yaml.MappingNode}}
		convert := map[string]func(*settings, string, *yaml.Node){
			awsSecretsManager.name: (*settings).secretsManager, awsParameterStore.name: (*settings).parameterStore, gcpSecretManager.name: (*settings).google,
			kubernetesSecrets.name: (*settings).kubernetes, azureKeyVault.name: (*settings).azure, onePassword.name: (*settings).onePassword,
		}
		for k := range kinds {
			s.each(convert[k])
			if k == gcpSecretManager.name {
				s.finishGoogle()
			}
		}
		if len(s.result.Content) > 0 {
			f.node = s.result
			f.exact("spec.data[].metadata")
		} else {
			f.dropped("it has no settings")
		}
	}
}

// settings are those of one pushed secret while they are converted.
type settings struct {
	*field

	result *yaml.Node
	// location and key are those of a replica at Google.
	location, key string
	replaces      bool
}

// each converts each setting.
func (s *settings) each(convert func(*settings, string, *yaml.Node)) {
	for key, value := range pairs(child(s.node, "spec")) {
		if !isNull(value) {
			convert(s, key.Value, value)
		}
	}
}

// put adds a setting to the result.
func (s *settings) put(name string, value *yaml.Node) {
	s.result.Content = append(s.result.Content, scalarNode(name, &yaml.Node{}), value)
}

func (s *settings) at(name string, value *yaml.Node) *field {
	return s.below(nil, value, "spec."+name)
}

// tags adds the tags of a secret at AWS, Azure or 1Password.
func (s *settings) tags(value *yaml.Node) {
	s.put("tags", value)
	s.add(Finding{Field: s.String() + ".spec.tags", Verdict: Changed, Reason: "tags that it does not name stay; External Secrets Operator removes them", Todo: "remove such tags by hand, if they are not wanted"})
}

func (s *settings) unknown(name string, value *yaml.Node) {
	s.at(name, value).unsupported("the store's Kind has no such setting", "see Pushing on the page of the store's Kind")
}

func (s *settings) secretsManager(name string, value *yaml.Node) {
	switch name {
	case "description":
		s.put(name, value)
	case "tags":
		s.tags(value)
	case "kmsKeyId", "kmsKeyID":
		s.put("kmsKeyID", value)
	case "resourcePolicy":
		s.at(name, value).unsupported("the operator takes the policy itself, and no reference to it", "convert the PushSecret without it, and write the policy in data[].metadata.resourcePolicy")
	case "secretPushFormat":
		if value.Value == "string" {
			s.at(name, value).dropped("text is stored as text")
		}
	default:
		s.unknown(name, value)
	}
}

func (s *settings) parameterStore(name string, value *yaml.Node) {
	switch name {
	case "description", "kmsKeyID":
		s.put(name, value)
	case "tags":
		s.tags(value)
	case "secretType":
		s.put("type", value)
	case "encodeAsDecoded":
		if value.Value == "true" || s.sibling(1, "match", "secretKey") != nil {
			s.at(name, value).dropped("the values of a JSON object are text")
		}
	case "tier":
		if child(value, "policies") != nil {
			s.at("tier.policies", value).unsupported("policies of parameters are not set", "set them at AWS")
			return
		}
		if kind := child(value, "type"); kind != nil {
			s.put("tier", kind)
		}
	default:
		s.unknown(name, value)
	}
}

func (s *settings) google(name string, value *yaml.Node) {
	switch name {
	case "annotations", "labels", "topics":
		s.put(name, value)
		s.replaces = s.replaces || (name == "labels" && text(s.node, "spec", "mergePolicy") != "Merge")
	case "mergePolicy":
		s.at(name, value).dropped("labels that are not named stay")
	case "cmekKeyName":
		s.key = value.Value
	case "replicationLocation":
		s.location = value.Value
	default:
		s.unknown(name, value)
	}
}

// finishGoogle puts the replica together, and reports labels that stay.
func (s *settings) finishGoogle() {
	if s.sibling(1, "match", "remoteRef", "property") != nil {
		s.unsupported("External Secrets Operator refuses settings together with a property", "remove one of them")
	}
	if s.replaces {
		s.add(Finding{Field: s.String() + ".spec.labels", Verdict: Changed, Reason: "labels that it does not name stay; External Secrets Operator removes them, unless mergePolicy is Merge", Todo: "remove such labels by hand, if they are not wanted"})
	}
	text := func(v string) *yaml.Node { return scalarNode(v, &yaml.Node{}) }
	switch {
	case s.location != "":
		replica := mapping("location", text(s.location))
		if s.key != "" {
			replica = mapping("location", text(s.location), "kmsKeyName", text(s.key))
		}
		s.put("replication", mapping("userManaged", mapping("replicas", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{replica}})))
	case s.key != "":
		s.put("replication", mapping("automatic", mapping("kmsKeyName", text(s.key))))
	}
}

// finishSettings makes explicit what differs by default. data are the entries of the original.
func (f *field) finishSettings(data *yaml.Node) {
	kinds := f.pushKinds()
	once := text(f.object.node, strings.Split(f.specPath("spec.updatePolicy"), ".")...) == "IfNotExists"
	if kinds[kubernetesSecrets.name] {
		f.finishKubernetesPushes()
	}
	if kinds[onePassword.name] {
		f.finishItemPushes()
	}
	for i := range length(data) {
		entry := data.Content[i]
		at := f.specPath("spec.data") + "[" + strconv.Itoa(i) + "]"
		if once && (kinds[awsSecretsManager.name] || kinds[gcpSecretManager.name]) && text(entry, "match", "remoteRef", "property") != "" {
			f.add(Finding{Field: f.specPath("spec.updatePolicy"), Verdict: Changed, Reason: "a property that does not exist is written into a secret that exists; External Secrets Operator leaves such a secret as it is", Todo: "check that the property of " + at + " may be written"})
		}
		if kinds[kubernetesSecrets.name] {
			f.finishKubernetesPush(entry, at)
		}
		if kinds[onePassword.name] {
			f.finishItemPush(entry, i, len(kinds))
		}
		whole := text(entry, "match", "secretKey") == ""
		format := text(entry, "metadata", "spec", "secretPushFormat")
		if kinds[awsSecretsManager.name] && format != "string" {
			f.add(Finding{Field: at + ".metadata.spec.secretPushFormat", Verdict: Changed, Reason: "AWSSecretsManager stores text as SecretString; External Secrets Operator stores it as SecretBinary, unless secretPushFormat is string", Todo: "check that readers of the secret take a string"})
		}
		if !kinds[awsParameterStore.name] {
			continue
		}
		if whole && text(entry, "metadata", "spec", "encodeAsDecoded") != "true" {
			f.add(Finding{Field: at + ".metadata.spec.encodeAsDecoded", Verdict: Changed, Reason: "the values of the JSON object are text; External Secrets Operator writes them in Base64, unless encodeAsDecoded is true", Todo: "check what readers of the parameter expect"})
		}
		if text(entry, "metadata", "spec", "secretType") != "" {
			continue
		}
		if len(kinds) > 1 {
			f.add(Finding{Field: at + ".metadata.spec.secretType", Verdict: Changed, Reason: "a new parameter is a SecureString; External Secrets Operator makes it a String", Todo: "make a PushSecret for each provider, with the type in metadata"})
			continue
		}
		f.out.set("String", append(strings.Split(f.specPath("spec.data"), "."), index(i), "metadata", "type")...)
		f.add(Finding{To: at + ".metadata.type", Verdict: Exact, Reason: "External Secrets Operator makes a new parameter a String"})
	}
}

// oldVault reports what a store of KV version 1, which compares no versions and keeps no metadata, does not do.
func (f *field) oldVault() {
	if !slices.ContainsFunc(f.storesOf(vaultKV), func(s target) bool { _, version := s.vault(); return version == "v1" }) {
		return
	}
	const todo = "use a secrets engine of version 2"
	spec := child(f.object.node, strings.Split(f.nested, ".")...)
	if text(spec, "updatePolicy") == "IfNotExists" {
		f.add(Finding{Field: f.specPath("spec.updatePolicy"), Verdict: Unsupported, Reason: "KV version 1 cannot tell whether a secret exists at the moment of a write", Todo: todo})
	}
	if text(spec, "deletionPolicy") == "Delete" {
		f.add(Finding{Field: f.specPath("spec.deletionPolicy"), Verdict: Changed, Reason: "nothing is deleted in KV version 1, which keeps no mark of who created a secret", Todo: "delete the secrets by hand, or " + todo})
	}
	data := child(spec, "data")
	for i := range length(data) {
		if text(data.Content[i], "match", "remoteRef", "property") != "" {
			f.add(Finding{Field: f.specPath("spec.data") + "[" + strconv.Itoa(i) + "].match.remoteRef.property", Verdict: Unsupported, Reason: "properties are not written in KV version 1, since those of other writers could be lost", Todo: todo})
		}
	}
	f.add(Finding{Verdict: Changed, Reason: "in KV version 1, External Secrets Operator writes custom_metadata into each secret, and direct-secrets does not", Todo: "check that no reader needs it"})
}
