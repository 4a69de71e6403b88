package splice

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// removeLines removes an entry of a mapping, or an item of a list, with its lines. It begins with the first of the nodes.
func (e *editor) removeLines(nodes ...*yaml.Node) error {
	from, err := e.start(nodes[0])
	if err != nil {
		return err
	}
	to, err := e.end(nodes[len(nodes)-1])
	if err != nil {
		return err
	}
	line := e.lineStart(from)
	if strings.Trim(string(e.text[line:from]), " -") != "" {
		return fmt.Errorf("line %d: it does not begin its line", nodes[0].Line)
	}
	return e.remove(line, e.next(to), nodes[0].Column, nodes...)
}

// remove removes a part of the text with nodes.
func (e *editor) remove(from, to, column int, nodes ...*yaml.Node) error {
	lost, err := e.comments(from, to, nodes...)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		e.forget(n)
	}
	e.changes = append(e.changes, &change{from: from, to: to, lost: lost, column: column})
	return nil
}

// forget records that the text of a node is removed.
func (e *editor) forget(n *yaml.Node) {
	e.removed[n] = true
	for _, c := range n.Content {
		e.forget(c)
	}
}

// insertBefore inserts a mapping in front of what begins at an offset.
func (e *editor) insertBefore(at, column int, n *yaml.Node) {
	if line := e.lineStart(at); len(bytes.TrimSpace(e.text[line:at])) == 0 {
		e.changes = append(e.changes, &change{from: line, to: line, node: n, make: func() (string, error) {
			text, err := e.encode(n, column)
			return indent(column) + text + "\n", err
		}})
		return
	}
	e.changes = append(e.changes, &change{from: at, to: at, node: n, make: func() (string, error) {
		text, err := e.encode(n, column)
		return text + "\n" + indent(column), err
	}})
}

// insertBehind inserts a mapping or a list with one item behind the lines of a value, which key has.
func (e *editor) insertBehind(value, key *yaml.Node, column int, n *yaml.Node) error {
	end, err := e.end(value)
	if err != nil {
		return err
	}
	if key != nil { // The value can be empty.
		behind, err := e.end(key)
		if err != nil {
			return err
		}
		end = max(end, behind)
	}
	at := e.next(end)
	c := &change{from: at, to: at, node: n}
	ends := at > 0 && e.text[at-1] == '\n'
	c.make = func() (string, error) {
		text, err := e.encode(n, column)
		if !ends {
			return "\n" + indent(column) + text, err
		}
		return indent(column) + text + "\n", err
	}
	e.changes = append(e.changes, c)
	return nil
}

// indent returns the spaces in front of a column.
func indent(column int) string { return strings.Repeat(" ", max(0, column-1)) }

// removeItem removes an item of a list, with its lines.
func (e *editor) removeItem(list *yaml.Node, i int) error {
	item := list.Content[i]
	at, err := e.start(item)
	if err != nil {
		return err
	}
	to, err := e.end(item)
	if err != nil {
		return err
	}
	for line := e.lineStart(at); ; line = e.lineStart(line - 1) {
		if dash := line + list.Column - 1; dash < at && e.text[dash] == '-' && strings.TrimSpace(string(e.text[line:dash])) == "" {
			return e.remove(line, e.next(to), list.Column, item)
		}
		if line == e.lines[0] {
			return fmt.Errorf("line %d: an item does not begin its line", item.Line)
		}
	}
}

// replace replaces an entry of a mapping, or an item of a list, as a whole.
func (e *editor) replace(p place, was, want *yaml.Node) error {
	if p.parent == nil {
		return errors.New("nothing of the document stays")
	}
	if isFlow(p.parent) {
		return e.rewrite(was, want)
	}
	first, column := was, was.Column
	copied := *want
	node := &copied
	if p.parent.Kind == yaml.MappingNode {
		key := p.parent.Content[2*p.index]
		name := *key
		name.HeadComment, name.LineComment, name.FootComment, name.Anchor = "", "", "", ""
		first, column = key, key.Column
		node = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{&name, want}}
	}
	from, err := e.start(first)
	if err != nil {
		return err
	}
	to, err := e.end(was)
	if err != nil {
		return err
	}
	if first != was {
		behind, err := e.end(first)
		if err != nil {
			return err
		}
		to = max(to, behind+len(":"))
	}
	if err := e.remove(from, to, column, first, was); err != nil {
		return err
	}
	c := e.changes[len(e.changes)-1]
	c.node, c.make = node, func() (string, error) { return e.encode(node, column) }
	return nil
}

// literal replaces the lines of a block, and reports whether the block can hold the text.
func (e *editor) literal(was, want *yaml.Node) bool {
	at, err := e.content(was)
	if err != nil || was.Value == "" || want.ShortTag() != "!!str" || strings.ContainsAny(string(e.text[at:e.lineEnd(at)]), "123456789+") {
		return false
	}
	body, end := strings.TrimRight(want.Value, "\n"), was.Value[len(strings.TrimRight(was.Value, "\n")):]
	if body == "" || want.Value != body+end || strings.HasPrefix(body, " ") || strings.HasPrefix(was.Value, "\n") || strings.HasPrefix(body, "\n") {
		return false
	}
	from := e.next(at)
	line := e.text[from:e.lineEnd(from)]
	spaces := string(line[:len(line)-len(bytes.TrimLeft(line, " "))])
	lines := strings.Split(body, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = spaces + l
		}
	}
	e.changes = append(e.changes, &change{from: from, to: e.blockEnd(was, at), text: strings.Join(lines, "\n")})
	return true
}

// rewrite replaces a value inside of brackets, or by one in brackets.
func (e *editor) rewrite(was, want *yaml.Node) error {
	from, err := e.content(was)
	if err != nil {
		return err
	}
	to, err := e.end(was)
	if err != nil {
		return err
	}
	text, err := e.inlineText(want, true)
	e.forget(was)
	e.changes = append(e.changes, &change{from: from, to: to, text: text})
	return err
}
