package main

import (
	"os"
	"path/filepath"
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
	}
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
		products, "`AcmeToken`", "`AcmeSecret` and `ClusterAcmeSecret`",
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
