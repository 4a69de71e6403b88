package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	operations "gomodules.xyz/jsonpatch/v2"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// A version is one of an object and of what it becomes, as JSON.
type version struct {
	was, is  []byte
	findings []Finding
}

// probe converts an object as it would be after a change.
func (in *inputs) probe(o *object, was []byte) (*version, error) {
	root, err := readOne(was)
	if err != nil || len(root.Content) == 0 {
		return nil, errors.Join(errors.New("the patched object cannot be read"), err)
	}
	d := &document{source: o.File, line: o.Line, node: root.Content[0], severalNamespaces: o.severalNamespaces}
	one := &object{Name: o.Name, document: d, inputs: in, from: o.from, out: newTree()}
	one.APIVersion = text(d.node, "apiVersion")
	in.convert(one)
	switch {
	case one.verdict() == Unsupported:
		for _, f := range one.findings {
			if f.Verdict == Unsupported {
				return nil, errors.New(prefixed(f.Field, ": ") + f.Reason)
			}
		}
	case len(one.before) > 0 || one.omitted:
		return nil, errors.New("the object becomes several")
	}
	var b bytes.Buffer
	err = encodeJSON(&b, one.out.root, "")
	return &version{was, b.Bytes(), one.findings}, err
}

// original returns an object as it is in the input, as JSON.
func (o *object) original() ([]byte, error) {
	if o.raw == nil {
		return nil, errors.New("it is in a List")
	}
	return jsonOf(o.raw)
}

// errManual says that a patch is to be changed by hand.
var errManual = errors.New("it is not certain what it becomes")

// mergePatch returns what a patch of an object becomes that has the fields which change.
func (in *inputs) mergePatch(o *object, patch *yaml.Node) (*yaml.Node, error) {
	for key := range pairs(patch) {
		if strings.HasPrefix(key.Value, "$") {
			return in.identity(o, patch)
		}
	}
	before, after, err := in.patched(o, func(was []byte) ([]byte, error) {
		var b bytes.Buffer
		if err := encodeJSON(&b, patch, ""); err != nil {
			return nil, err
		}
		return jsonpatch.MergePatch(was, b.Bytes())
	})
	if err != nil {
		return nil, err
	}
	result := newTree()
	for _, leaf := range leaves(patch, nil) {
		to, err := becameAt(leaf, before, after)
		if err != nil {
			return nil, err
		}
		for _, path := range to {
			value := valueAt(after.is, path)
			if value == nil {
				value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
			}
			result.put(path, nil, value)
		}
	}
	raw, err := jsonpatch.CreateMergePatch(before.is, after.is) // Labels that are copied, for example.
	if err != nil {
		return nil, err
	}
	rest, err := readOne(raw)
	if err != nil {
		return nil, err
	}
	mergeInto(result.root, unstyled(rest.Content[0]))
	var b bytes.Buffer
	if err := encodeJSON(&b, result.root, ""); err != nil {
		return nil, err
	}
	if now, err := jsonpatch.MergePatch(before.is, b.Bytes()); err != nil || !jsonpatch.Equal(now, after.is) {
		return nil, errManual
	}
	return result.root, withName(result.root, patch, after.is)
}

// mergeInto adds what a mapping has to another one, behind what that has already.
func mergeInto(to, from *yaml.Node) {
	for key, value := range pairs(from) {
		var is *yaml.Node
		for k, v := range pairs(to) {
			if k.Value == key.Value {
				is = v
			}
		}
		switch {
		case is == nil:
			to.Content = append(to.Content, key, value)
		case value.Kind == yaml.MappingNode && is.Kind == yaml.MappingNode:
			mergeInto(is, value)
		default:
			*is = *value
		}
	}
}

// withName gives a patch the API version, the Kind and the name of its object.
func withName(root, patch *yaml.Node, is []byte) error {
	t := &tree{root: root, lists: map[string]*yaml.Node{}}
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		value := child(patch, path...)
		if len(path) == 1 {
			value = valueAt(is, path)
		}
		if value != nil {
			t.put(path, nil, value)
		}
	}
	return nil
}

// identity returns a patch for the object that another one becomes, in which nothing else changes.
func (in *inputs) identity(o *object, patch *yaml.Node) (*yaml.Node, error) {
	before, _, err := in.patched(o, func(was []byte) ([]byte, error) { return was, nil })
	if err != nil {
		return nil, err
	}
	for key, value := range pairs(patch) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, key.Value) && (key.Value != "$patch" || value.Value != "delete") {
			return nil, errManual
		}
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Content: slices.Clone(patch.Content)}
	return root, withName(root, patch, before.is)
}

// patched converts an object before and after a change.
func (in *inputs) patched(o *object, change func([]byte) ([]byte, error)) (before, after *version, err error) {
	was, err := o.original()
	if err != nil {
		return nil, nil, err
	}
	if before, err = in.probe(o, was); err != nil {
		return nil, nil, err
	}
	now, err := change(was)
	if err != nil {
		return nil, nil, fmt.Errorf("the patch does not apply: %w", err)
	}
	if after, err = in.probe(o, now); err != nil {
		return nil, nil, err
	}
	return before, after, sameKind(before, after)
}

// sameKind returns an error if a patch makes an object of another Kind of it, which others refer to.
func sameKind(before, after *version) error {
	was, is := valueAt(before.is, []string{"kind"}), valueAt(after.is, []string{"kind"})
	if was == nil || is == nil || was.Value != is.Value {
		return errors.New("the patch makes another Kind of it")
	}
	return nil
}

// leaves returns the paths of the values of a patch. A list is one value.
func leaves(n *yaml.Node, path []string) [][]string {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return [][]string{path}
	}
	var all [][]string
	for key, value := range pairs(n) {
		if at := append(slices.Clone(path), key.Value); !slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}, strings.Join(at, ".")) {
			all = append(all, leaves(value, at)...)
		}
	}
	return all
}

// becameAt returns the paths of the fields that a field became, without indexes; nothing if it has no effect.
func becameAt(path []string, before, after *version) ([][]string, error) {
	findings := after.findings
	if valueAt(after.was, path) == nil {
		findings = before.findings // It is removed.
	}
	field := (&field{path: path}).String()
	var all [][]string
	known := false
	for _, f := range findings {
		switch {
		case f.Field == "" || f.To == "" && f.Field != field:
		case f.Field == field, strings.HasPrefix(f.Field, field+"."), strings.HasPrefix(f.Field, field+"["):
			known = true
			if f.To != "" {
				list, _, _ := strings.Cut(f.To, "[")
				all = append(all, segments(list, path))
			}
		case strings.HasPrefix(field, f.Field+"."):
			known = true
			all = append(all, segments(f.To, path[:strings.Count(f.Field, ".")+1]))
		}
	}
	if !known {
		return nil, fmt.Errorf("%s: %w", field, errManual)
	}
	return all, nil
}

// segments returns the parts of a path in a report. like is a path with parts that can have dots.
func segments(path string, like []string) []string {
	if path == (&field{path: like}).String() {
		return like
	}
	var all []string
	for part := range strings.SplitSeq(path, ".") {
		name, rest, list := strings.Cut(part, "[")
		all = append(all, name)
		for list {
			var digits string
			digits, rest, list = strings.Cut(rest, "[")
			if i, err := strconv.Atoi(strings.TrimSuffix(digits, "]")); err == nil {
				all = append(all, index(i))
			}
		}
	}
	return all
}

// valueAt returns the value at a path of an object; nil if there is none.
func valueAt(object []byte, path []string) *yaml.Node {
	root, err := readOne(object)
	if err != nil || len(root.Content) == 0 {
		return nil
	}
	return unstyled(child(root.Content[0], path...))
}

// unstyled removes the styles that a node has in JSON.
func unstyled(n *yaml.Node) *yaml.Node {
	if n != nil {
		n.Style = 0
		for _, c := range n.Content {
			unstyled(c)
		}
	}
	return n
}

// operation is one of RFC 6902.
type operation struct{ op, path string }

// patchOperations returns what the operations of a patch become; those that follow from them are at the end.
func (in *inputs) patchOperations(o *object, list *yaml.Node) (*yaml.Node, error) {
	was, err := o.original()
	if err != nil {
		return nil, err
	}
	states := [][]byte{was} // In front of each operation, and at the end.
	for i, n := range list.Content {
		if n.Kind != yaml.MappingNode || !slices.Contains([]string{"add", "replace", "remove"}, text(n, "op")) {
			return nil, fmt.Errorf("operation %d: %w", i+1, errManual)
		}
		if was, err = applyOperations(was, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}}); err != nil {
			return nil, fmt.Errorf("operation %d does not apply: %w", i+1, err)
		}
		states = append(states, was)
	}
	before, err := in.probe(o, states[0])
	if err != nil {
		return nil, err
	}
	after, err := in.probe(o, was)
	if err != nil {
		return nil, err
	}
	if err := sameKind(before, after); err != nil {
		return nil, err
	}
	result := &yaml.Node{Kind: yaml.SequenceNode}
	for i, n := range list.Content {
		one, err := moved(operation{text(n, "op"), text(n, "path")}, n, pointer(text(n, "path"), states[i]), before, after)
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
		if one != nil {
			result.Content = append(result.Content, one)
		}
	}
	now, err := applyOperations(before.is, result)
	if err != nil {
		return nil, errManual
	}
	return result, appendRest(result, now, after.is)
}

// applyOperations applies the operations of a patch to an object.
func applyOperations(object []byte, list *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	if err := encodeJSON(&b, list, ""); err != nil {
		return nil, err
	}
	p, err := jsonpatch.DecodePatch(b.Bytes())
	if err != nil {
		return nil, err
	}
	return p.Apply(object)
}

// moved returns what an operation on a path becomes; nil if it has no effect.
func moved(op operation, n *yaml.Node, path []string, before, after *version) (*yaml.Node, error) {
	if len(path) == 0 {
		return nil, errManual
	}
	findings := slices.Concat(after.findings, before.findings)
	for k := len(path); k > 0; k-- {
		field := anyIndex((&field{path: path[:k]}).String())
		for _, f := range findings {
			if anyIndex(f.Field) != field {
				continue
			}
			if f.To == "" {
				return nil, nil
			}
			to, lists := segments(f.To, path[:k]), slices.DeleteFunc(slices.Clone(path[:k]), func(p string) bool { _, list := indexOf(p); return !list })
			for i, p := range to {
				if _, list := indexOf(p); list && len(lists) > 0 {
					to[i], lists = lists[0], lists[1:]
				}
			}
			return renamed(op, n, path, slices.Concat(to, path[k:]), after)
		}
	}
	field := anyIndex((&field{path: path}).String())
	if slices.ContainsFunc(findings, func(f Finding) bool {
		return (strings.HasPrefix(f.Field, field+".") || strings.HasPrefix(anyIndex(f.Field), field+".*")) && f.To != "" && !strings.HasPrefix(anyIndex(f.To), field)
	}) {
		return nil, errManual // Parts of it move to different places.
	}
	return renamed(op, n, path, path, after)
}

// anyIndex returns the path of a field with * for each index.
func anyIndex(field string) string { return indexPart.ReplaceAllString(field, ".*") }

// renamed returns an operation at another path, with the value that is there at the end.
func renamed(op operation, n *yaml.Node, from, path []string, after *version) (*yaml.Node, error) {
	to := ""
	for i, p := range path {
		if digits, list := indexOf(p); list {
			p = strconv.Itoa(digits)
			if i == len(path)-1 && strings.HasSuffix(op.path, "/-") {
				p = "-"
			}
		}
		to += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
	}
	one := &yaml.Node{Kind: yaml.MappingNode}
	for key, value := range pairs(n) {
		switch key.Value {
		case "path":
			value = scalarNode(to, value)
		case "value":
			was, is := valueAt(after.was, from), valueAt(after.is, path)
			if was != nil && is != nil && sameJSON(was, value) { // Later operations have not moved it.
				value = is
			}
		}
		one.Content = append(one.Content, key, value)
	}
	return one, nil
}

// sameJSON reports whether two nodes have the same data.
func sameJSON(a, b *yaml.Node) bool {
	var one, other bytes.Buffer
	return encodeJSON(&one, a, "") == nil && encodeJSON(&other, b, "") == nil && jsonpatch.Equal(one.Bytes(), other.Bytes())
}

// pointer returns the parts of a JSON pointer into an object.
func pointer(path string, object []byte) []string {
	root, err := readOne(object)
	if err != nil || len(root.Content) == 0 || !strings.HasPrefix(path, "/") {
		return nil
	}
	at := root.Content[0]
	var all []string
	for part := range strings.SplitSeq(path[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if at != nil && at.Kind == yaml.SequenceNode {
			i, err := strconv.Atoi(part)
			if err != nil {
				i = len(at.Content)
			}
			part = index(i)
		}
		all = append(all, part)
		at = child(at, part)
	}
	return all
}

// appendRest appends the operations that make an object another one.
func appendRest(list *yaml.Node, object, want []byte) error {
	rest, err := operations.CreatePatch(object, want)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(rest)
	if err != nil || len(rest) == 0 {
		return err
	}
	root, err := readOne(raw)
	if err != nil {
		return err
	}
	list.Content = append(list.Content, unstyled(root.Content[0]).Content...)
	return nil
}
