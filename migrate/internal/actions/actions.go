// Package actions hides the actions of a template of Helm, so that the template can be read and edited as YAML.
package actions

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Mark is what each text has that stands for an action.
const Mark = "dsctlaction"

// IsComment reports whether a comment stands for an action on lines of its own.
func IsComment(comment string) bool {
	return strings.HasPrefix(comment, "#"+Mark) || strings.HasPrefix(comment, "#"+fields+Mark)
}

// fields is what a comment has in front that stands for an action which can yield fields.
const fields = "fields-"

// MakesFields reports whether a line stands for an action which can yield fields.
func MakesFields(line string) bool {
	return strings.HasPrefix(strings.TrimSpace(line), "#"+fields+Mark)
}

// Opens and Closes report whether a line stands for an action that begins or ends a block.
func (h *Hidden) Opens(line string) bool {
	return opens.MatchString(h.actions[strings.TrimSpace(line)])
}

// Closes reports whether a line stands for an action that ends a block.
func (h *Hidden) Closes(line string) bool {
	return closes.MatchString(h.actions[strings.TrimSpace(line)])
}

var (
	opens  = regexp.MustCompile(`^\{\{-?\s*(?:if|range|with|define|block)\b`)
	closes = regexp.MustCompile(`^\{\{-?\s*end\b`)
)

// Hidden are the actions of a template.
type Hidden struct {
	// chart tells apart equal actions of different charts.
	chart string
	// actions are those of the template by the word that stands for them.
	actions map[string]string
}

// Hide replaces each action by a word, or by a comment if it is on a line of its own and yields no value. Equal actions of a chart
// become equal words, also in different files. Lines stay lines. The error says why that cannot be done.
func Hide(chart string, template []byte) ([]byte, *Hidden, error) {
	if bytes.Contains(template, []byte(Mark)) {
		return nil, nil, errors.New("it contains " + Mark)
	}
	h := &Hidden{chart: chart, actions: map[string]string{}}
	var out bytes.Buffer
	for at := 0; at < len(template); {
		begin := bytes.Index(template[at:], []byte("{{"))
		if begin < 0 {
			out.Write(template[at:])
			break
		}
		begin += at
		out.Write(template[at:begin])
		end, err := endOf(template, begin)
		if err != nil {
			return nil, nil, err
		}
		action := string(template[begin:end])
		switch {
		case h.comment(&out, template, begin, &end):
		case strings.Contains(action, "\n"):
			return nil, nil, fmt.Errorf("line %d: an action inside of a line has several lines", 1+bytes.Count(template[:begin], []byte("\n")))
		default:
			out.WriteString(h.word(action))
		}
		at = end
	}
	return out.Bytes(), h, nil
}

// word returns the word for a text.
func (h *Hidden) word(text string) string {
	w := fmt.Sprintf("%s%.6xz", Mark, sha256.Sum256([]byte(h.chart+"\x00"+text)))
	h.actions[w] = text
	return w
}

// endOf returns the offset behind an action. Strings in it can hold braces.
func endOf(template []byte, begin int) (int, error) {
	if trimmed := bytes.TrimLeft(template[begin+2:], "- "); bytes.HasPrefix(trimmed, []byte("/*")) {
		if i := bytes.Index(template[begin:], []byte("*/")); i >= 0 {
			begin += i
		}
	}
	var quote byte
	for i := begin + 2; i+1 < len(template); i++ {
		switch c := template[i]; {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '`' || c == '\'':
			quote = c
		case c == '}' && template[i+1] == '}':
			return i + 2, nil
		}
	}
	return 0, fmt.Errorf("line %d: an action does not end", 1+bytes.Count(template[:begin], []byte("\n")))
}

// control matches the begin of an action that yields no value.
var control = regexp.MustCompile(`^\{\{-?\s*(?:(?:if|else|end|range|with|define|block|break|continue)\b|/\*|\$\w+\s*:?=)`)

// comment writes comments for actions that are alone on their lines, unless the first is the value of a key. It moves end behind
// the last of them.
func (h *Hidden) comment(out *bytes.Buffer, template []byte, begin int, end *int) bool {
	before := out.Bytes()
	if line := before[bytes.LastIndexByte(before, '\n')+1:]; len(bytes.TrimSpace(line)) > 0 {
		return false
	}
	lineEnd := func(at int) int {
		if i := bytes.IndexByte(template[at:], '\n'); i >= 0 {
			return at + i
		}
		return len(template)
	}
	last := *end
	for { // Several actions can be on the line.
		rest := template[last:lineEnd(last)]
		spaces := len(rest) - len(bytes.TrimLeft(rest, " \t\r"))
		if len(rest) == spaces {
			break
		}
		if !bytes.HasPrefix(rest[spaces:], []byte("{{")) {
			return false
		}
		next, err := endOf(template, last+spaces)
		if err != nil {
			return false
		}
		last = next
	}
	if !control.Match(template[begin:]) && bytes.HasSuffix(lastCode(before), []byte(":")) {
		return false
	}
	lines := strings.Split(string(template[begin:last]), "\n")
	prefix := "#"
	if !control.Match(template[begin:]) {
		prefix += fields
	}
	for i, line := range lines {
		lines[i] = prefix + h.word(line)
		h.actions[lines[i]] = line
	}
	out.WriteString(strings.Join(lines, "\n"))
	*end = last
	return true
}

// lastCode returns the last line that is neither empty nor a comment.
func lastCode(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		if line := bytes.TrimSpace(lines[i]); len(line) > 0 && line[0] != '#' {
			return line
		}
	}
	return nil
}

var word = regexp.MustCompile(`#?(?:` + fields + `)?` + Mark + `[0-9a-f]{12}z`)

// Show replaces what stands for actions by the actions.
func (h *Hidden) Show(text string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if action, found := h.actions[w]; found {
			return action
		}
		if rest, found := strings.CutPrefix(w, "#"); found {
			return "#" + h.Show(rest)
		}
		return w
	})
}

// Is reports whether a value depends on an action.
func Is(value string) bool { return strings.Contains(value, Mark) }
