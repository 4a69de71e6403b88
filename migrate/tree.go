package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree is the result while it is built.
type tree struct {
	root *yaml.Node
	// shared names a result that several objects need, and that is written once; empty for others.
	shared string
	// lists has the element of a list for each index of the original.
	lists map[string]*yaml.Node
	// comments wait for the next node, since nothing took the place of theirs, and feet for the end.
	comments []comment
	feet     []string
}

func newTree() *tree {
	return &tree{root: &yaml.Node{Kind: yaml.MappingNode}, lists: map[string]*yaml.Node{}}
}

// comment is one of a node that was so deep in the original.
type comment struct {
	text  string
	depth int
}

// pend keeps the comments of a node that has no place in the result for the next one that has.
func (t *tree) pend(depth int, nodes ...*yaml.Node) {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		for _, c := range []string{n.HeadComment, n.LineComment} {
			if c != "" {
				t.comments = append(t.comments, comment{c, depth})
			}
		}
		t.feet = append(t.feet, nonEmpty(n.FootComment)...)
	}
}

// attach puts the comments that wait above a new key or element at a depth; the last of a path takes all.
func (t *tree) attach(n *yaml.Node, depth int, last bool) {
	var all []string
	t.comments = slices.DeleteFunc(t.comments, func(c comment) bool {
		fits := last || c.depth <= depth
		if fits {
			all = append(all, c.text)
		}
		return fits
	})
	n.HeadComment = strings.Join(append(all, nonEmpty(n.HeadComment)...), "\n")
}

// rest returns the comments that nothing has taken.
func (t *tree) rest() string {
	var all []string
	for _, c := range t.comments {
		all = append(all, c.text)
	}
	return strings.Join(append(all, t.feet...), "\n")
}

// An element of a path that is the index of a list begins with a character that no key has.
const indexMark = "\x00"

func index(i int) string { return indexMark + strconv.Itoa(i) }

// indexOf returns the index that an element of a path is.
func indexOf(p string) (int, bool) {
	digits, found := strings.CutPrefix(p, indexMark)
	i, err := strconv.Atoi(digits)
	return i, found && err == nil
}

// put sets the value at a path and makes what is above it. key may be nil.
func (t *tree) put(path []string, key, value *yaml.Node) {
	at := t.root
	for i, p := range path {
		last := i == len(path)-1
		if _, list := indexOf(p); list {
			at = t.element(at, path[:i+1], last, value)
			continue
		}
		if at.Kind == 0 {
			at.Kind = yaml.MappingNode
		}
		next := child(at, p)
		if next == nil {
			k := &yaml.Node{Kind: yaml.ScalarNode, Value: p}
			if last && key != nil {
				k.HeadComment, k.LineComment, k.FootComment = key.HeadComment, key.LineComment, key.FootComment
			}
			t.attach(k, i+1, last)
			next = &yaml.Node{}
			if last {
				next = value
			}
			at.Content = append(at.Content, k, next)
		} else if last {
			*next = *value
		}
		at = next
	}
}

// element returns the element of a list for an index of the original.
func (t *tree) element(list *yaml.Node, path []string, last bool, value *yaml.Node) *yaml.Node {
	list.Kind = yaml.SequenceNode
	at := strings.Join(path, "\x01")
	e, found := t.lists[at]
	if !found {
		e = &yaml.Node{}
		if last {
			e = value
		}
		t.attach(e, len(path), last)
		list.Content = append(list.Content, e)
		t.lists[at] = e
	}
	return e
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// set sets a single value at a path.
func (t *tree) set(value string, path ...string) {
	n := &yaml.Node{}
	n.SetString(value)
	t.put(path, nil, n)
}

// quantity returns a number as YAML has it.
func quantity(n int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(n)}
}

// remove takes a key out of a mapping.
func (t *tree) remove(path ...string) {
	last := len(path) - 1
	cut(child(t.root, path[:last]...), path[last])
}
