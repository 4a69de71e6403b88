package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// values are the values of one chart.
type values struct {
	own     group
	global  group
	modules []string
	schema  map[string]any
	readme  string
	instead map[string]string // names of other charts, for the reference
}

// lineLength is the maximum length of comments.
const lineLength = 110

// yaml returns the values.yaml.
func (v values) yaml() []byte {
	var out bytes.Buffer
	out.WriteString("# Made by `make generate` from hack/charts.\n")
	for _, m := range v.modules {
		fmt.Fprintf(&out, "\n# Run %s. Every setting of global may be set here, too, for this module alone;\n", m)
		out.WriteString("# image.repository, image.digest, nameOverride, fullnameOverride and serviceAccount.name are set here only.\n")
		fmt.Fprintf(&out, "%s:\n  enabled: false\n", m)
	}
	out.WriteString("\nglobal:\n")
	v.global.yaml(&out, "  ")
	for i := range v.own {
		out.WriteString("\n")
		v.own[i:i+1].yaml(&out, "")
	}
	return out.Bytes()
}

func (g group) yaml(out *bytes.Buffer, indent string) {
	for _, s := range g {
		if s.value == nil {
			fmt.Fprintf(out, "%s%s:\n", indent, s.name)
			s.group.yaml(out, indent+"  ")
			continue
		}
		for _, line := range wrap(s.description, lineLength-len(indent)-2) {
			fmt.Fprintf(out, "%s# %s\n", indent, line)
		}
		fmt.Fprintf(out, "%s%s: %s\n", indent, s.name, s.inline())
	}
}

// inline returns the default on one line.
func (s setting) inline() string {
	n := *s.value
	flow(&n)
	raw, err := yaml.Marshal(&n)
	if err != nil {
		panic(err) // It was decoded from YAML.
	}
	return strings.TrimSpace(string(raw))
}

func flow(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		return
	}
	n.Style = yaml.FlowStyle
	for _, c := range n.Content {
		flow(c)
	}
}

func wrap(text string, length int) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > length {
			out = append(out, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(out, line)
}

// page returns the README, or another page, of a chart.
func (v values) page(chart, name string) ([]byte, error) {
	t, err := template.ParseFS(sources, name, "values.md.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Chart": chart, "Modules": v.modules,
		"Global": v.global.table("global."), "Own": v.own.table(""), "Instead": v.instead,
	})
	return append([]byte("<!-- Made by `make generate` from hack/charts. -->\n"), out.Bytes()...), err
}

// table returns the settings as the rows of a table.
func (g group) table(prefix string) string {
	var out strings.Builder
	for _, s := range g {
		if s.value == nil {
			out.WriteString(s.group.table(prefix + s.name + "."))
			continue
		}
		description := s.description
		if allowed, ok := s.schema["enum"].([]any); ok {
			var words []string
			for _, a := range allowed {
				words = append(words, fmt.Sprintf("`%v`", a))
			}
			description += " One of " + strings.Join(words, ", ") + "."
		}
		fmt.Fprintf(&out, "| `%s%s` | `%s` | %s |\n", prefix, s.name, s.inline(), strings.ReplaceAll(description, "|", `\|`))
	}
	return out.String()
}
