// Package manifest decodes YAML that users write. Its errors name fields.
package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	yamlnodes "go.yaml.in/yaml/v3"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// ErrSyntax is the error of Decode for a text that is not YAML with unique keys. The error of the parser can contain values.
var ErrSyntax = errors.New("is not valid YAML with unique keys")

// Decode decodes a document strictly. Its error names the field, and shows no value but a word that YAML takes for a boolean.
func Decode(doc []byte, into any) error {
	if err := CheckWords(doc); err != nil {
		return err
	}
	// With a type, the package would write a boolean into a field of text.
	raw, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		return ErrSyntax
	}
	faults, err := strictjson.UnmarshalStrict(raw, into)
	if err == nil && len(faults) > 0 {
		err = faults[0]
	}
	if err != nil {
		path, fault := provider.JSONFault(err)
		return errors.New(strings.TrimPrefix(path+": "+fault, ": "))
	}
	return nil
}

// words are those that YAML 1.1, and so the API server, reads as booleans, and other versions as text. true and false are
// booleans in each.
var words = []string{"y", "n", "yes", "no", "on", "off"}

// CheckWords refuses the words as keys and values, because text that becomes true or false is lost.
func CheckWords(doc []byte) error {
	var root yamlnodes.Node
	if err := yamlnodes.Unmarshal(doc, &root); err != nil {
		return nil //nolint:nilerr // The decoder that follows has its own error.
	}
	return checkNode(&root, "")
}

func checkNode(n *yamlnodes.Node, path string) error {
	for i, c := range n.Content {
		at := path
		if n.Kind == yamlnodes.SequenceNode {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if n.Kind == yamlnodes.MappingNode {
			at = strings.TrimPrefix(path+"."+n.Content[i&^1].Value, ".")
		}
		if c.Kind == yamlnodes.ScalarNode && c.Style&^yamlnodes.FlowStyle == 0 && slices.Contains(words, strings.ToLower(c.Value)) {
			return fmt.Errorf("line %d: %s: YAML 1.1 reads %s without quotes as true or false; write %[3]q for the text, or true or false", c.Line, at, c.Value)
		}
		if err := checkNode(c, at); err != nil {
			return err
		}
	}
	return nil
}
