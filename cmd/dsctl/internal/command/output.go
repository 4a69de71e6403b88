package command

import (
	"encoding/json"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
)

// printJSON prints a value as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows in aligned columns. The first row has the names of the columns.
func printTable(w io.Writer, rows [][]string) error {
	t := printers.GetNewTabWriter(w)
	for _, r := range rows {
		if _, err := io.WriteString(t, strings.Join(r, "\t")+"\n"); err != nil {
			return err
		}
	}
	return t.Flush()
}

// line replaces line breaks and control characters in a text, which could forge other lines of the output.
func line(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
}
