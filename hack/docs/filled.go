package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A list is a part of a page that says what the code knows: each module, Kind or product, or the versions that are tested.
type list struct {
	page string
	// around matches the list, and has two groups: the text before it and the text after it.
	around *regexp.Regexp
	text   func(f facts) string
}

// lists are those parts of pages that are otherwise written by hand.
var lists = []list{
	{"README.md", regexp.MustCompile(`(\| stores \| ).*(, \[cluster stores\])`), func(f facts) string { return links(f.modules, "docs", "providers") }},
	{"README.md", regexp.MustCompile(`(\| generators \| \[overview\]\(docs/generators/index\.md\), ).*( \|\n)`), func(f facts) string { return links(f.modules, "docs", "generators") }},
	{"README.md", regexp.MustCompile(`(\| events \| ).*(, \[EventReceiver\])`), func(f facts) string { return links(f.modules, "docs", "events") }},
	{"docs/start/install.md", regexp.MustCompile(`(\| module \| Kinds \|\n\|---\|---\|\n)(?:\|.*\n)*()`), moduleRows},
	{"docs/generators/index.md", regexp.MustCompile(`(\| Kind \| module \| generates \|\n\|---\|---\|---\|\n)(?:\|.*\n)*()`), generatorRows},
	{"docs/operate/images.md", regexp.MustCompile(`(\nfor image in ).*(; do\n  crane copy)`), images},

	{"README.md", regexp.MustCompile(`(\nStores: )[^.\n]*(\.\n)`), allProducts},
	{"README.md", regexp.MustCompile(`(\| stores \| )[^\[|]*( \| more than)`), allProducts},
	{"README.md", regexp.MustCompile(`(\| generated values \| )[^|]*( \|)`), allGenerators},
	{"README.md", regexp.MustCompile(`(an EKS cluster with Kubernetes )\S*( or newer)`), oldest},
	{"docs/index.md", regexp.MustCompile(`(titleTemplate: Kubernetes Secrets from ).*(\n)`), allVendors},
	{"docs/index.md", regexp.MustCompile(`(copies secrets from )[^"]*( into Kubernetes Secrets and keeps)`), allProducts},
	{"docs/index.md", regexp.MustCompile(`(- title: )[^:\n]*(\n  details: "Stores: )`), allVendors},
	{"docs/index.md", regexp.MustCompile(`(details: "Stores: )[^.]*(\. )`), allProducts},
	{"docs/index.md", regexp.MustCompile(`(A PushSecret writes a Secret to a store\. Generators: )[^."]*(\.)`), func(f facts) string { return words(f.generators()) }},
	{"docs/.vitepress/theme/SecretPath.vue", regexp.MustCompile(`(title: 'Secret store', text: ')[^']*(')`), func(f facts) string { return strings.Join(f.vendors(), ", ") }},
	{"docs/.vitepress/config.mjs", regexp.MustCompile(`(description: 'Kubernetes Secrets from )[^:']*(: each provider)`), allVendors},
	{"docs/start/why.md", regexp.MustCompile(`(\| stores \| )[^|]*( \|)`), allProducts},
	{"docs/start/why.md", regexp.MustCompile(`(\| generated values \| )[^|]*( \|)`), allGenerators},
	{"docs/start/install.md", regexp.MustCompile(`(\| Kubernetes \| )\S*( or newer)`), oldest},
	{"docs/start/install.md", regexp.MustCompile(`(and those that all modules share: )[^.]*(\. Helm)`), func(f facts) string { return codes(f.shared) }},
	{"docs/operate/static-manifests.md", regexp.MustCompile(`(without Helm, on Kubernetes )\S*( or newer)`), oldest},
	{"docs/guides/moving-from-eso.md", regexp.MustCompile(`(\| direct-secrets \| Kubernetes )\S*( or newer)`), oldest},
	{"docs/guides/moving-from-eso.md", regexp.MustCompile(`(\| providers other than )[^:|]*(: )`), allProducts},
	{"docs/reference/versions.md", regexp.MustCompile(`(\| Kubernetes \| )[^|]*( \|)`), tested},
	{"docs/reference/versions.md", regexp.MustCompile(`(the whole e2e suite on ).*(, each night)`), func(f facts) string { return words(f.kubernetes) }},
	{"docs/reference/versions.md", regexp.MustCompile(`(every change on )\S*( \|)`), func(f facts) string { return f.kubernetes[len(f.kubernetes)-1] }},
	{"CONTRIBUTING.md", regexp.MustCompile(`(\nK8S=)\S*( make e2e)`), func(f facts) string { return f.kubernetes[0] }},
	{"charts/direct-secrets/templates/NOTES.txt", regexp.MustCompile(`(direct-secrets is tested with )\S+ to \S+(\.\n)`), tested},
	{"charts/direct-secrets/templates/NOTES.txt", regexp.MustCompile(`(if semverCompare )"[^"]*"( \.Capabilities\.KubeVersion)`), func(f facts) string {
		return fmt.Sprintf(`"<%s.0-0 || >=%s.0-0"`, f.oldest(), minor(f.kubernetes[len(f.kubernetes)-1], 1))
	}},
	{"charts/direct-secrets/Chart.yaml", regexp.MustCompile(`(\nkeywords: \[secrets, secret-management, operator, external-secrets, )[^\]]*(\])`), func(f facts) string {
		return strings.ToLower(strings.Join(f.vendors(), ", "))
	}},
	{"docs/reference/dsctl.md", regexp.MustCompile(`(\| SecretStore, ClusterSecretStore with one of the providers )[^|]*( \|)`), func(f facts) string { return codes(f.migrated.stores) }},
	{"docs/reference/dsctl.md", regexp.MustCompile(`(\| SecretProviderClass with one of the providers )[^|]*( \|)`), func(f facts) string { return codes(f.migrated.classes) }},
	{"docs/reference/dsctl.md", regexp.MustCompile(`(\n\| )[^|]*(, and ClusterGenerator with one of them \|)`), func(f facts) string { return strings.Join(f.migrated.generators, ", ") }},
	{"docs/project/changelog.md", regexp.MustCompile(`(\| stores \| )[^|]*(, each with a cluster Kind)`), allProducts},
	{"docs/project/changelog.md", regexp.MustCompile(`(\| generators \| )[^|]*( \|)`), allGenerators},
	{"docs/project/changelog.md", regexp.MustCompile(`(\| Kinds \| )[^|]*( \|)`), func(f facts) string { return codes(f.shared) }},

	{"docs/reference/push-ownership.md", regexp.MustCompile(`(\| if \| the operator \|\n\|---\|---\|\n)(?:\|.*\n)*()`), func(f facts) string { return f.verdicts }},
	limitTable("reads"), limitTable("objects"), limitTable("memory"), limitTable("watches"), limitTable("events"),
}

func allProducts(f facts) string   { return words(f.products()) }
func allVendors(f facts) string    { return words(f.vendors()) }
func allGenerators(f facts) string { return codes(f.generators()) }
func oldest(f facts) string        { return f.oldest() }
func tested(f facts) string        { return f.oldest() + " to " + f.newest() }

func moduleRows(f facts) string {
	rows := ""
	for _, m := range f.modules {
		rows += "| " + code(m.name) + " | " + links([]moduleKinds{m}, "..", "") + " |\n"
	}
	return rows
}

func generatorRows(f facts) string {
	rows := ""
	for _, m := range f.modules {
		for _, k := range m.kinds {
			if k.generates != "" {
				rows += "| [" + k.kind + "](" + path.Base(k.page) + ") | " + code(m.name) + " | " + k.generates + " |\n"
			}
		}
	}
	return rows
}

func images(f facts) string {
	names := make([]string, len(f.modules))
	for i, m := range f.modules {
		names[i] = m.name + ":" + m.version
	}
	return strings.Join(names, " ")
}

// fill writes the lists into their pages.
func fill(tree string, f facts) error {
	for _, l := range lists {
		file := filepath.Join(tree, l.page)
		text, err := os.ReadFile(file) //nolint:gosec // A file of the tree.
		if err != nil {
			return err
		}
		filled, err := l.in(string(text), f)
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
func (l list) in(text string, f facts) (string, error) {
	at := l.around.FindStringSubmatchIndex(text)
	if at == nil {
		return "", errors.Errorf("%s has no list that matches %s", l.page, l.around)
	}
	return text[:at[3]] + l.text(f) + text[at[4]:], nil
}
