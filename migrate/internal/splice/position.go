package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// editor collects the changes of a text.
type editor struct {
	text []byte
	// lines are the offsets at which lines begin.
	lines   []int
	newline string
	// inline says that no alias stays, and json that the document is JSON.
	inline, json bool
	// pinned reports whether a comment must stay where it is.
	pinned  func(string) bool
	changes []*change
	// wanted has what the nodes become that are visited.
	wanted map[*yaml.Node]*yaml.Node
	// removed are the nodes whose text is removed.
	removed map[*yaml.Node]bool
	pending []pending
	// step is the indentation of a level. indented says that lists are indented in mappings.
	step     int
	indented bool
}

// change replaces a part of the text.
type change struct {
	from, to int
	text     string
	// lost are comments in the part, and column the indentation that they would have on lines of their own.
	lost   []string
	column int
	// make returns the text for nodes with these comments; nil if the text does not depend on comments.
	make func() (string, error)
	node *yaml.Node
}

// pending is an alias, and what is wanted in its place.
type pending struct{ alias, want *yaml.Node }

func newEditor(text []byte, inline bool) *editor {
	e := &editor{text: text, inline: inline, json: json.Valid(text), newline: "\n", wanted: map[*yaml.Node]*yaml.Node{}, removed: map[*yaml.Node]bool{}, step: 2}
	if bytes.Contains(text, []byte("\r\n")) {
		e.newline = "\r\n"
	}
	first := 0
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		first = len("\xef\xbb\xbf")
	}
	e.lines = []int{first}
	for i, c := range text {
		if c == '\n' {
			e.lines = append(e.lines, i+1)
		}
	}
	return e
}

// start returns the offset of a node. If it has an anchor or a tag, that is where these begin.
func (e *editor) start(n *yaml.Node) (int, error) {
	if n.Line < 1 || n.Line > len(e.lines) {
		return 0, errors.New("a node has no position")
	}
	at := e.lines[n.Line-1]
	for range n.Column - 1 {
		if at >= len(e.text) {
			return 0, errors.New("a node has no position")
		}
		_, size := utf8.DecodeRune(e.text[at:])
		at += size
	}
	return at, nil
}

// content returns the offset behind the anchor and the tag of a node.
func (e *editor) content(n *yaml.Node) (int, error) {
	at, err := e.start(n)
	if err != nil || n.Kind == yaml.AliasNode {
		return at, err
	}
	for at < len(e.text) && (e.text[at] == '&' || e.text[at] == '!') {
		for at < len(e.text) && !isSpace(e.text[at]) {
			at++
		}
		for at < len(e.text) && isSpace(e.text[at]) {
			at++
		}
	}
	return at, nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// end returns the offset behind a node.
func (e *editor) end(n *yaml.Node) (int, error) {
	at, err := e.content(n)
	if err != nil {
		return 0, err
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return at + len("*") + len(n.Value), nil
	case n.Kind == yaml.ScalarNode:
		return e.scalarEnd(n, at)
	case n.Style&yaml.FlowStyle != 0:
		return e.flowEnd(n, at)
	case len(n.Content) == 0:
		return at, nil
	}
	return e.end(n.Content[len(n.Content)-1])
}

// flowEnd returns the offset behind the bracket that closes a collection.
func (e *editor) flowEnd(n *yaml.Node, at int) (int, error) {
	at++
	if len(n.Content) > 0 {
		var err error
		if at, err = e.end(n.Content[len(n.Content)-1]); err != nil {
			return 0, err
		}
	}
	for at < len(e.text) {
		switch c := e.text[at]; {
		case c == '}' || c == ']':
			return at + 1, nil
		case c == '#':
			at = e.lineEnd(at)
		case isSpace(c) || c == ',' || c == ':':
			at++
		default:
			return 0, fmt.Errorf("line %d: a collection does not end as expected", n.Line)
		}
	}
	return 0, fmt.Errorf("line %d: a collection does not end", n.Line)
}

// scalarEnd returns the offset behind a single value.
func (e *editor) scalarEnd(n *yaml.Node, at int) (int, error) {
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return e.blockEnd(n, at), nil
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := at + 1; i < len(e.text); i++ {
			switch e.text[i] {
			case '\\':
				i++
			case '"':
				return i + 1, nil
			}
		}
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := at + 1; i < len(e.text); i++ {
			if e.text[i] != '\'' {
				continue
			}
			if i+1 == len(e.text) || e.text[i+1] != '\'' {
				return i + 1, nil
			}
			i++
		}
	default:
		return e.plainEnd(n, at)
	}
	return 0, fmt.Errorf("line %d: a string does not end", n.Line)
}

// plainEnd returns the offset behind a plain value, whose line breaks are spaces or fewer line breaks in the value.
func (e *editor) plainEnd(n *yaml.Node, at int) (int, error) {
	for _, c := range []byte(n.Value) {
		switch {
		case at < len(e.text) && e.text[at] == c && !isSpace(c):
			at++
		case c == ' ' || c == '\n':
			if at < len(e.text) && e.text[at] == ' ' && c == ' ' && !e.breaks(at) {
				at++
				continue
			}
			for at < len(e.text) && isSpace(e.text[at]) {
				at++
			}
		default:
			return 0, fmt.Errorf("line %d: a value is not where it is expected", n.Line)
		}
	}
	return at, nil
}

// breaks reports whether only spaces are between an offset and the end of its line.
func (e *editor) breaks(at int) bool { return len(bytes.TrimSpace(e.text[at:e.lineEnd(at)])) == 0 }

// lineEnd returns the offset of the line break behind an offset.
func (e *editor) lineEnd(at int) int {
	if i := bytes.IndexByte(e.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(e.text)
}

// lineStart returns the offset at which the line of an offset begins.
func (e *editor) lineStart(at int) int {
	i, found := slices.BinarySearch(e.lines, at)
	if !found {
		i--
	}
	return e.lines[max(0, i)]
}

// next returns the offset of the line behind that of an offset.
func (e *editor) next(at int) int { return min(len(e.text), e.lineEnd(at)+1) }

// blockEnd returns the offset behind the last line with text of a block.
func (e *editor) blockEnd(n *yaml.Node, at int) int {
	end := e.lineEnd(at)
	indent := -1
	header := string(e.text[at:end])
	if digits := strings.IndexAny(header, "123456789"); digits >= 0 && !strings.Contains(header[:digits], "#") {
		// Its indentation is counted from that of what holds it, which is at least that of its line without dashes.
		line := e.text[e.lineStart(at):at]
		indent = len(line) - len(bytes.TrimLeft(line, " -")) + 1
	}
	for i := e.next(at); i < len(e.text); i = e.next(i) {
		line := bytes.TrimRight(e.text[i:e.lineEnd(i)], " \t\r")
		spaces := len(line) - len(bytes.TrimLeft(line, " "))
		if len(line) == spaces {
			continue
		}
		if indent < 0 {
			indent = spaces
			if spaces < e.least(at) {
				break // It is empty.
			}
		}
		if spaces < indent {
			break
		}
		end = e.lineEnd(i)
	}
	if strings.TrimSpace(n.Value) == "" {
		return e.lineEnd(at)
	}
	return end - len(e.text[:end]) + len(bytes.TrimRight(e.text[:end], "\r"))
}

// least returns the least indentation of the content of a block that begins at an offset.
func (e *editor) least(at int) int {
	line := e.text[e.lineStart(at):at]
	return len(line) - len(bytes.TrimLeft(line, " ")) + 1
}

// comments returns the comments between two offsets, of which nodes have the values.
func (e *editor) comments(from, to int, nodes ...*yaml.Node) ([]string, error) {
	var all []string
	at := from
	gap := func(until int) {
		for i := at; i < until; i++ {
			if e.text[i] == '#' && (i == 0 || isSpace(e.text[i-1])) {
				end := min(until, e.lineEnd(i))
				all = append(all, strings.TrimSpace(string(e.text[i:end])))
				i = end
			}
		}
	}
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			for _, c := range n.Content {
				if err := walk(c); err != nil {
					return err
				}
			}
			return nil
		}
		begin, err := e.content(n)
		if err != nil {
			return err
		}
		end, err := e.scalarEnd(n, begin)
		if err != nil {
			return err
		}
		if begin >= at && begin < to {
			gap(begin)
			if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 { // A comment can be behind its indicator.
				at = begin
				gap(e.lineEnd(begin))
			}
			at = end
		}
		return nil
	}
	for _, n := range nodes {
		if err := walk(n); err != nil {
			return nil, err
		}
	}
	gap(to)
	return all, nil
}

// commentsOf counts the comments of a document.
func (e *editor) commentsOf(root *yaml.Node) (map[string]int, error) {
	all, err := e.comments(0, len(e.text), root)
	count := map[string]int{}
	for _, c := range all {
		count[c]++
	}
	return count, err
}
