package splice

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is that of a value in what holds it.
type place struct {
	parent *yaml.Node
	index  int
}

// value finds the changes that make a node what is wanted.
func (e *editor) value(p place, was, want *yaml.Node) error {
	e.wanted[was] = want
	switch {
	case was.Kind == yaml.AliasNode:
		e.pending = append(e.pending, pending{was, want})
		return nil
	case !hasAlias(was) && equal(was, want):
		return nil
	case was.Kind == yaml.MappingNode && want.Kind == yaml.MappingNode && len(was.Content) > 0 && len(want.Content) > 0:
		return e.mapping(p, was, want)
	case was.Kind == yaml.SequenceNode && want.Kind == yaml.SequenceNode && len(was.Content) > 0 && len(want.Content) > 0:
		return e.sequence(was, want)
	case was.Kind == yaml.ScalarNode && want.Kind == yaml.ScalarNode:
		return e.scalar(p, was, want)
	case equal(resolve(was), want):
		return nil
	}
	return e.replace(p, was, want)
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// matched is a key of a mapping, and what becomes of it.
type matched struct {
	entry

	// name and want are the key and the value afterwards; nil if the entry is removed.
	name, want *yaml.Node
}

// mapping finds the changes of a mapping. Keys whose entries are alike are renamed.
func (e *editor) mapping(p place, was, want *yaml.Node) error {
	olds, news, err := e.match(was, want)
	if err != nil {
		return err
	}
	kept := slices.ContainsFunc(olds, func(m matched) bool { return m.name != nil })
	if !kept {
		return e.replace(p, was, want)
	}
	for i, m := range olds {
		if m.name == nil {
			continue
		}
		if m.name.Value != m.key.Value {
			if err := e.token(m.key, m.name, isFlow(was)); err != nil {
				return err
			}
		}
		if err := e.value(place{was, i}, m.value, m.want); err != nil {
			return err
		}
	}
	if isFlow(was) {
		return e.flow(olds, news)
	}
	return e.block(olds, news)
}

// inserted is a new entry of a mapping, and the index of the one behind which it belongs; -1 for the first.
type inserted struct {
	key, value *yaml.Node
	behind     int
}

// match returns what becomes of the own entries of a mapping, in their order, and which entries are new.
func (e *editor) match(was, want *yaml.Node) ([]matched, []inserted, error) {
	var olds []matched
	at, merged := map[string]int{}, map[string]*yaml.Node{}
	for _, o := range entries(was) {
		if o.merged {
			merged[o.key.Value] = o.value
		}
	}
	for i := 0; i+1 < len(was.Content); i += 2 {
		key, value := was.Content[i], was.Content[i+1]
		m := matched{entry: entry{key: key, value: value}}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, nil, fmt.Errorf("line %d: a key is not a string", key.Line)
		case key.Tag != "!!merge":
			at[key.Value] = len(olds)
		case !e.inline:
			m.name, m.want = key, value
		}
		olds = append(olds, m)
	}
	var added []entry
	for key, value := range pairs(want) {
		if i, found := at[key.Value]; found {
			olds[i].name, olds[i].want = key, value
			continue
		}
		if from := merged[key.Value]; from != nil && !e.inline && equal(resolve(from), value) {
			continue
		}
		added = append(added, entry{key: key, value: value})
	}
	added = rename(olds, added)
	var news []inserted
	behind := -1
	for key, value := range pairs(want) {
		if i := slices.IndexFunc(olds, func(m matched) bool { return m.name == key }); i >= 0 {
			behind = i
		} else if slices.ContainsFunc(added, func(a entry) bool { return a.key == key }) {
			news = append(news, inserted{key, value, behind})
		}
	}
	return olds, news, nil
}

// rename gives entries that would be removed the names of new ones that are alike, and returns the new ones that are left.
func rename(olds []matched, added []entry) []entry {
	return slices.DeleteFunc(added, func(a entry) bool {
		for i, o := range olds {
			if o.name == nil && o.key.Tag != "!!merge" && alike(o.entry, a) {
				olds[i].name, olds[i].want = a.key, a.value
				return true
			}
		}
		return false
	})
}

// alike reports whether an entry is another one under a new name.
func alike(a, b entry) bool {
	from, to := strings.ToLower(a.key.Value), strings.ToLower(b.key.Value)
	value := a.value
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Kind != b.value.Kind {
		return false
	}
	named := strings.HasSuffix(from, to) || strings.HasSuffix(to, from)
	if named && value.Kind == yaml.MappingNode {
		named = slices.ContainsFunc(entries(value), func(o entry) bool {
			return slices.ContainsFunc(entries(b.value), func(n entry) bool { return n.key.Value == o.key.Value })
		})
	}
	return named || equal(resolve(value), b.value)
}

// pairs returns the keys and values of a mapping.
func pairs(n *yaml.Node) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// block finds the changes of the lines of a mapping: entries that go or are new.
func (e *editor) block(olds []matched, news []inserted) error {
	first := slices.IndexFunc(olds, func(m matched) bool { return m.name != nil })
	head, err := e.start(olds[0].key)
	if err != nil {
		return err
	}
	onDash := strings.TrimSpace(string(e.text[e.lineStart(head):head])) != ""
	if onDash && first > 0 { // The first that is kept moves to the line of the dash.
		to, err := e.start(olds[first].key)
		if err != nil {
			return err
		}
		if err := e.remove(head, to, olds[0].key.Column, nodesOf(olds[:first])...); err != nil {
			return err
		}
		e.changes[len(e.changes)-1].column = -1
	}
	for i, m := range olds {
		if m.name != nil || (onDash && i < first) {
			continue
		}
		if err := e.removeLines(m.key, m.value); err != nil {
			return err
		}
	}
	column := olds[0].key.Column
	for _, n := range news {
		node := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{n.key, n.value}}
		if n.behind < 0 {
			e.insertBefore(head, column, node)
			continue
		}
		if err := e.insertBehind(olds[n.behind].value, olds[n.behind].key, column, node); err != nil {
			return err
		}
	}
	return nil
}

func nodesOf(all []matched) []*yaml.Node {
	var nodes []*yaml.Node
	for _, m := range all {
		nodes = append(nodes, m.key, m.value)
	}
	return nodes
}

// sequence finds the changes of a list. Items that are equal stay.
func (e *editor) sequence(was, want *yaml.Node) error {
	pairs := align(was.Content, want.Content)
	if isFlow(was) && slices.ContainsFunc(pairs, func(p [2]int) bool { return p[0] < 0 || p[1] < 0 }) {
		return e.rewrite(was, want)
	}
	last := -1
	for _, p := range pairs {
		switch old, now := p[0], p[1]; {
		case now < 0:
			if err := e.removeItem(was, old); err != nil {
				return err
			}
		case old < 0:
			item := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{want.Content[now]}}
			if last < 0 {
				at, err := e.start(was)
				if err != nil {
					return err
				}
				e.insertBefore(at, was.Column, item)
				continue
			}
			if err := e.insertBehind(was.Content[last], nil, was.Column, item); err != nil {
				return err
			}
		default:
			if err := e.value(place{was, old}, was.Content[old], want.Content[now]); err != nil {
				return err
			}
		}
		last = max(last, p[0])
	}
	return nil
}

// align pairs the items of two lists; -1 stands for no item. Equal items go together, then the others in their order.
func align(olds, news []*yaml.Node) [][2]int {
	same := make([][]int, len(olds)+1)
	same[len(olds)] = make([]int, len(news)+1)
	for i := len(olds) - 1; i >= 0; i-- {
		same[i] = make([]int, len(news)+1)
		for k := len(news) - 1; k >= 0; k-- {
			same[i][k] = max(same[i+1][k], same[i][k+1])
			if equal(resolve(olds[i]), news[k]) {
				same[i][k] = max(same[i][k], same[i+1][k+1]+1)
			}
		}
	}
	var all [][2]int
	var left, right []int
	flush := func() {
		for len(left) > 0 || len(right) > 0 {
			p := [2]int{-1, -1}
			if len(left) > 0 {
				p[0], left = left[0], left[1:]
			}
			if len(right) > 0 {
				p[1], right = right[0], right[1:]
			}
			all = append(all, p)
		}
	}
	i, k := 0, 0
	for i < len(olds) && k < len(news) {
		switch {
		case equal(resolve(olds[i]), news[k]) && same[i][k] == same[i+1][k+1]+1:
			flush()
			all = append(all, [2]int{i, k})
			i, k = i+1, k+1
		case same[i+1][k] >= same[i][k+1]:
			left = append(left, i)
			i++
		default:
			right = append(right, k)
			k++
		}
	}
	for ; i < len(olds); i++ {
		left = append(left, i)
	}
	for ; k < len(news); k++ {
		right = append(right, k)
	}
	flush()
	return all
}

// scalar finds the change of a single value.
func (e *editor) scalar(p place, was, want *yaml.Node) error {
	if was.Style&yaml.LiteralStyle != 0 && e.literal(was, want) {
		return nil
	}
	if was.Value == "" || was.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || strings.Contains(want.Value, "\n") {
		return e.replace(p, was, want)
	}
	return e.token(was, want, p.parent != nil && isFlow(p.parent))
}

// token replaces the text of a single value.
func (e *editor) token(was, want *yaml.Node, flow bool) error {
	from, err := e.content(was)
	if err != nil {
		return err
	}
	to, err := e.scalarEnd(was, from)
	if err != nil {
		return err
	}
	now := &yaml.Node{Kind: yaml.ScalarNode, Tag: want.ShortTag(), Value: want.Value, Style: was.Style &^ yaml.TaggedStyle}
	if now.Tag != was.ShortTag() {
		now.Style = 0
	}
	text, err := e.inlineText(now, flow)
	if err == nil && strings.Contains(text, "\n") {
		err = errors.New("a value has several lines")
	}
	e.changes = append(e.changes, &change{from: from, to: to, text: text})
	return err
}

// aliases replaces aliases that would not stand any more for what is wanted.
func (e *editor) aliases() error {
	for _, p := range e.pending {
		now := e.wanted[p.alias.Alias]
		if now == nil {
			now = resolve(p.alias.Alias)
		}
		if !e.inline && !e.removed[p.alias.Alias] && equal(now, p.want) {
			continue
		}
		if err := e.rewrite(p.alias, p.want); err != nil {
			return err
		}
	}
	return nil
}
