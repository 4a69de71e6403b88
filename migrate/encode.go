package migrate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/direct-secrets/direct-secrets/migrate/internal/actions"
	"github.com/direct-secrets/direct-secrets/migrate/internal/splice"
)

// encode returns a mapping as a document without the separator, below a comment.
func encode(n *yaml.Node, head string) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{n}, HeadComment: head}); err != nil {
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

// edited returns a source with what its objects became. Text that does not change keeps its bytes.
// Documents whose text cannot be edited are added to failed.
func edited(documents []*document, was []byte, failed map[position]error) []byte {
	var b bytes.Buffer
	at := 0
	for i, d := range documents {
		text, changed, err := d.edited()
		if err != nil {
			for _, one := range append(d.flat(), d) {
				failed[position{one.source, one.line}] = err
			}
		}
		if err != nil || !changed {
			continue
		}
		from, to := d.at, d.at+len(d.raw)
		switch { // A separator goes with a document.
		case len(text) > 0:
		case i+1 < len(documents):
			to = documents[i+1].at
		case i > 0:
			from = max(at, documents[i-1].at+len(documents[i-1].raw))
		}
		b.Write(was[at:from])
		b.Write(text)
		at = to
	}
	b.Write(was[at:])
	if len(documents) > 0 && documents[0].hidden != nil {
		return []byte(documents[0].hidden.Show(b.String()))
	}
	return b.Bytes()
}

// edited returns the text that takes the place of a document.
func (d *document) edited() (text []byte, changed bool, err error) {
	roots, changed := d.result()
	if !changed || len(roots) == 0 {
		return nil, changed, nil
	}
	if d.isJSON() && (len(roots) > 1 || d.keepsText()) {
		text, err := d.jsonList(roots)
		return text, true, err
	}
	last := len(roots) - 1
	for _, root := range roots[:last] {
		part, err := encode(root, "")
		if err != nil {
			return nil, true, err
		}
		text = append(text, append(part, "---\n"...)...)
	}
	own, err := splice.Document(d.raw, roots[last], actions.IsComment)
	if bytes.Contains(d.raw, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if err == nil && d.hidden != nil && d.object != nil {
		err = d.object.checkBlocks(own)
	}
	if err == nil && d.keepsText() {
		own = d.withKept(own)
	}
	return append(text, own...), true, err
}

// jsonList returns a List of what a document in JSON became.
func (d *document) jsonList(roots []*yaml.Node) ([]byte, error) {
	if d.keepsText() {
		roots = append(roots, d.original)
	}
	list := mapping("apiVersion", plain("v1"), "kind", plain("List"), "items", &yaml.Node{Kind: yaml.SequenceNode, Content: roots})
	var b bytes.Buffer
	err := encodeJSON(&b, list, "")
	return append(b.Bytes(), '\n'), err
}

// unedited reports that the text of an object cannot be edited.
func (o *object) unedited(err error) {
	o.add(Finding{Verdict: Unsupported, Reason: "its text cannot be edited: " + err.Error(), Todo: "convert the object by hand"})
}

// result returns what takes the place of the root of a document: of a List, another List.
func (d *document) result() (roots []*yaml.Node, changed bool) {
	if d.replaced != nil {
		return []*yaml.Node{d.replaced}, true
	}
	if d.items != nil {
		return d.listResult()
	}
	o := d.object
	if o == nil || o.verdict() == Unsupported || (o.isKept() && o.keptBefore) {
		return []*yaml.Node{d.node}, false
	}
	roots = o.roots()
	if len(roots) > 0 {
		first, last := roots[0], roots[len(roots)-1]
		first.HeadComment = strings.Join(append(nonEmpty(d.node.HeadComment), nonEmpty(first.HeadComment)...), "\n")
		first.LineComment, last.FootComment = d.node.LineComment, d.node.FootComment
	}
	return roots, true
}

// listResult returns the List that takes the place of a List.
func (d *document) listResult() (roots []*yaml.Node, changed bool) {
	items := *child(d.node, "items")
	was := items.Content
	items.Content = nil
	for i, item := range d.items {
		all, converted := item.result()
		changed = changed || converted
		switch {
		case !converted:
			items.Content = append(items.Content, cmp.Or(item.original, was[i]))
		case len(all) > 0:
			if item.object == nil {
				items.Content = append(items.Content, all...)
				continue
			}
			last := all[len(all)-1]
			last.FootComment = strings.Join(append(nonEmpty(last.FootComment), nonEmpty(item.object.out.rest())...), "\n")
			items.Content = append(items.Content, all...)
			if item.object.isKept() {
				items.Content = append(items.Content, item.original)
			}
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
