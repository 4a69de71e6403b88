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

// moduleKinds are the namespaced Kinds of a module.
type moduleKinds struct {
	name string
	// version is that of its chart, and so of its image; empty if it has no chart.
	version string
	kinds   []kindPage
}

// A kindPage is the page of a Kind, below docs; empty if there is none. A generator's page says in its first sentence what it
// generates, and the title of a store's page the products that it reads.
type kindPage struct {
	kind, page, generates string
	products              []string
}

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
	// heading matches a title such as "Azure Key Vault: AzureKeyVault and ClusterAzureKeyVault".
	heading = regexp.MustCompile(`^# (?:(.+): )?(\w+)(?: and Cluster\w+)?\n`)
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
				if len(title[1]) > 0 {
					page.products = strings.Split(string(title[1]), " and ")
				} else if folder == "providers" {
					return nil, errors.Errorf("%s: begin the title with the product, such as %q", file, "Azure Key Vault: AzureKeyVault and ClusterAzureKeyVault")
				}
				if what := generates.FindSubmatch(text); what != nil {
					page.generates = strings.Join(strings.Fields(string(what[1])), " ")
				}
				pages[string(title[2])] = page
			}
		}
	}
	return pages, nil
}

// links returns links to the pages of Kinds in a folder of docs, or in all folders if it is empty. A Kind without a page
// is in the list of all folders only, and a store is named by its products and its Kind.
func links(all []moduleKinds, docs, folder string) string {
	var out []string
	for _, m := range all {
		for _, k := range m.kinds {
			switch {
			case k.page == "" && folder == "":
				out = append(out, k.kind)
			case k.page != "" && strings.HasPrefix(k.page, folder):
				out = append(out, "["+k.kind+"]("+path.Join(docs, k.page)+")"+k.of())
			}
		}
	}
	return strings.Join(out, ", ")
}

// of returns the products of a store, in brackets.
func (k kindPage) of() string {
	if len(k.products) == 0 {
		return ""
	}
	return " (" + words(k.products) + ")"
}
