// Command conformance runs the conformance tests of all providers and generators, and writes their results to a page of the
// docs: for each Kind and server the capabilities, with the number of checks. A module of another repository names its page
// and its folder.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
)

// openBao is what is known of a server that the suites do not start.
const openBao = `A server of OpenBao 2.6 was tried by hand on 2026-11-25: the suites of ` + "`" + `provider-vault` + "`" + ` passed, except for two tests of settings of Vault.
Both have been changed for OpenBao, and not been run there again. CI does not run OpenBao. To run the suites against a server of your own, see [CONTRIBUTING](https://github.com/direct-secrets/direct-secrets/blob/main/CONTRIBUTING.md#a-vault-or-openbao-of-your-own).
`

// tests are the tests that publish results.
const tests = "^(TestConformance.*|TestPushModel.*|TestGenerates|TestAnswersOfOpenBao)$"

// capabilities are the columns of the table.
var capabilities = []string{"Read", "BatchRead", "Find", "Check", "Identity", "Write", "Push", "Generate", "Receive"}

func main() {
	page := flag.String("page", "docs/reference/conformance.md", "the page to write")
	flag.Parse()
	modules, err := flag.Args(), error(nil)
	if len(modules) == 0 {
		modules, err = ownModules(".")
	}
	if err := errors.Join(err, run(*page, modules, time.Now())); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// ownModules returns the folders of the modules of this tree.
func ownModules(tree string) (folders []string, err error) {
	mains, err := filepath.Glob(filepath.Join(tree, "*-*", "main.go"))
	for _, m := range mains {
		folders = append(folders, filepath.Dir(m))
	}
	return folders, err
}

func run(page string, modules []string, now time.Time) error {
	var all []conformance.Result
	var failed []error
	for _, module := range modules {
		cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout=30m", "-run", tests, "./...")
		cmd.Dir, cmd.Stderr = module, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", module, err))
		}
		of, err := parse(out)
		if err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
		fmt.Printf("%s: %d results\n", module, len(of))
		all = append(all, of...)
	}
	if err := os.WriteFile(page, []byte(write(all, now)), 0o644); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// parse returns the results in the output of tests.
func parse(out []byte) ([]conformance.Result, error) {
	var all []conformance.Result
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		_, raw, found := strings.Cut(lines.Text(), conformance.ResultPrefix)
		if !found {
			continue
		}
		var r conformance.Result
		if err := json.Unmarshal([]byte(raw), &r); err != nil {
			return nil, fmt.Errorf("a result is no JSON: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

// A row is a Kind with a server.
type row struct{ kind, service string }

// write returns the page.
func write(all []conformance.Result, now time.Time) string {
	rows := map[row]map[string]conformance.Result{}
	without := map[row]map[string]string{}
	for _, r := range all {
		at := row{r.Kind, r.Service}
		if rows[at] == nil {
			rows[at], without[at] = map[string]conformance.Result{}, map[string]string{}
		}
		sum := rows[at][r.Capability]
		sum.Passed, sum.Failed = sum.Passed+r.Passed, sum.Failed+r.Failed
		rows[at][r.Capability] = sum
		maps.Copy(without[at], r.Without)
	}
	order := slices.SortedFunc(maps.Keys(rows), func(a, b row) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.service, b.service))
	})
	b := &strings.Builder{}
	fmt.Fprintf(b, `# Conformance

Each Kind passes a [suite of checks](../project/writing-a-provider.md) against a server. A number is how many checks passed, or for Push how many random
sequences of pushes, failures and crashes. The cluster Kind of a store uses the same client. `+"`make conformance`"+` makes this page.

Results of %s:

| Kind | server | %s |
|---|---|%s
`, now.UTC().Format(time.DateOnly), strings.Join(capabilities, " | "), strings.Repeat("---|", len(capabilities)))
	for _, at := range order {
		fmt.Fprintf(b, "| `%s` | %s |", at.kind, at.service)
		for _, c := range capabilities {
			r, has := rows[at][c]
			switch {
			case !has:
				b.WriteString(" – |")
			case r.Failed > 0:
				fmt.Fprintf(b, " **%d of %d failed** |", r.Failed, r.Passed+r.Failed)
			default:
				fmt.Fprintf(b, " %d |", r.Passed)
			}
		}
		b.WriteString("\n")
	}
	if slices.ContainsFunc(order, func(r row) bool { return r.kind == "VaultKV" }) {
		b.WriteString("\n" + openBao)
	}
	b.WriteString("\nThese checks are not made:\n\n| Kind | server | check | reason |\n|---|---|---|---|\n")
	for _, at := range order {
		for _, name := range slices.Sorted(maps.Keys(without[at])) {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", at.kind, at.service, name, without[at][name])
		}
	}
	return b.String()
}
