package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLists writes every list into its page of this tree, for one module with a store that has a page, a generator and an
// event source that have one, and a Kind without a page.
func TestLists(t *testing.T) {
	f := facts{
		modules: []moduleKinds{{"provider-acme", "1.2.3", []kindPage{
			{"AcmeVault", "providers/acme.md", "", []string{"Acme Vault", "Acme Two", "Open Acme"}}, {"AcmeToken", "generators/acme.md", "tokens", nil},
			{"AcmeEvents", "events/acme.md", "", nil}, {"AcmeOther", "", "", nil},
		}}},
		shared: []string{"AcmeSecret", "ClusterAcmeSecret"}, kubernetes: []string{"1.50.7", "1.51.3", "1.52.1"},
		migrated: migrated{stores: []string{"acme", "old"}, classes: []string{"acme"}, generators: []string{"AcmeToken", "OldToken"}},
		limits:   []limit{{"reads", "Calls", "128", "--calls", "acme_waiting", "It waits."}},
		verdicts: "| it is used | keeps it |\n",
	}
	const noLimits = "| limit | default | flag | metric | when it is reached |\n|---|---|---|---|---|\n"
	const store, products, vendors = "(Acme Vault, Acme Two and Open Acme)", "Acme Vault, Acme Two and Open Acme", "Acme and Open"
	want := []string{
		"[AcmeVault](docs/providers/acme.md) " + store,
		"[AcmeToken](docs/generators/acme.md)",
		"[AcmeEvents](docs/events/acme.md)",
		"| `provider-acme` | [AcmeVault](../providers/acme.md) " + store + ", [AcmeToken](../generators/acme.md), [AcmeEvents](../events/acme.md), AcmeOther |\n",
		"| [AcmeToken](acme.md) | `provider-acme` | tokens |\n",
		"provider-acme:1.2.3",
		products, products, "`AcmeToken`", "1.50",
		vendors, products, vendors, products, "AcmeToken", "Acme, Open", vendors,
		products, "`AcmeToken`", "1.50", "`AcmeSecret` and `ClusterAcmeSecret`", "1.50", "1.50", products, "1.50 to 1.52",
		"1.50.7, 1.51.3 and 1.52.1", "1.52.1", "1.50.7", "1.50 to 1.52", `"<1.50.0-0 || >=1.53.0-0"`,
		"acme, open", "`acme` and `old`", "`acme`", "AcmeToken, OldToken",
		products, "`AcmeToken`", "`AcmeSecret` and `ClusterAcmeSecret`",
		"| it is used | keeps it |\n",
		noLimits + "| Calls | 128 | `--calls` | `acme_waiting` | It waits. |\n", noLimits, noLimits, noLimits, noLimits,
	}
	if len(want) != len(lists) {
		t.Fatalf("the test expects %d lists, there are %d", len(want), len(lists))
	}
	for i, l := range lists {
		page, err := os.ReadFile(filepath.Join("..", "..", l.page))
		if err != nil {
			t.Fatal(err)
		}
		once, err := l.in(string(page), f)
		if err != nil {
			t.Fatal(err)
		}
		again, err := l.in(once, f)
		if diff := cmp.Diff(once, again); err != nil || diff != "" {
			t.Errorf("%s changes when it is written again: error %v, -once, +again:\n%s", l.page, err, diff)
		}
		at := l.around.FindStringSubmatchIndex(once)
		if diff := cmp.Diff(want[i], once[at[3]:at[4]]); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", l.page, diff)
		}
	}
	if _, err := lists[0].in("a page without the list", f); err == nil {
		t.Error("a page without the list is no error")
	}
}

// TestProducts checks that each page of a store names its products first: in the title, which the search of the site ranks by, and in
// the first sentence, which is the description of the page. It also checks that each page has the parts that users look for.
func TestProducts(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	pages, err := titled(docs)
	if err != nil {
		t.Fatal(err)
	}
	for kind, p := range pages {
		if len(p.products) == 0 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(docs, p.page)) //nolint:gosec // A file of the tree.
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(string(text), "\n\n")
		first, _, _ := strings.Cut(body, ". ")
		for _, part := range []string{"\n```yaml values\n", "\n## Permissions\n", "\n## Log", "\n## Conditions\n", "\n## Errors\n"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s: the page of %s lacks %q, which the pages of all stores have", p.page, kind, part)
			}
		}
		for _, product := range p.products {
			if !strings.Contains(first, product) {
				t.Errorf("%s: the first sentence of the page of %s does not name %s: %s", p.page, kind, product, first)
			}
		}
	}
}

// TestProductOfStore checks that a page of a store without a product in its title is an error.
func TestProductOfStore(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "providers", "acme.md")
	if err := os.MkdirAll(filepath.Dir(page), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("# AcmeVault and ClusterAcmeVault\n\nA store.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := titled(docs); err == nil || !strings.Contains(err.Error(), "begin the title with the product") {
		t.Errorf("the error is %v, want one that asks for the product", err)
	}
}

// TestUnknownKeyword checks that an unknown constraint is an error.
func TestUnknownKeyword(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "common", "manifests", "crds", "x.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	crd := `{spec: {group: g, names: {kind: K}, versions: [{name: v1, schema: {openAPIV3Schema: {multipleOf: 2}}}]}}`
	if err := os.WriteFile(path, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKinds(root); err == nil || !strings.Contains(err.Error(), "multipleOf") {
		t.Errorf("the error is %v, want one that names the keyword", err)
	}
}

// TestExampleWithoutKind checks that a missing Kind is an error.
func TestExampleWithoutKind(t *testing.T) {
	if _, err := (assistants{tree: filepath.Join("..", "..")}).Example("generator-password", "password.yaml", "PushSecret"); err == nil {
		t.Error("an example without the Kind is no error")
	}
}

// TestMigratedWithoutRules checks that a file of which no rule can be read is an error.
func TestMigratedWithoutRules(t *testing.T) {
	tree := t.TempDir()
	if err := os.MkdirAll(filepath.Join(tree, "migrate"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"store.go", "csi.go", "generator.go"} {
		if err := os.WriteFile(filepath.Join(tree, "migrate", file), []byte("package migrate"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := migratedBy(tree); err == nil || !strings.Contains(err.Error(), "has no rules that can be read") {
		t.Errorf("got %v, want an error", err)
	}
}
