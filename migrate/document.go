// Package migrate converts manifests of External Secrets Operator into those of direct-secrets, and reports on each field.
package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/migrate/internal/actions"
)

// A Source is a stream of YAML documents.
type Source struct {
	// Name is that of the file; it is in the report.
	Name string
	// Content is YAML or JSON.
	Content []byte
	// Chart is the folder of the chart whose template it is; empty if it is none.
	Chart string
}

// document is one document of a Source, or one item of a List.
type document struct {
	source string
	// line is that of its first line in the source, from 1, and at its offset.
	line, at int
	// raw is the text without the separator; nil for an item.
	raw []byte
	// node is the root mapping; nil if the document is empty or is no mapping.
	node *yaml.Node
	// comments are the root's, which the mapping does not hold.
	head, foot string
	// items are those of a List that holds objects of External Secrets Operator.
	items []*document
	// err says why the document cannot be read.
	err error
	// original is the root before the conversion, which changes it; nil if it is no object of a tool.
	original *yaml.Node
	// object is that of External Secrets Operator; nil for others.
	object *object
	// namespace is the one that kustomizations give the objects; empty if none does, or several give different ones.
	namespace         string
	severalNamespaces bool
	// replaced is what takes the place of a patch or a kustomization; nil if nothing does.
	replaced *yaml.Node
	// own says that the document is converted, and not only looked up.
	own bool
	// hidden are the actions of a template.
	hidden *actions.Hidden
}

// flat returns the document, or the items of a List.
func (d *document) flat() []*document {
	if d.items != nil {
		return d.items
	}
	return []*document{d}
}

// isJSON reports whether a document is written as JSON.
func (d *document) isJSON() bool { return json.Valid(d.raw) }

// separator matches the line between two documents. Content of a document cannot hold it: it starts a line. The next
// document begins behind it, on the same line.
var separator = regexp.MustCompile(`(?m)^(?:---(?:[ \t]+|\r?$\n?)|\.\.\.[ \t]*\r?$\n?)`)

// directives matches what may precede the first separator.
var directives = regexp.MustCompile(`^(?:(?:%[^\n]*|#[^\n]*|[ \t\r]*)(?:\n|$))*$`)

// split returns the documents of a source in their order, and its text, in which words stand for the actions of a template.
func split(s Source) ([]*document, []byte) {
	if s.Chart == "" {
		return splitText(s, nil), s.Content
	}
	text, hidden, err := actions.Hide(s.Chart, s.Content)
	if err != nil {
		d := &document{source: s.Name, line: 1, raw: s.Content}
		d.fail(err.Error())
		return []*document{d}, s.Content
	}
	s.Content = text
	return splitText(s, hidden), text
}

// splitText returns the documents of a text.
func splitText(s Source, hidden *actions.Hidden) []*document {
	var all []*document
	line, rest := 1, s.Content
	for {
		at := separator.FindIndex(rest)
		raw := rest
		if at != nil {
			raw = rest[:at[0]]
		}
		if len(bytes.TrimSpace(raw)) > 0 {
			d := parse(s.Name, line, raw)
			d.at = len(s.Content) - len(rest)
			for _, one := range append(d.flat(), d) {
				one.hidden = hidden
			}
			all = append(all, d)
		}
		if at == nil {
			return all
		}
		line += bytes.Count(rest[:at[1]], []byte("\n"))
		rest = rest[at[1]:]
	}
}

// fail records why a document cannot be read, if it can be one that is converted. Many templates of Helm are not YAML, or not
// that of an object.
func (d *document) fail(reason string) {
	if !knownGroup.Match(d.raw) {
		return
	}
	if bytes.Contains(d.raw, []byte("{{")) || actions.Is(string(d.raw)) {
		reason = "cannot read a template; render the chart first, as with helm template: " + reason
	}
	d.err = errors.New(reason)
}

// knownGroup matches the group of an object that is converted.
var knownGroup = func() *regexp.Regexp {
	var all []string
	for group := range tools {
		all = append(all, regexp.QuoteMeta(group))
	}
	return regexp.MustCompile(`apiVersion["']?\s*:\s*["']?(?:` + strings.Join(all, "|") + `)/`)
}()

// parse reads one document.
func parse(source string, line int, raw []byte) *document {
	d := &document{source: source, line: line, raw: raw}
	if directives.Match(raw) {
		return d // Comments only, or directives.
	}
	root, err := readOne(raw)
	if err != nil {
		d.fail("cannot read the YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
		return d
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return d // Something of another tool.
	}
	d.node, d.head, d.foot = root.Content[0], root.HeadComment, root.FootComment
	if err := new(expansion).expand(d.node, 0); err != nil {
		if kind, version := text(d.node, "kind"), text(d.node, "apiVersion"); !Knows(groupOf(version)) && version != "" && kind != "" && !strings.HasSuffix(kind, "List") {
			d.node = nil // Another tool reads it.
			return d
		}
		d.node = nil
		d.fail(err.Error())
		return d
	}
	items := child(d.node, "items")
	if !strings.HasSuffix(text(d.node, "kind"), "List") || items == nil || items.Kind != yaml.SequenceNode {
		return d
	}
	for _, item := range items.Content {
		one := &document{source: source, line: line + item.Line - 1}
		if item.Kind == yaml.MappingNode {
			one.node = item
		}
		d.items = append(d.items, one)
	}
	return d
}

// readOne reads one document, and fails if there is another: YAML knows line breaks that separator does not match.
func readOne(raw []byte) (yaml.Node, error) {
	var root, next yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))))
	if err := d.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return root, err
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return root, errors.New("another document begins in it; begin it with a line --- of its own")
	}
	return root, nil
}

// The limits of a document after its aliases are expanded.
const (
	deepest  = 100
	mostNode = 200_000
)

// expansion counts the nodes of a document.
type expansion struct{ nodes int }

// expand replaces aliases and merge keys by what they stand for, and refuses keys that occur twice.
func (e *expansion) expand(n *yaml.Node, depth int) error {
	if e.nodes++; depth > deepest || e.nodes > mostNode {
		return fmt.Errorf("line %d: the document is nested too deeply, or its aliases yield too much", n.Line)
	}
	n.Anchor = ""
	for i, c := range n.Content {
		if c.Kind == yaml.AliasNode {
			c = e.copied(c.Alias, depth)
			c.HeadComment, c.LineComment, c.FootComment = n.Content[i].HeadComment, n.Content[i].LineComment, n.Content[i].FootComment
			n.Content[i] = c
		}
		if err := e.expand(c, depth+1); err != nil {
			return err
		}
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	merged, err := merge(n)
	if err != nil {
		return err
	}
	n.Content = merged
	return nil
}

// copied copies a node, so that what an alias stands for can be changed by itself. Once there are too many nodes,
// it stops, and expand fails.
func (e *expansion) copied(n *yaml.Node, depth int) *yaml.Node {
	c := *n
	c.Content = nil
	if e.nodes++; depth > deepest || e.nodes > mostNode {
		return &c
	}
	for _, of := range n.Content {
		c.Content = append(c.Content, e.copied(of, depth+1))
	}
	return &c
}

// merge returns the keys and values of a mapping with those of its merge keys; its own keys take precedence.
func merge(n *yaml.Node) ([]*yaml.Node, error) {
	seen := map[string]bool{}
	var own, others []*yaml.Node
	for key, value := range pairs(n) {
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key is not a string", key.Line)
		}
		if key.Tag == "!!merge" {
			from := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				from = value.Content
			}
			for _, f := range from {
				if f.Kind != yaml.MappingNode {
					return nil, fmt.Errorf("line %d: a merge key has no mapping", key.Line)
				}
				others = append(others, f.Content...)
			}
			continue
		}
		if seen[key.Value] {
			return nil, fmt.Errorf("line %d: the key %s occurs twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		own = append(own, key, value)
	}
	for i := 0; i+1 < len(others); i += 2 {
		if !seen[others[i].Value] {
			seen[others[i].Value] = true
			own = append(own, others[i], others[i+1])
		}
	}
	return own, nil
}

// pairs returns the keys and values of a mapping; nothing for any other node, or nil.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// stringsOf returns the text of each value of a mapping by its key.
func stringsOf(n *yaml.Node) map[string]string {
	all := map[string]string{}
	for key, value := range pairs(n) {
		all[key.Value] = value.Value
	}
	return all
}

// cut takes a key out of a mapping, and returns the key and its value; nothing if there is no such key.
func cut(n *yaml.Node, name string) []*yaml.Node {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if pair := slices.Clone(n.Content[i : i+2]); pair[0].Value == name {
			n.Content = slices.Delete(n.Content, i, i+2)
			return pair
		}
	}
	return nil
}

// child returns the value of a key, or the element at an index; nil if it is absent or null.
func child(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		var found *yaml.Node
		switch {
		case n == nil:
		case n.Kind == yaml.MappingNode:
			for k, value := range pairs(n) {
				if k.Value == key {
					found = value
				}
			}
		case n.Kind == yaml.SequenceNode:
			if i, list := indexOf(key); list && i >= 0 && i < len(n.Content) {
				found = n.Content[i]
			}
		}
		n = found
	}
	if isNull(n) {
		return nil
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// text returns the scalar at a path; "" if there is none.
func text(n *yaml.Node, path ...string) string {
	if c := child(n, path...); c != nil && c.Kind == yaml.ScalarNode {
		return c.Value
	}
	return ""
}
