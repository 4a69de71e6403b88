// Command structure fails if the packages of a module break the rules of its structure, or if modules keep maps without a bound. It
// only parses them.
//
//	structure MODULE [MODULE-WITH-ONLY-BOUNDS...]
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// maxPackages is the maximum number of packages that other modules can import.
const maxPackages = 10

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: structure MODULE [MODULE-WITH-ONLY-BOUNDS...]")
		os.Exit(2)
	}
	failed := false
	for i, module := range os.Args[1:] {
		faults, err := check(os.DirFS(module), i > 0)
		if err != nil {
			faults = append(faults, err.Error())
		}
		for _, fault := range faults {
			fmt.Fprintf(os.Stderr, "%s: %s\n", module, fault)
		}
		failed = failed || len(faults) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// check returns what is wrong with a module, or only its maps without a bound.
func check(module fs.FS, onlyBounds bool) ([]string, error) {
	s, err := newSurvey(module)
	if err != nil || onlyBounds {
		return s.unbound, err
	}
	packages, err := public(module)
	if err != nil {
		return nil, err
	}
	faults := slices.Concat(s.unbound, s.beyond())
	if len(packages) > maxPackages {
		faults = append(faults, fmt.Sprintf("%d packages are public, and at most %d are allowed: %s", len(packages), maxPackages, strings.Join(packages, ", ")))
	}
	return faults, err
}

// public returns the packages that other modules can import, including packages for tests.
func public(module fs.FS) ([]string, error) {
	var packages []string
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "internal" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if folder := path.Dir(name); path.Ext(name) == ".go" && !slices.Contains(packages, folder) {
			packages = append(packages, folder)
		}
		return nil
	})
	return packages, err
}
