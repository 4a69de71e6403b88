package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// facts are what pages say about the whole project, as the code has it.
type facts struct {
	modules []moduleKinds
	// shared are the Kinds of common, which every module serves.
	shared []string
	// kubernetes are the versions that the e2e suite runs on, such as 1.33.13, the oldest first.
	kubernetes []string
	migrated   migrated
	// limits are those of the code.
	limits []limit
	// verdicts is the table of verdictsOf.
	verdicts string
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
	if f.kubernetes, err = testedKubernetes(tree); err != nil {
		return f, err
	}
	if f.limits, err = limitsOf(tree); err != nil {
		return f, err
	}
	if f.verdicts, err = verdictsOf(tree); err != nil {
		return f, err
	}
	f.migrated, err = migratedBy(tree)
	return f, err
}

// serverVersion matches the version of Kubernetes in the go.mod of a test server.
var serverVersion = regexp.MustCompile(`k8s\.io/kubernetes v(\d+\.\d+\.\d+)`)

// testedKubernetes returns the versions of Kubernetes that have a test server, the oldest first.
func testedKubernetes(tree string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(tree, "e2e", "servers", "kubernetes*", "go.mod"))
	if err != nil {
		return nil, err
	}
	var found []*version.Version
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // A file of the tree.
		if err != nil {
			return nil, err
		}
		of := serverVersion.FindSubmatch(text)
		if of == nil {
			return nil, errors.Errorf("%s requires no version of k8s.io/kubernetes", file)
		}
		found = append(found, version.MustParseSemantic(string(of[1])))
	}
	if len(found) == 0 {
		return nil, errors.New("e2e/servers has no server of Kubernetes")
	}
	slices.SortFunc(found, func(a, b *version.Version) int {
		if a.LessThan(b) {
			return -1
		}
		return 1
	})
	out := make([]string, len(found))
	for i, v := range found {
		out[i] = v.String()
	}
	return out, nil
}

// oldest returns the oldest supported minor version of Kubernetes, such as 1.33.
func (f facts) oldest() string { return minor(f.kubernetes[0], 0) }

// newest returns the newest supported minor version.
func (f facts) newest() string { return minor(f.kubernetes[len(f.kubernetes)-1], 0) }

// minor returns the minor version that follows that of v by a number of releases.
func minor(v string, later uint) string {
	of := version.MustParseSemantic(v)
	return fmt.Sprintf("%d.%d", of.Major(), of.Minor()+later)
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
