package render

import (
	"bytes"
	"fmt"
	"io"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// keysAndValues renders a template whose output is a YAML mapping from keys to scalars.
func (s *shaping) keysAndValues(name string, f v1alpha1.TemplateFrom, text string) error {
	out, err := s.execute(name, text)
	if err != nil {
		return err
	}
	if s.yaml += len(out)/16 + elements(out); s.yaml > maxYAML {
		return failed("%s: the YAML output of the templates of this Secret has too many elements; output fewer keys, or use a separate template for each large value", name)
	}
	var doc yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(out))
	switch err := documents.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // The document is empty, or has only comments.
	case err != nil:
		return failed("%s: the output is not YAML", name)
	case !errors.Is(documents.Decode(&yaml.Node{}), io.EOF):
		return failed("%s: the output is not a single YAML document", name)
	}
	m := doc.Content[0]
	if m.Kind != yaml.MappingNode {
		return failed("%s: the output is not a YAML mapping of keys to values", name)
	}
	lines := make(map[string]int, len(m.Content)/2)
	for i := 0; i+1 < len(m.Content); i += 2 {
		k, v := m.Content[i], m.Content[i+1]
		if k.Kind != yaml.ScalarNode || v.Kind != yaml.ScalarNode {
			return failed("%s: line %d of the output: a key or value is not a string; write a structured or multi-line value as a block with |", name, k.Line)
		}
		if line, twice := lines[k.Value]; twice {
			return failed("%s: line %d of the output: the key is already in line %d; output each key once", name, k.Line, line)
		}
		lines[k.Value] = k.Line
		if err := s.decoded(fmt.Sprintf("%s: line %d of the output", name, k.Line), f, k.Value, []byte(v.Value)); err != nil {
			return err
		}
	}
	return nil
}

// decoded decodes a value, and stores it in its target.
func (s *shaping) decoded(name string, f v1alpha1.TemplateFrom, key string, value []byte) error {
	v, err := Decode(value, f.ValuesDecodingStrategy)
	if s.placeholders {
		v, err = value, nil
	}
	if err != nil {
		return failed("%s: the value is not %s, as valuesDecodingStrategy requires; correct the template or the strategy", name, f.ValuesDecodingStrategy)
	}
	return s.put(name, f.Target, key, v)
}

// elements returns an upper bound of the number of elements of a YAML document.
func elements(text []byte) int {
	n := 0
	for _, c := range "\n:,[{-?&*!#" {
		n += bytes.Count(text, []byte(string(c)))
	}
	return n
}
