package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// measure learns how a document is indented.
func (e *editor) measure(n *yaml.Node) {
	known := [2]bool{}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			switch {
			case isFlow(value) || len(value.Content) == 0 || value.Line == key.Line:
			case value.Kind == yaml.MappingNode && !known[0] && value.Column > key.Column:
				known[0], e.step = true, value.Column-key.Column
			case value.Kind == yaml.SequenceNode && !known[1]:
				known[1], e.indented = true, value.Column > key.Column
			}
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(n)
}

// encode returns a mapping or a list as lines of which all but the first are indented.
func (e *editor) encode(n *yaml.Node, column int) (string, error) {
	var b bytes.Buffer
	to := yaml.NewEncoder(&b)
	to.SetIndent(min(9, max(2, e.step)))
	if !e.indented {
		to.CompactSeqIndent()
	}
	if err := errors.Join(to.Encode(n), to.Close()); err != nil {
		return "", fmt.Errorf("cannot write YAML: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, line := range lines {
		if i > 0 && line != "" {
			lines[i] = indent(column) + line
		}
	}
	return strings.Join(lines, "\n"), nil
}

// inlineText returns a node as text without line breaks; flow says that it is inside of brackets.
func (e *editor) inlineText(n *yaml.Node, flow bool) (string, error) {
	if e.json {
		var value any
		if err := n.Decode(&value); err != nil {
			return "", err
		}
		var b bytes.Buffer
		to := json.NewEncoder(&b)
		to.SetEscapeHTML(false)
		err := to.Encode(value)
		return strings.TrimSpace(b.String()), err
	}
	text, err := e.encode(flowing(n, flow), 1)
	return strings.TrimSpace(text), err
}

// flowing returns a node in brackets, without comments. Inside of others, values with characters of brackets are quoted.
func flowing(n *yaml.Node, flow bool) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style & (yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle)}
	if n.Kind != yaml.ScalarNode {
		c.Style = yaml.FlowStyle
	}
	if n.Kind == yaml.ScalarNode && (strings.Contains(n.Value, "\n") || (flow && c.Style == 0 && n.ShortTag() == "!!str" && strings.ContainsAny(n.Value, ",[]{}"))) {
		c.Style = yaml.DoubleQuotedStyle
	}
	for _, of := range n.Content {
		c.Content = append(c.Content, flowing(of, true))
	}
	return c
}

// flow finds the changes of a mapping in brackets: entries that go or are new.
func (e *editor) flow(olds []matched, news []inserted) error {
	starts, ends := make([]int, len(olds)), make([]int, len(olds))
	for i, m := range olds {
		var err error
		if starts[i], err = e.start(m.key); err != nil {
			return err
		}
		if ends[i], err = e.end(m.value); err != nil {
			return err
		}
	}
	first := slices.IndexFunc(olds, func(m matched) bool { return m.name != nil })
	if first > 0 {
		if err := e.remove(starts[0], starts[first], -1, nodesOf(olds[:first])...); err != nil {
			return err
		}
	}
	for i, m := range olds {
		if m.name == nil && i > first {
			if err := e.remove(ends[i-1], ends[i], -1, m.key, m.value); err != nil {
				return err
			}
		}
	}
	for _, n := range news {
		at := first
		if n.behind >= 0 {
			at = n.behind
		}
		key, err := e.inlineText(n.key, true)
		if err != nil {
			return err
		}
		value, err := e.inlineText(n.value, true)
		if err != nil {
			return err
		}
		between := ", "
		if before := e.text[e.lineStart(starts[at]):starts[at]]; len(bytes.TrimSpace(before)) == 0 && len(before) > 0 {
			between = ",\n" + string(before)
		}
		e.changes = append(e.changes, &change{from: ends[at], to: ends[at], text: between + key + ": " + value})
	}
	return nil
}

// keepComments writes the nodes of the changes with the comments that would otherwise be lost, and leaves those that none has on
// lines of their own.
func (e *editor) keepComments() error {
	lost := map[string]int{}
	for _, c := range e.changes {
		for _, comment := range c.lost {
			if e.pinned != nil && e.pinned(comment) {
				return fmt.Errorf("%s is in a part that changes", comment)
			}
			lost[comment]++
		}
	}
	for _, c := range e.changes {
		if c.make == nil {
			continue
		}
		clone := *c.node
		withComments(&clone, lost)
		*c.node = clone
		var err error
		if c.text, err = c.make(); err != nil {
			return err
		}
	}
	for _, c := range e.changes {
		var left string
		for _, comment := range c.lost {
			if lost[comment] == 0 {
				continue
			}
			lost[comment]--
			if c.column < 0 {
				return fmt.Errorf("the comment %q has no place", comment)
			}
			if c.make != nil {
				left += comment + "\n" + indent(c.column)
			} else {
				left += indent(c.column) + comment + "\n"
			}
		}
		c.text = left + c.text
	}
	return nil
}

// withComments replaces a node by a copy that has only comments that are lost.
func withComments(n *yaml.Node, lost map[string]int) {
	keep := func(text string) string {
		var all []string
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.TrimSpace(line); line != "" && lost[line] > 0 {
				lost[line]--
				all = append(all, line)
			}
		}
		return strings.Join(all, "\n")
	}
	n.HeadComment, n.LineComment, n.FootComment = keep(n.HeadComment), keep(n.LineComment), keep(n.FootComment)
	n.Content = slices.Clone(n.Content)
	for i := range n.Content {
		c := *n.Content[i]
		n.Content[i] = &c
		withComments(&c, lost)
	}
}
