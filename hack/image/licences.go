package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// licencesPath is the folder of the licences in an image: the licence of the project, and those of each
	// component of the bill of materials, in a folder with the component's name.
	licencesPath = "licenses"
	// ownModules is the prefix of the project's modules, which have the licence of the project.
	ownModules = "github.com/direct-secrets/direct-secrets/"
)

// licenceName matches files with terms of use, and notices that accompany them.
var licenceName = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|copyright|notice|patents)([-._].*)?$`)

// A goPackage is the description of a package by `go list`.
type goPackage struct {
	Dir      string
	Standard bool
	Module   struct {
		Path, Dir string
		Replace   *struct{ Path, Version string }
	}
}

// component returns the name of the package's component in the bill of materials, and its folder. The field
// Root of `go list` is not enough to detect goroot: for a package that Go has copied from a module, Root is the
// folder of that module if the program depends on it, too.
func (p goPackage) component(goroot string) (name, folder string) {
	switch m := p.Module; {
	case p.Standard:
		return "stdlib", goroot
	case m.Replace != nil && m.Replace.Version != "":
		return m.Replace.Path, m.Dir
	default:
		return m.Path, m.Dir
	}
}

// licences returns the licences of the packages that `go list` prints for these arguments in a folder. The
// files are in the folder of the code or above it: some modules contain copies of other code with its own
// terms.
//
// The library of github.com/google/go-licenses is not sufficient: it finds one licence per package, and none of
// Go. With v2.0.1, provider-aws would lack 35 of 136 files, among them every NOTICE, which Apache-2.0 requires
// to pass on, and every PATENTS.
func licences(folder string, env []string, args ...string) ([]file, error) {
	packages, err := listPackages(folder, env, args)
	if err != nil {
		return nil, err
	}
	goroot, err := goCommand(folder, env, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var out []file
	has, seen := map[string]bool{}, map[string]bool{}
	for _, p := range packages {
		name, top := p.component(strings.TrimSpace(string(goroot)))
		if strings.HasPrefix(name, ownModules) {
			continue
		}
		if !has[name] {
			has[name] = false // until a file is found
		}
		for dir := p.Dir; !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			files, err := licencesIn(dir)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				f.name = path.Join(licencesPath, name, filepath.ToSlash(strings.TrimPrefix(dir, top)), f.name)
				out, has[name] = append(out, f), true
			}
			if dir == top {
				break
			}
		}
	}
	for name, ok := range has {
		if !ok {
			return nil, fmt.Errorf("%s has no file with its licence", name)
		}
	}
	return out, nil
}

// commonLicences returns the licences of every image: that of the project, whose folder is given, and those of
// the CA roots.
func commonLicences(tree string) ([]file, error) {
	own, err := os.ReadFile(filepath.Join(tree, "LICENSE"))
	if err != nil {
		return nil, err
	}
	roots, err := licences(tree, []string{"GOFLAGS=", "GOWORK=off"}, rootsModule+"/bundle")
	return append(roots, file{name: licencesPath + "/LICENSE", mode: 0o644, data: own}), err
}

func listPackages(folder string, env, args []string) ([]goPackage, error) {
	raw, err := goCommand(folder, env, append([]string{"list", "-json=Dir,Standard,Module"}, args...)...)
	if err != nil {
		return nil, err
	}
	var out []goPackage
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
}

// licencesIn returns the licences in a folder.
func licencesIn(folder string) ([]file, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: e.Name(), mode: 0o644, data: data})
	}
	return out, nil
}

// byName compares files by name.
func byName(a, b file) int { return cmp.Compare(a.name, b.name) }
