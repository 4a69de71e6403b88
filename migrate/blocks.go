package migrate

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/direct-secrets/direct-secrets/migrate/internal/actions"
)

// block is a part of a template under a condition, by its lines: from is the first, and to is behind the last.
type block struct{ from, to int }

// blocks returns the blocks of a template, in the order of their first lines.
func blocks(h *actions.Hidden, lines []string) []block {
	var all []block
	var open []int
	for i, line := range lines {
		switch {
		case h.Opens(line):
			open = append(open, len(all))
			all = append(all, block{i, len(lines)})
		case h.Closes(line) && len(open) > 0:
			all[open[len(open)-1]].to = i + 1
			open = open[:len(open)-1]
		}
	}
	return all
}

// without returns a template without a block.
func (b block) without(lines []string) []byte {
	return []byte(strings.Join(slices.Concat(lines[:b.from], lines[b.to:]), "\n"))
}

var errBlock = errors.New("what it becomes depends on a condition of the template")

// checkBlocks returns an error if an edited template without one of its blocks is not what the template without it converts to.
func (o *object) checkBlocks(edited []byte) error {
	was, now := strings.Split(string(o.raw), "\n"), strings.Split(string(edited), "\n")
	before, after := blocks(o.hidden, was), blocks(o.hidden, now)
	if len(before) != len(after) {
		return errBlock
	}
	for i, b := range before {
		if was[b.from] != now[after[i].from] {
			return errBlock
		}
		original, err := jsonOf(b.without(was))
		if err != nil {
			continue // It is no object without the block.
		}
		want, err := o.inputs.probe(o, original)
		if err != nil {
			continue // It is not valid without the block.
		}
		got, err := jsonOf(after[i].without(now))
		if err != nil || !jsonpatch.Equal(got, want.is) {
			return errBlock
		}
	}
	return nil
}

// jsonOf returns a document as JSON.
func jsonOf(raw []byte) ([]byte, error) {
	root, err := readOne(raw)
	if err != nil || len(root.Content) == 0 || text(root.Content[0], "kind") == "" {
		return nil, errors.Join(errors.New("it is no object"), err)
	}
	if err := new(expansion).expand(root.Content[0], 0); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = encodeJSON(&b, root.Content[0], "")
	return b.Bytes(), err
}

// checkFields reports actions that can yield fields: it is not known which.
func (o *object) checkFields() {
	if o.hidden == nil {
		return
	}
	top := ""
	for line := range strings.SplitSeq(string(o.raw), "\n") {
		if key, _, found := strings.Cut(line, ":"); found && line[0] != ' ' && line[0] != '#' {
			top = key
		}
		switch {
		case !actions.MakesFields(line):
		case top == "metadata":
			o.add(Finding{Field: top, Verdict: Changed, Reason: "an action of the template yields metadata, which External Secrets Operator copies to the Secret", Todo: "add labels and annotations to target.template.metadata, if a reader of the Secret needs them"})
		default:
			o.add(Finding{Field: top, Verdict: Unsupported, Reason: "an action of the template yields fields, which are not known", Todo: "convert the object and the template that it includes by hand"})
		}
	}
}
