package main

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A list is a part of a page that names each module, or each Kind.
type list struct {
	page string
	// around matches the list, and has two groups: the text before it and the text after it.
	around *regexp.Regexp
	text   func(modules []moduleKinds) string
}

// lists are the lists of modules and Kinds in pages that are otherwise written by hand.
var lists = []list{
	{"README.md", regexp.MustCompile(`(\| stores \| ).*(, \[cluster stores\])`), func(m []moduleKinds) string { return links(m, "docs", "providers") }},
	{"README.md", regexp.MustCompile(`(\| generators \| \[overview\]\(docs/generators/index\.md\), ).*( \|\n)`), func(m []moduleKinds) string { return links(m, "docs", "generators") }},
	{"README.md", regexp.MustCompile(`(\| events \| ).*(, \[EventReceiver\])`), func(m []moduleKinds) string { return links(m, "docs", "events") }},
	{"docs/start/install.md", regexp.MustCompile(`(\| module \| Kinds \|\n\|---\|---\|\n)(?:\|.*\n)*()`), func(all []moduleKinds) string {
		rows := ""
		for _, m := range all {
			rows += "| " + code(m.name) + " | " + links([]moduleKinds{m}, "..", "") + " |\n"
		}
		return rows
	}},
	{"docs/generators/index.md", regexp.MustCompile(`(\| Kind \| module \| generates \|\n\|---\|---\|---\|\n)(?:\|.*\n)*()`), func(all []moduleKinds) string {
		rows := ""
		for _, m := range all {
			for _, k := range m.kinds {
				if k.generates != "" {
					rows += "| [" + k.kind + "](" + path.Base(k.page) + ") | " + code(m.name) + " | " + k.generates + " |\n"
				}
			}
		}
		return rows
	}},
	{"docs/operate/images.md", regexp.MustCompile(`(\nfor image in ).*(; do\n  crane copy)`), func(all []moduleKinds) string {
		var names []string
		for _, m := range all {
			names = append(names, m.name+":"+m.version)
		}
		return strings.Join(names, " ")
	}},
}

// moduleKinds are the namespaced Kinds of a module.
type moduleKinds struct {
	name string
	// version is that of its chart, and so of its image; empty if it has no chart.
	version string
	kinds   []kindPage
}

// A kindPage is the page of a Kind, below docs; empty if there is none. A generator's page says in its first sentence what it
// generates.
type kindPage struct{ kind, page, generates string }

// modulesOf groups the namespaced Kinds by module, without those of common.
func modulesOf(tree string, kinds []*kind) ([]moduleKinds, error) {
	pages, err := titled(filepath.Join(tree, "docs"))
	if err != nil {
		return nil, err
	}
	var all []moduleKinds
	for _, k := range kinds {
		if k.Cluster || k.Module == "common" {
			continue
		}
		if len(all) == 0 || all[len(all)-1].name != k.Module {
			chart, err := os.ReadFile(filepath.Join(tree, "charts", k.Module, "Chart.yaml")) //nolint:gosec // A file of the tree.
			if err != nil && !os.IsNotExist(err) {
				return nil, err
			}
			all = append(all, moduleKinds{name: k.Module, version: string(bytes.TrimPrefix(chartVersion.Find(chart), []byte("version: ")))})
		}
		last := &all[len(all)-1]
		page := pages[k.Name]
		page.kind = k.Name
		last.kinds = append(last.kinds, page)
	}
	return all, nil
}

// chartVersion matches the version in a Chart.yaml.
var chartVersion = regexp.MustCompile(`(?m)^version: \S+`)

var (
	heading = regexp.MustCompile(`(?m)^# (\w+)(?: and Cluster\w+)?$`)
	// generates matches the first sentence of a generator's page.
	generates = regexp.MustCompile(`(?s)\n\nA generator of (.+?)\.\s`)
)

// titled returns the pages of stores, generators and event sources, by the Kind in their title.
func titled(docs string) (map[string]kindPage, error) {
	pages := map[string]kindPage{}
	for _, folder := range []string{"providers", "generators", "events"} {
		found, err := filepath.Glob(filepath.Join(docs, folder, "*.md"))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			text, err := os.ReadFile(file) //nolint:gosec // A file of the tree.
			if err != nil {
				return nil, err
			}
			if title := heading.FindSubmatch(text); title != nil {
				page := kindPage{page: path.Join(folder, filepath.Base(file))}
				if what := generates.FindSubmatch(text); what != nil {
					page.generates = strings.Join(strings.Fields(string(what[1])), " ")
				}
				pages[string(title[1])] = page
			}
		}
	}
	return pages, nil
}

// links returns links to the pages of Kinds in a folder of docs, or in all folders if it is empty. A Kind without a page
// is in the list of all folders only.
func links(all []moduleKinds, docs, folder string) string {
	var out []string
	for _, m := range all {
		for _, k := range m.kinds {
			switch {
			case k.page == "" && folder == "":
				out = append(out, k.kind)
			case k.page != "" && strings.HasPrefix(k.page, folder):
				out = append(out, "["+k.kind+"]("+path.Join(docs, k.page)+")")
			}
		}
	}
	return strings.Join(out, ", ")
}

// fill writes the lists into their pages.
func fill(tree string, kinds []*kind) error {
	modules, err := modulesOf(tree, kinds)
	if err != nil {
		return err
	}
	for _, l := range lists {
		file := filepath.Join(tree, l.page)
		text, err := os.ReadFile(file) //nolint:gosec // A file of the tree.
		if err != nil {
			return err
		}
		filled, err := l.in(string(text), modules)
		if err != nil {
			return err
		}
		if filled != string(text) {
			if err := os.WriteFile(file, []byte(filled), 0o644); err != nil { //nolint:gosec // It is part of the tree, for all to read.
				return err
			}
		}
	}
	return nil
}

// in returns a page with the list.
func (l list) in(text string, modules []moduleKinds) (string, error) {
	at := l.around.FindStringSubmatchIndex(text)
	if at == nil {
		return "", errors.Errorf("%s has no list that matches %s", l.page, l.around)
	}
	return text[:at[3]] + l.text(modules) + text[at[4]:], nil
}
