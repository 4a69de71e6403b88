package migrate

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

const (
	keyTypeTo = "spec.keyType"
	keySizeTo = "spec.keySize"
	rsa       = "rsa"
	// defaultSize is the size of an RSA key for which External Secrets Operator has no other.
	defaultSize = 2048
	// otherSize is the size of an ECDSA key for which it has a size that no curve has.
	otherSize = 256
)

// keyType moves the type of a key of an SSHKey.
func keyType(f *field) {
	if f.node.Kind == yaml.ScalarNode && f.node.Value == "" {
		f.dropped("rsa is the default")
		return
	}
	oneOf(keyTypeTo, rsa, "ecdsa", "ed25519")(f)
}

// keySize moves the size of a key of an SSHKey. External Secrets Operator ignores one that the type does not have.
func keySize(f *field) {
	of := f.sibling(1, "keyType")
	switch {
	case of != nil && of.Value == "ed25519":
		f.dropped("keys of this type have one size")
	case of != nil && of.Value == "ecdsa" && !unknown(f.node.Value) && !slices.Contains([]string{"256", "384", "521"}, f.node.Value):
		f.node = quantity(otherSize)
		f.move(keySizeTo, Finding{Verdict: Exact, Reason: "for a size that no curve has, External Secrets Operator generates a key of 256 bits"})
	default:
		scalar(keySizeTo)(f)
	}
}

// keyDefaults makes explicit which key External Secrets Operator generates by default.
func (o *object) keyDefaults() {
	if o.verdict() == Unsupported {
		return
	}
	of := text(o.out.root, "spec", "keyType")
	if of == "" {
		of = rsa
		o.out.set(rsa, "spec", "keyType")
		o.add(Finding{To: keyTypeTo, Verdict: Exact, Reason: "it is the default of External Secrets Operator"})
	}
	switch size := child(o.out.root, "spec", "keySize"); {
	case size != nil:
	case of == rsa:
		o.out.put([]string{"spec", "keySize"}, nil, quantity(defaultSize))
		o.add(Finding{To: keySizeTo, Verdict: Exact, Reason: "it is the default of External Secrets Operator"})
	case unknown(of):
		o.add(Finding{To: keySizeTo, Verdict: Changed, Reason: "the type is made when the manifest is applied, and an RSA key has 3072 bits by default; in External Secrets Operator it has 2048", Todo: "set keySize, if the type is rsa"})
	}
}

// noSettings drops a spec that has no fields.
func noSettings(f *field) {
	if f.node.Kind != yaml.MappingNode {
		f.invalid("a mapping")
		return
	}
	for key, value := range pairs(f.node) {
		f.below(key, value, key.Value).unsupported("this generator has no settings", "remove it")
	}
	f.dropped("this generator has no settings")
}
