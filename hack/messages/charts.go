package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// chartFiles are patterns for the files of charts, with the functions that find their messages. The values of a
// chart are generated from hack/charts/*.yaml.
var chartFiles = []struct {
	pattern string
	find    func(l *list, place string, raw []byte) error
}{
	{"hack/charts/*.yaml", described("description")},
	{"charts/*/Chart.yaml", described("description")},
	{"charts/*/files/alerts.yaml", described("summary", "description")},
	{"charts/*/files/dashboard.json", described("description")},
	{"charts/*/templates/*.tpl", quoted},
	{"charts/*/templates/NOTES.txt", lines},
}

// charts adds the messages of the charts.
func (l *list) charts(tree fs.FS) error {
	for _, c := range chartFiles {
		names, err := fs.Glob(tree, c.pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			raw, err := fs.ReadFile(tree, name)
			if err == nil {
				err = c.find(l, name, raw)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// described returns a function that adds the strings with one of these names in a YAML document.
func described(fields ...string) func(l *list, place string, raw []byte) error {
	return func(l *list, place string, raw []byte) error {
		var doc yaml.Node
		if err := yaml.Unmarshal(raw, &doc); err != nil {
			return err
		}
		var visit func(n *yaml.Node, at []string)
		visit = func(n *yaml.Node, at []string) {
			if n.Kind != yaml.MappingNode {
				for _, child := range n.Content {
					visit(child, at)
				}
				return
			}
			// Alerts and panels are listed by their names, because their position in the file has no meaning.
			if name := cmp.Or(field(n, "alert"), field(n, "title")); name != "" {
				at = []string{name}
			}
			for i := 0; i+1 < len(n.Content); i += 2 {
				key, value := n.Content[i].Value, n.Content[i+1]
				switch {
				case slices.Contains(fields, key) && value.Kind == yaml.ScalarNode:
					l.add(place, strings.TrimPrefix(strings.Join(at, ".")+": ", ": ")+strings.Join(strings.Fields(value.Value), " "))
				case key == "properties" || key == "annotations" && field(n, "alert") != "":
					visit(value, at)
				default:
					visit(value, append(slices.Clip(at), key))
				}
			}
		}
		visit(&doc, nil)
		return nil
	}
}

// field returns a string of a mapping, or "".
func field(n *yaml.Node, name string) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1].Value
		}
	}
	return ""
}

// quoted adds the strings of a Helm template that look like messages.
func quoted(l *list, place string, raw []byte) error {
	for _, s := range literal.FindAllString(string(raw), -1) {
		if text, err := strconv.Unquote(s); err == nil && isProse(text) {
			l.add(place, text)
		}
	}
	return nil
}

// lines adds the text of a template outside of its actions, line by line.
func lines(l *list, place string, raw []byte) error {
	for line := range strings.Lines(action.ReplaceAllString(string(raw), "{}")) {
		if isProse(line) {
			l.add(place, line)
		}
	}
	return nil
}

var (
	literal = regexp.MustCompile(`"(\\.|[^"\\\n])*"`)
	action  = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
)
