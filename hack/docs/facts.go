package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// facts are what pages say about the whole project, as the code has it.
type facts struct {
	modules []moduleKinds
	// shared are the Kinds of common, which every module serves.
	shared []string
	// oldest and newest are the minor versions of Kubernetes that the e2e suite runs on, such as 1.33.
	oldest, newest string
}

// factsOf reads the facts from the tree.
func factsOf(tree string, kinds []*kind) (facts, error) {
	var f facts
	var err error
	if f.modules, err = modulesOf(tree, kinds); err != nil {
		return f, err
	}
	for _, k := range kinds {
		if k.Module == "common" {
			f.shared = append(f.shared, k.Name)
		}
	}
	f.oldest, f.newest, err = testedKubernetes(tree)
	return f, err
}

// serverVersion matches the version of Kubernetes in the go.mod of a test server.
var serverVersion = regexp.MustCompile(`k8s\.io/kubernetes v1\.(\d+)\.`)

// testedKubernetes returns the oldest and the newest minor version of Kubernetes that has a test server.
func testedKubernetes(tree string) (oldest, newest string, err error) {
	files, err := filepath.Glob(filepath.Join(tree, "e2e", "servers", "kubernetes*", "go.mod"))
	if err != nil {
		return "", "", err
	}
	var minors []int
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // A file of the tree.
		if err != nil {
			return "", "", err
		}
		found := serverVersion.FindSubmatch(text)
		if found == nil {
			return "", "", errors.Errorf("%s requires no version of k8s.io/kubernetes", file)
		}
		minor, err := strconv.Atoi(string(found[1]))
		if err != nil {
			return "", "", err
		}
		minors = append(minors, minor)
	}
	if len(minors) == 0 {
		return "", "", errors.New("e2e/servers has no server of Kubernetes")
	}
	return "1." + strconv.Itoa(slices.Min(minors)), "1." + strconv.Itoa(slices.Max(minors)), nil
}

// products returns the products that all stores read, such as "Azure Key Vault".
func (f facts) products() []string {
	var out []string
	for _, m := range f.modules {
		for _, k := range m.kinds {
			out = append(out, k.products...)
		}
	}
	return out
}

// vendors returns the first word of each product once, where space is short.
func (f facts) vendors() []string {
	var out []string
	for _, p := range f.products() {
		vendor, _, _ := strings.Cut(p, " ")
		if !slices.Contains(out, vendor) {
			out = append(out, vendor)
		}
	}
	return out
}

// generators returns the names of all Kinds of generators.
func (f facts) generators() []string {
	var out []string
	for _, m := range f.modules {
		for _, k := range m.kinds {
			if k.generates != "" {
				out = append(out, k.kind)
			}
		}
	}
	return out
}

// words joins names as in a sentence: "a, b and c".
func words(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// codes joins names as code.
func codes(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = code(n)
	}
	return words(quoted)
}
