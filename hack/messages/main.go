// Command messages writes hack/messages/messages.txt: the texts of this project that users read. The file is in
// the tree so that a review shows each new or changed text. Run it in the root of the tree.
package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

const output = "hack/messages/messages.txt"

const head = `# Made by ` + "`make generate`" + ` from the code, API types and charts: the texts that users read, by folder or file, sorted.
# {x} and %s are filled in at run time. Strings with a space that are no message, such as patterns, are listed as well.
`

func main() {
	out, err := messages(os.DirFS("."))
	if err == nil {
		err = os.WriteFile(output, []byte(out), 0o644) //nolint:gosec // It is part of the tree, for all to read.
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(output)
}

// messages returns the list of a tree.
func messages(tree fs.FS) (string, error) {
	l := list{}
	for _, find := range []func(fs.FS) error{l.code, l.charts} {
		if err := find(tree); err != nil {
			return "", err
		}
	}
	return l.String(), nil
}

// A list holds the messages by the place of their code.
type list map[string]map[string]bool

func (l *list) add(place, message string) {
	if (*l)[place] == nil {
		(*l)[place] = map[string]bool{}
	}
	(*l)[place][strings.ReplaceAll(strings.TrimSpace(message), "\n", `\n`)] = true
}

// String returns the list, sorted.
func (l *list) String() string {
	b := strings.Builder{}
	b.WriteString(head)
	for _, place := range slices.Sorted(maps.Keys(*l)) {
		fmt.Fprintf(&b, "\n[%s]\n", place)
		for _, message := range slices.Sorted(maps.Keys((*l)[place])) {
			b.WriteString("  " + message + "\n")
		}
	}
	return b.String()
}
