// Package splice edits a YAML document by the least change of its text: what stays as it is keeps its bytes. The result is parsed
// again, and is an error unless it has the data that is wanted and all comments.
package splice

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document returns the text of a document with the data of a mapping or a list, which has neither aliases nor merge keys. Of the comments
// of the data those are in the result that are in a part of the text which is replaced. It is an error if one that
// is pinned is in such a part; nil pins none.
func Document(text []byte, want *yaml.Node, pinned func(comment string) bool) ([]byte, error) {
	var all []error
	for _, inline := range []bool{false, true} {
		result, err := splice(text, want, inline, pinned)
		if err == nil {
			return result, nil
		}
		if all = append(all, err); !bytes.Contains(text, []byte("*")) {
			break
		}
	}
	return nil, all[0]
}

// splice edits a document once. If inline, values take the place of all aliases that are in what changes.
func splice(text []byte, want *yaml.Node, inline bool, pinned func(string) bool) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	e := newEditor(text, inline)
	e.pinned = pinned
	if err := e.edit(root, want); err != nil {
		return nil, err
	}
	result, err := e.apply()
	if err != nil {
		return nil, err
	}
	return result, verify(text, result, want)
}

// edit finds the changes.
func (e *editor) edit(root, want *yaml.Node) error {
	e.measure(root)
	if err := e.value(place{}, root, want); err != nil {
		return err
	}
	return e.aliases()
}

// parse returns the root of a document, with its aliases.
func parse(text []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))).Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(root.Content) != 1 || (root.Content[0].Kind != yaml.MappingNode && root.Content[0].Kind != yaml.SequenceNode) {
		return nil, errors.New("the document is neither a mapping nor a list")
	}
	return root.Content[0], nil
}

// verify compares the data of a result, and its comments with those of the original.
func verify(was, result []byte, want *yaml.Node) error {
	root, err := parse(result)
	if err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}
	if !equal(resolve(root), want) {
		return errors.New("the result would not be equal to the conversion")
	}
	before, err := parse(was)
	if err != nil {
		return err
	}
	missing, err := newEditor(was, false).commentsOf(before)
	if err != nil {
		return err
	}
	there, err := newEditor(result, false).commentsOf(root)
	if err != nil {
		return err
	}
	for c, n := range missing {
		if there[c] != n {
			return fmt.Errorf("the comment %q would be there %d times, and not %d", c, there[c], n)
		}
	}
	return nil
}

// resolve returns a node with what its aliases and merge keys stand for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return resolve(n.Alias)
	}
	c := *n
	c.Content, c.Anchor = nil, ""
	if n.Kind != yaml.MappingNode {
		for _, of := range n.Content {
			c.Content = append(c.Content, resolve(of))
		}
		return &c
	}
	for _, p := range entries(n) {
		c.Content = append(c.Content, p.key, resolve(p.value))
	}
	return &c
}

// entry is a key of a mapping with its value. merged says that a merge key has it.
type entry struct {
	key, value *yaml.Node
	merged     bool
}

// entries returns what a mapping has, and behind it what its merge keys add.
func entries(n *yaml.Node) []entry {
	var own, merged []entry
	has := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag != "!!merge" {
			has[key.Value] = true
			own = append(own, entry{key: key, value: value})
			continue
		}
		for _, from := range mergedBy(value) {
			merged = append(merged, entries(from)...)
		}
	}
	for _, m := range merged {
		if !has[m.key.Value] {
			has[m.key.Value] = true
			own = append(own, entry{m.key, m.value, true})
		}
	}
	return own
}

// mergedBy returns the mappings of a merge key.
func mergedBy(value *yaml.Node) []*yaml.Node {
	from := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		from = value.Content
	}
	var all []*yaml.Node
	for _, n := range from {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		all = append(all, n)
	}
	return all
}

// equal reports whether two nodes without aliases have the same data. The order of keys does not matter.
func equal(a, b *yaml.Node) bool {
	switch {
	case a.Kind != b.Kind || len(a.Content) != len(b.Content):
		return false
	case a.Kind == yaml.ScalarNode:
		return a.ShortTag() == b.ShortTag() && a.Value == b.Value
	case a.Kind == yaml.MappingNode:
		values := map[string]*yaml.Node{}
		for i := 0; i+1 < len(b.Content); i += 2 {
			values[b.Content[i].Value] = b.Content[i+1]
		}
		for i := 0; i+1 < len(a.Content); i += 2 {
			if v := values[a.Content[i].Value]; v == nil || !equal(a.Content[i+1], v) {
				return false
			}
		}
		return true
	}
	for i := range a.Content {
		if !equal(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// apply returns the text with all changes.
func (e *editor) apply() ([]byte, error) {
	if err := e.keepComments(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(e.changes, func(a, b *change) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(min(1, a.to-a.from), min(1, b.to-b.from)))
	})
	var b bytes.Buffer
	at := 0
	for _, c := range e.changes {
		if c.from < at {
			return nil, errors.New("two changes are at one place")
		}
		b.Write(e.text[at:c.from])
		b.WriteString(strings.ReplaceAll(c.text, "\n", e.newline))
		at = c.to
	}
	b.Write(e.text[at:])
	return b.Bytes(), nil
}
