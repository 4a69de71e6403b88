// Command charts writes the generated files of the charts: values with schema and README, the page of the docs,
// and the permissions and CRDs of modules. Run it in the root of the tree. Its output depends only on the tree.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(tree string) error {
	s, err := loadSettings()
	if err != nil {
		return err
	}
	modules, err := findModules(tree)
	if err != nil {
		return err
	}
	if err := s.writeNames(filepath.Join(tree, "charts", "library")); err != nil {
		return errors.Wrap(err, "cannot write the names of settings")
	}
	for _, module := range modules {
		if err := writeModule(tree, module, s); err != nil {
			return errors.Wrapf(err, "cannot write the chart of %s", module)
		}
	}
	if err := writeCRDsChart(tree, s); err != nil {
		return errors.Wrap(err, "cannot write the chart of the CRDs")
	}
	return errors.Wrap(writeUmbrella(tree, modules, s), "cannot write the umbrella chart")
}

// findModules returns the folders of the modules that have a chart.
func findModules(tree string) ([]string, error) {
	var out []string
	for _, pattern := range []string{"provider-*", "generator-*"} {
		found, err := filepath.Glob(filepath.Join(tree, pattern, "go.mod"))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			out = append(out, filepath.Base(filepath.Dir(f)))
		}
	}
	slices.Sort(out)
	return out, nil
}

func writeModule(tree, module string, s *settings) error {
	chart := filepath.Join(tree, "charts", module)
	if err := layOut(chart, module); err != nil {
		return err
	}
	if err := linkCRDs(chart, module); err != nil {
		return err
	}
	if err := listCRDs(chart, filepath.Join(tree, module, "manifests", "crds")); err != nil {
		return err
	}
	if err := writePermissions(filepath.Join(tree, module, "manifests", "rbac.yaml"), module, chart); err != nil {
		return err
	}
	return s.write(chart, values{
		own:    s.module.only(true).named(module),
		global: s.module.only(false),
		schema: s.moduleSchema(),
		readme: "module.md.tmpl",
	})
}

func writeCRDsChart(tree string, s *settings) error {
	chart := filepath.Join(tree, "charts", "crds")
	if err := linkCRDs(chart, "common"); err != nil {
		return err
	}
	if err := listCRDs(chart, filepath.Join(tree, "common", "manifests", "crds")); err != nil {
		return err
	}
	return s.write(chart, values{
		global: s.module.only(false).pick("scope", "crds", "rbac"),
		schema: s.crdsSchema(),
		readme: "crds.md.tmpl",
	})
}

func writeUmbrella(tree string, modules []string, s *settings) error {
	chart := filepath.Join(tree, "charts", "direct-secrets")
	kinds := map[string][]string{}
	crds := []string{filepath.Join(tree, "common", "manifests", "crds")}
	groups := []byte("# Made by `make generate`: the modules and the API groups of their Kinds.\n")
	for _, module := range modules {
		if err := depend(chart, module); err != nil {
			return err
		}
		if err := link(chart, module); err != nil {
			return err
		}
		folder := filepath.Join(tree, module, "manifests", "crds")
		crds = append(crds, folder)
		group, err := groupOfCRDs(folder)
		if err != nil {
			return err
		}
		groups = append(groups, fmt.Sprintf("%s: %s\n", module, group)...)
		if kinds[module], err = kindsOfCRDs(folder); err != nil {
			return err
		}
	}
	if err := listCRDs(chart, crds...); err != nil {
		return err
	}
	global, err := s.module.only(false).with("moduleKinds", kinds)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(chart, "files", "modules.yaml"), groups); err != nil {
		return err
	}
	v := values{
		own:     s.umbrella,
		global:  global,
		modules: modules,
		schema:  s.umbrellaSchema(modules),
		readme:  "umbrella.md.tmpl",
		instead: s.instead,
	}
	reference, err := v.page(filepath.Base(chart), "reference.md.tmpl")
	if err != nil {
		return err
	}
	if err := write(filepath.Join(tree, "docs", "reference", "chart-values.md"), reference); err != nil {
		return err
	}
	return s.write(chart, v)
}
