package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	number = `(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|twenty|\d+)`
	filler = `(?:(?:of|the|other|our|shared|common|cluster|namespaced|secret|more|supported|different|installable)[ -])`
	thing  = `(?:kinds?|crds?|modules?|operators|providers|stores|generators|event sources)`
)

var (
	counted = regexp.MustCompile(`(?i)\b` + number + `[ -]` + filler + `{0,3}` + thing + `\b`)
	// byFlag matches a flag that the chart has a value for.
	byFlag     = regexp.MustCompile(`--ambient-credentials`)
	kubernetes = regexp.MustCompile(`\bKubernetes 1\.\d+(?:\.\d+)?|\b1\.[34]\d(?:\.\d+)?\b`)
)

// allowed has the numbers, versions and lists that stay typed by hand, by page, with the reason.
var allowed = map[string]map[string]string{
	"README.md":                                {"30 providers": "those of another project", "AWS, Azure, Google, Vault": "those of another project"},
	"docs/events/event-receiver.md":            {"20 stores": "a limit of one object", "two modules": "what one object cannot use"},
	"docs/faq.md":                              {"two operators": "ours, and one of another project"},
	"docs/guides/moving-from-eso.md":           {"two operators": "ours, and one of another project"},
	"docs/guides/multi-tenancy.md":             {"two operators": "an example of a setup", "two stores": "an example of a setup"},
	"docs/operate/modules.md":                  {"two operators": "a case of two classes"},
	"docs/operate/operator.md":                 {"--ambient-credentials": "the table of values and their flags"},
	"docs/operate/runbook.md":                  {"two modules": "those of one object"},
	"docs/operate/sizing.md":                   {"three modules": "what was measured", "50 stores": "what was measured", "60 stores": "what hostile tenants have", "four event sources": "what hostile tenants have", "AWS, Azure, Google, Kubernetes, 1Password, Vault": "calls to each"},
	"docs/project/v1beta1.md":                  {"two providers": "those of one object"},
	"docs/reference/chart-values-of-others.md": {"Kubernetes 1.25": "a version that another chart needs"},
	"docs/reference/conditions.md":             {"two modules": "those of one object"},
	"docs/reference/push-ownership.md":         {"two stores": "those of one object"},
	"docs/reference/versions.md":               {"1.31": "the oldest version that has a field of CRDs; charts/versions_test.go checks it"},
	"docs/start/install.md":                    {"two operators": "ours, and one of another project"},
	"docs/start/why.md":                        {"30 providers": "those of another project", "AWS, Azure, Google, Vault": "those of another project"},
}

// typed returns what a text says about the project although the code knows it. These are numbers of Kinds, CRDs, modules, stores
// and generators, and versions of Kubernetes. It also returns flags that have a value of the chart, and lines that name four
// vendors or more.
func typed(text string, vendors []string) []string {
	found := slices.Concat(counted.FindAllString(text, -1), kubernetes.FindAllString(text, -1), byFlag.FindAllString(text, -1))
	isVendor := regexp.MustCompile(`\b(?:` + strings.Join(vendors, "|") + `)\b`)
	for line := range strings.SplitSeq(text, "\n") {
		named := isVendor.FindAllString(line, -1)
		in := slices.DeleteFunc(slices.Clone(vendors), func(v string) bool { return !slices.Contains(named, v) })
		if len(in) >= 4 {
			found = append(found, strings.Join(in, ", "))
		}
	}
	return found
}

// TestTyped plants sentences of the kind that became stale.
func TestTyped(t *testing.T) {
	vendors := []string{"AWS", "Azure", "Google", "Vault", "OpenBao"}
	cases := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"Generators": {"a number of generators is found", "| generated values | 9 Kinds |", []string{"9 Kinds"}},
		"Shared":     {"a number of shared CRDs is found, also with words between", "The chart has four CRDs, and six of the shared CRDs.", []string{"four CRDs", "six of the shared CRDs"}},
		"Cluster":    {"a number of cluster Kinds is found", "Seven cluster Kinds.", []string{"Seven cluster Kinds"}},
		"Modules":    {"all of a number is a number", "all four modules together", []string{"four modules"}},
		"Kubernetes": {"a version of Kubernetes is found", "You need Kubernetes 1.31 or newer. Tested: 1.35.4.", []string{"Kubernetes 1.31", "1.35.4"}},
		"Vendors":    {"a list of vendors is found", "from AWS, Vault, OpenBao and Google Cloud", []string{"AWS, Google, Vault, OpenBao"}},
		"Flag":       {"a flag is found where the chart has a value", "It needs `--ambient-credentials`.", []string{"--ambient-credentials"}},
		"Other":      {"other numbers and versions, and fewer vendors, are no fault", "Wait ten minutes for Go 1.21 and Helm 3.14. AWS, Vault and Google.", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, typed(tc.text, vendors)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTypedByHand finds what pages type by hand although the code knows it: write it with a list of filled.go, leave the number out, or
// allow it with a reason.
func TestTypedByHand(t *testing.T) {
	tree := filepath.Join("..", "..")
	kinds, err := loadKinds(tree)
	if err != nil {
		t.Fatal(err)
	}
	f, err := factsOf(tree, kinds)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]string{}
	for _, page := range handWritten(t, tree) {
		text, err := os.ReadFile(filepath.Join(tree, page)) //nolint:gosec // A file of the tree.
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range typed(withoutLists(page, string(text)), f.vendors()) {
			if got[page] == nil {
				got[page] = map[string]string{}
			}
			got[page][what] = allowed[page][what]
		}
	}
	if diff := cmp.Diff(allowed, got); diff != "" {
		t.Errorf("typed by hand: -allowed, +found:\n%s", diff)
	}
}

// withoutLists returns a page without what `hack/docs` writes into it.
func withoutLists(page, text string) string {
	for _, l := range lists {
		if at := l.around.FindStringSubmatchIndex(text); l.page == page && at != nil {
			text = text[:at[3]] + text[at[4]:]
		}
	}
	return text
}

// handWritten returns the texts of the front, the site and the charts that no command writes as a whole.
func handWritten(t *testing.T, tree string) []string {
	t.Helper()
	skipped := map[string]bool{"node_modules": true, "dist": true, "cache": true}
	pages := map[string]bool{"README.md": true, "CONTRIBUTING.md": true, "SECURITY.md": true}
	for _, root := range []string{"docs", "charts", filepath.Join("hack", "docs"), filepath.Join("cmd", "dsctl")} {
		err := filepath.WalkDir(filepath.Join(tree, root), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && skipped[d.Name()]:
				return filepath.SkipDir
			case !isText.MatchString(path) || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path) //nolint:gosec // A file of the tree.
			if err != nil || strings.HasPrefix(string(text), "<!-- Made by `make") {
				return err
			}
			rel, err := filepath.Rel(tree, path)
			pages[filepath.ToSlash(rel)] = true
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(pages))
}

var isText = regexp.MustCompile(`(?:\.md|\.vue|config\.mjs|NOTES\.txt|\.tmpl)$|cmd/dsctl/[^/]*\.go$`)
