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
		all, changed, err := d.render()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", d.line, err)
		}
		converted = converted || changed
		for _, part := range all {
			if changed && bytes.Contains(was, []byte("\r\n")) {
				part = bytes.ReplaceAll(part, []byte("\n"), []byte("\r\n"))
			}
			if !bytes.HasSuffix(part, []byte("\n")) {
				part = append(bytes.Clone(part), '\n')
			}
			parts = append(parts, part)
		}
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

// render returns the texts that take the place of a document.
func (d *document) render() (parts [][]byte, changed bool, err error) {
	roots, changed := d.result()
	switch {
	case !changed:
		return [][]byte{d.raw}, false, nil
	case len(roots) == 0:
		return nil, true, nil
	case d.isJSON():
		root := roots[0]
		if len(roots) > 1 {
			text := func(v string) *yaml.Node { return scalarNode(v, &yaml.Node{}) }
			root = mapping("apiVersion", text("v1"), "kind", text("List"), "items", &yaml.Node{Kind: yaml.SequenceNode, Content: roots})
		}
		var b bytes.Buffer
		err := encodeJSON(&b, root, "")
		return [][]byte{append(b.Bytes(), '\n')}, true, err
	}
	last := len(roots) - 1
	for i, root := range roots {
		head, foot := "", []string{}
		if i == 0 {
			head = d.head
		}
		if i == last {
			foot = nonEmpty(d.foot)
			if d.object != nil {
				foot = append(foot, nonEmpty(d.object.out.rest())...)
			}
		}
		part, err := encode(root, head, strings.Join(foot, "\n"))
		if err != nil {
			return nil, true, err
		}
		parts = append(parts, part)
	}
	return parts, true, nil
}

// result returns what takes the place of the root of a document: of a List, another List.
func (d *document) result() (roots []*yaml.Node, changed bool) {
	if d.items == nil {
		o := d.object
		if o == nil || o.verdict() == Unsupported {
			return []*yaml.Node{d.node}, false
		}
		roots := o.roots()
		if len(roots) > 0 {
			first, last := roots[0], roots[len(roots)-1]
			first.HeadComment = strings.Join(append(nonEmpty(d.node.HeadComment), nonEmpty(first.HeadComment)...), "\n")
			first.LineComment, last.FootComment = d.node.LineComment, d.node.FootComment
		}
		return roots, true
	}
	items := *child(d.node, "items")
	was := items.Content
	items.Content = nil
	for i, item := range d.items {
		all, converted := item.result()
		changed = changed || converted
		switch {
		case !converted:
			items.Content = append(items.Content, was[i])
		case len(all) > 0:
			last := all[len(all)-1]
			last.FootComment = strings.Join(append(nonEmpty(last.FootComment), nonEmpty(item.object.out.rest())...), "\n")
			items.Content = append(items.Content, all...)
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
	return []*yaml.Node{&list}, changed
}
