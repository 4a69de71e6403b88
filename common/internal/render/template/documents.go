package template

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// hexDecode decodes hexadecimal digits.
func hexDecode(text string) (string, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return "", &failure{"the value is not hexadecimal"}
	}
	return string(b), nil
}

func base64Decode(text string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", &failure{"the value is not base64"}
	}
	return string(b), nil
}

func base32Decode(text string) (string, error) {
	b, err := base32.StdEncoding.DecodeString(text)
	if err != nil {
		return "", &failure{"the value is not base32"}
	}
	return string(b), nil
}

// toYAML returns v as YAML without a line end, with the keys sorted.
func toYAML(r *run, v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", &failure{"the value cannot be written as YAML"}
	}
	if len(b) > maxValue {
		return "", tooLarge()
	}
	if err := document(r, string(b), "{[:,"); err != nil {
		return "", err
	}
	if b, err = yaml.JSONToYAML(b); err != nil {
		return "", &failure{"the value cannot be written as YAML"}
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// fromYAML parses a YAML document. It first measures the document with all aliases resolved, because a few lines of
// aliases can stand for gigabytes.
func fromYAML(r *run, text string) (any, error) {
	if err := document(r, text, "{[:,-\n&*"); err != nil {
		return nil, err
	}
	var n yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(text), &n); err != nil {
		return nil, &failure{"the value is not YAML"}
	}
	m := meter{left: maxValue}
	m.node(&n, 0)
	if m.deep || m.left < 0 {
		return nil, &failure{"the document is too large or too deep once its aliases are followed"}
	}
	if err := r.budget.spend((maxValue-m.left)/16, 8*(maxValue-m.left)); err != nil {
		return nil, err
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, &failure{"the value is not YAML"}
	}
	return v, nil
}

// node measures a YAML node with its aliases resolved.
func (m *meter) node(n *yamlv3.Node, depth int) {
	if depth > maxDepth {
		m.deep = true
		m.left = -1
	}
	if m.left < 0 || n == nil {
		return
	}
	m.left -= scalarSize + len(n.Value)
	m.node(n.Alias, depth+1)
	for _, c := range n.Content {
		if m.left < 0 {
			return
		}
		m.node(c, depth+1)
	}
}
