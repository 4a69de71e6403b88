package migrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// encode returns a mapping as a document without the separator.
func encode(n *yaml.Node, head, foot string) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{n}, HeadComment: head, FootComment: foot}); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("cannot write YAML: %w", err)
	}
	return b.Bytes(), nil
}

// encodeJSON writes a node as JSON, with its keys in their order.
func encodeJSON(b *bytes.Buffer, n *yaml.Node, indent string) error {
	open, end := "{", "}"
	switch n.Kind {
	case yaml.SequenceNode:
		open, end = "[", "]"
	case yaml.MappingNode:
	default:
		var value any
		if err := n.Decode(&value); err != nil {
			return fmt.Errorf("cannot write JSON: %w", err)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("cannot write JSON: %w", err)
		}
		b.Write(raw)
		return nil
	}
	b.WriteString(open)
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i+step <= len(n.Content); i += step {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent + "  ")
		if step == 2 {
			key, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return fmt.Errorf("cannot write JSON: %w", err)
			}
			b.Write(append(key, ": "...))
		}
		if err := encodeJSON(b, n.Content[i+step-1], indent+"  "); err != nil {
			return err
		}
	}
	if len(n.Content) > 0 {
		b.WriteString("\n" + indent)
	}
	b.WriteString(end)
	return nil
}

// render returns a source with what its objects became.
func render(documents []*document, was []byte) ([]byte, error) {
	converted := false
	var parts [][]byte
	for _, d := range documents {
		part, changed, err := d.render()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", d.line, err)
		}
		converted = converted || changed
		if part == nil {
			continue
		}
		if changed && bytes.Contains(was, []byte("\r\n")) {
			part = bytes.ReplaceAll(part, []byte("\n"), []byte("\r\n"))
		}
		if !bytes.HasSuffix(part, []byte("\n")) {
			part = append(bytes.Clone(part), '\n')
		}
		parts = append(parts, part)
	}
	if !converted {
		return was, nil
	}
	between := []byte("---\n")
	if bytes.Contains(was, []byte("\r\n")) {
		between = []byte("---\r\n")
	}
	return bytes.Join(parts, between), nil
}

// render returns the text that takes the place of a document; nil if none does.
func (d *document) render() (part []byte, changed bool, err error) {
	root, changed := d.result()
	switch {
	case !changed:
		return d.raw, false, nil
	case root == nil:
		return nil, true, nil
	case d.isJSON():
		var b bytes.Buffer
		err := encodeJSON(&b, root, "")
		return append(b.Bytes(), '\n'), true, err
	}
	foot := nonEmpty(d.foot)
	if d.object != nil {
		foot = append(foot, nonEmpty(d.object.out.rest())...)
	}
	part, err = encode(root, d.head, strings.Join(foot, "\n"))
	return part, true, err
}

// result returns what takes the place of the root of a document: of a List, another List. It is nil if nothing does.
func (d *document) result() (root *yaml.Node, changed bool) {
	if d.items == nil {
		o := d.object
		switch {
		case o == nil || o.verdict() == Unsupported:
			return d.node, false
		case o.omitted:
			return nil, true
		}
		o.out.root.HeadComment, o.out.root.LineComment, o.out.root.FootComment = d.node.HeadComment, d.node.LineComment, d.node.FootComment
		return o.out.root, true
	}
	items := *child(d.node, "items")
	was := items.Content
	items.Content = nil
	for i, item := range d.items {
		one, converted := item.result()
		if converted && one != nil {
			one.FootComment = strings.Join(append(nonEmpty(one.FootComment), nonEmpty(item.object.out.rest())...), "\n")
		}
		changed = changed || converted
		switch {
		case one != nil:
			items.Content = append(items.Content, one)
		case !converted:
			items.Content = append(items.Content, was[i])
		}
	}
	list := *d.node
	list.Content = append([]*yaml.Node{}, d.node.Content...)
	for i := 0; i+1 < len(list.Content); i += 2 {
		switch list.Content[i].Value {
		case "items":
			list.Content[i+1] = &items
		case "apiVersion":
			list.Content[i+1] = scalarNode("v1", list.Content[i+1])
		case "kind":
			list.Content[i+1] = scalarNode("List", list.Content[i+1])
		}
	}
	return &list, changed
}
