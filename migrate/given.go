package migrate

import (
	"fmt"
	"strings"
)

// storeKinds are the namespaced Kinds of stores.
var storeKinds = []kind{awsSecretsManager, awsParameterStore, vaultKV, gcpSecretManager, kubernetesSecrets, onePassword, azureKeyVault}

// knownStore returns what a store of External Secrets Operator became that is not in the input: what the input has of direct-secrets
// or, if there is none, what the user has named. It returns nil if there is neither.
func (o *object) knownStore(of, namespace, name string) (*target, error) {
	var found *target
	for _, k := range storeKinds {
		if unknown(of) {
			break
		}
		if of == "ClusterSecretStore" {
			k = k.cluster()
		}
		for _, d := range nearest(o.File, o.inputs.existing[k.name+"/"+o.inputs.namespace(namespace)+"/"+name], func(d *document) string { return d.source }) {
			one := target{kind: k, object: storeObject(
				text(d.node, "spec", "path"), text(d.node, "spec", "version"), text(d.node, "spec", "prefix"))}
			if found != nil && found.meaning() != one.meaning() {
				return nil, fmt.Errorf("%s %s is in the input as several stores of direct-secrets, as a %s and a %s; convert the folder of each by itself", of, name, found.kind.name, k.name)
			}
			found = &one
		}
	}
	if found != nil {
		return found, nil
	}
	return o.inputs.given(of, namespace, name), nil
}

// storeObject returns a store of External Secrets Operator with what the conversion of references depends on.
func storeObject(path, version, prefix string) *object {
	provider := mapping("aws", mapping("prefix", plain(prefix)))
	if path != "" {
		provider = mapping("vault", mapping("path", plain(path), "version", plain(version)))
	}
	return &object{document: &document{node: mapping("spec", mapping("provider", provider))}}
}

// given returns the store that the user has named for a reference; nil if there is none.
func (in *inputs) given(kind, namespace, name string) *target {
	for _, key := range []string{kind + "/" + in.namespace(namespace) + "/" + name, kind + "/" + name} {
		if s, found := in.Stores[key]; found {
			return &s.target
		}
	}
	return nil
}

// A GivenStore is what a store becomes that is not in the input.
type GivenStore struct{ target target }

// ParseStore returns the store of a text such as ClusterVaultKV:secret or VaultKV:kv:v1, which has the path of the engine and its
// version.
func ParseStore(text string) (GivenStore, error) {
	name, rest, _ := strings.Cut(text, ":")
	mount, version, _ := strings.Cut(rest, ":")
	for _, k := range storeKinds {
		for _, k := range []kind{k, k.cluster()} {
			isVault := k.module == vaultKV.module
			if k.name != name || isVault != (mount != "") {
				continue
			}
			return GivenStore{target{kind: k, object: storeObject(mount, version, "")}}, nil
		}
	}
	return GivenStore{}, fmt.Errorf("%q is not the Kind of a store; of Vault, write it as VaultKV:PATH", text)
}
