package template

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// yamlValue returns the value of a YAML node as a JSON document has it: keys are strings, and numbers are json.Number.
// The document was measured before, so that its depth has a limit.
func yamlValue(n *yamlv3.Node) (any, error) {
	switch n.Kind {
	case yamlv3.DocumentNode:
		return yamlValue(n.Content[0])
	case yamlv3.AliasNode:
		return yamlValue(n.Alias)
	case yamlv3.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			v, err := yamlValue(c)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case yamlv3.MappingNode:
		return yamlDict(n)
	case yamlv3.ScalarNode:
		return yamlScalar(n)
	}
	return nil, errYAML
}

// yamlDict returns a mapping. Its own keys precede those that it merges (yaml.org/type/merge.html).
func yamlDict(n *yamlv3.Node) (map[string]any, error) {
	dict, merged := make(map[string]any, len(n.Content)/2), []*yamlv3.Node(nil)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		name, err := yamlKey(key)
		if err != nil {
			return nil, err
		}
		if _, twice := dict[name]; twice {
			return nil, duplicateKey(name)
		}
		if dict[name], err = yamlValue(value); err != nil {
			return nil, err
		}
	}
	for _, m := range merged {
		if err := merge(dict, m); err != nil {
			return nil, err
		}
	}
	return dict, nil
}

// merge adds the keys of one mapping, or of a list of mappings, that a dict does not have.
func merge(dict map[string]any, n *yamlv3.Node) error {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	switch n.Kind { //nolint:exhaustive // Nothing else can be merged.
	case yamlv3.SequenceNode:
		for _, c := range n.Content {
			if err := merge(dict, c); err != nil {
				return err
			}
		}
		return nil
	case yamlv3.MappingNode:
		more, err := yamlDict(n)
		for k, v := range more {
			if _, ok := dict[k]; !ok {
				dict[k] = v
			}
		}
		return err
	}
	return errYAML
}

// yamlKey returns a key as it is written.
func yamlKey(n *yamlv3.Node) (string, error) {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if n.Kind != yamlv3.ScalarNode {
		return "", &failure{"the value has a YAML key that is a list or a dict"}
	}
	return n.Value, nil
}

// yes and no are the words of YAML 1.1 for booleans. External Secrets Operator and Kubernetes read them, too.
var yes, no = []string{"y", "yes", "on"}, []string{"n", "no", "off"}

func yamlScalar(n *yamlv3.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!int", "!!float":
		return json.Number(n.Value), nil
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return nil, errYAML
		}
		return string(b), nil
	case "!!str", "!!timestamp", "!!merge":
		word := strings.ToLower(n.Value)
		// These words can be in capitals, or begin with one.
		if plain := n.Style == 0 && len(n.Value) <= 3; plain && (n.Value[min(1, len(n.Value)):] == word[min(1, len(word)):] || n.Value == strings.ToUpper(word)) {
			switch {
			case slices.Contains(yes, word):
				return true, nil
			case slices.Contains(no, word):
				return false, nil
			}
		}
		return n.Value, nil
	}
	return nil, &failure{"the value has a YAML tag that is not supported"}
}
