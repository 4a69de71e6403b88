// Package output prints what commands of dsctl report. Names and messages in a cluster are hostile: they can hold line
// breaks, control characters of terminals, and characters that reorder text. A Printer has no method that prints a text as
// it is, so that no command can forget to clean it.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// unsafe are the characters that Clean replaces.
var unsafe = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp}

// Clean replaces each line break, control character and invisible character in a text by a space.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unsafe...) {
			return ' '
		}
		return r
	}, text)
}

// Lines are lines of a text.
type Lines []string

// Add adds one line, whatever its arguments hold.
func (l *Lines) Add(format string, args ...any) {
	*l = append(*l, Clean(fmt.Sprintf(format, args...)))
}

// A Printer prints to one stream.
type Printer struct {
	to io.Writer
}

// New returns a Printer.
func New(to io.Writer) *Printer { return &Printer{to} }

// Line prints one line, whatever its arguments hold.
func (p *Printer) Line(format string, args ...any) error {
	return p.Lines(Lines{fmt.Sprintf(format, args...)})
}

// Lines prints lines.
func (p *Printer) Lines(lines Lines) error {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(Clean(l) + "\n")
	}
	_, err := io.WriteString(p.to, b.String())
	return err
}

// Error prints an error. It indents the lines after the first, so that a message cannot pass for another one.
func (p *Printer) Error(err error) {
	_ = p.Lines(strings.Split(fmt.Sprintf("error: %v", strings.ReplaceAll(err.Error(), "\n", "\n  ")), "\n")) // There is no place to report it.
}

// Table prints rows in aligned columns. The first row has the names of the columns.
func (p *Printer) Table(rows [][]string) error {
	t := printers.GetNewTabWriter(p.to)
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, cell := range r {
			cells[i] = Clean(cell)
		}
		if _, err := io.WriteString(t, strings.Join(cells, "\t")+"\n"); err != nil {
			return err
		}
	}
	return t.Flush()
}

// JSON prints a value as indented JSON. It escapes what Clean replaces.
func (p *Printer) JSON(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(p.to, escape(b.String()))
	return err
}

// escape escapes in JSON what Clean replaces. Outside of strings JSON has only line breaks of these characters.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || !unicode.In(r, unsafe...):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// YAML prints values as YAML documents.
func YAML[T any](p *Printer, all []T) error {
	for i, v := range all {
		raw, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		if i > 0 {
			raw = append([]byte("---\n"), raw...)
		}
		if err := p.Manifest(raw); err != nil {
			return err
		}
	}
	return nil
}

// Manifest prints YAML for programs as it is. Everything else that users read goes through the other methods.
func (p *Printer) Manifest(raw []byte) error {
	_, err := p.to.Write(raw)
	return err
}

// Writer returns a writer for texts of the framework of commands, such as help and completions. It cleans each line.
func Writer(to io.Writer) io.Writer { return cleaner{to} }

type cleaner struct{ to io.Writer }

// Write implements io.Writer. It keeps tabs, which completion scripts and descriptions of completions have.
func (c cleaner) Write(raw []byte) (int, error) {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unsafe...) {
			return ' '
		}
		return r
	}, string(raw))
	if _, err := io.WriteString(c.to, text); err != nil {
		return 0, err
	}
	return len(raw), nil
}
