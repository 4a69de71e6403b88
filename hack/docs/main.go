// Command docs writes the generated pages of docs/reference: the fields of each Kind from the CRDs, and the
// flags of the operators. It also writes the lists of modules, Kinds, products and tested versions in other pages, and the text
// for AI assistants. Run it in the root of the tree. Its output depends only on the tree.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

//go:embed *.tmpl
var templates embed.FS

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(tree string) error {
	reference := filepath.Join(tree, "docs", "reference")
	kinds, err := loadKinds(tree)
	if err != nil {
		return err
	}
	pages := pagesOf(kinds)
	api := filepath.Join(reference, "api")
	if err := os.RemoveAll(api); err != nil { // This removes the pages of Kinds that no longer exist.
		return err
	}
	for _, p := range pages {
		if err := write(filepath.Join(api, p.File), "api.md.tmpl", p); err != nil {
			return errors.Wrapf(err, "cannot write the page of %s", p.Title)
		}
	}
	if err := write(filepath.Join(api, "index.md"), "index.md.tmpl", grouped(pages)); err != nil {
		return err
	}
	if err := write(filepath.Join(reference, "flags.md"), "flags.md.tmpl", flags()); err != nil {
		return err
	}
	known, err := factsOf(tree, kinds)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(tree, "docs", "public", "llms.txt"), "llms.txt.tmpl", assistants{tree: tree, Groups: grouped(pages), Products: words(known.products())}); err != nil {
		return errors.Wrap(err, "cannot write the text for assistants")
	}
	return errors.Wrap(fill(tree, known), "cannot write the lists of modules, Kinds and products")
}

// write executes a template.
func write(path, name string, data any) error {
	t, err := template.New(name).Funcs(template.FuncMap{"join": strings.Join, "code": code}).ParseFS(templates, name)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644) //nolint:gosec // It is part of the tree, for all to read.
}

// code returns text as code for a cell of a table.
func code(text string) string {
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}
