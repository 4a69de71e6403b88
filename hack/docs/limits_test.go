package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLimits reads the limits of packages.
func TestLimits(t *testing.T) {
	const at = "x.go:5:1: "
	cases := map[string]struct {
		reason string
		decl   string
		want   []limit
		err    string
	}{
		"Expression":  {"a constant is evaluated", "//limit:reads Calls | flag=calls | metric=m{a=\"b\"} | unit=a second | It waits.\nconst a = 2*b + 10\nconst b = 4096", []limit{{"reads", "Calls", "8,202 a second", "--calls", `m{a="b"}`, "It waits."}}, ""},
		"Bytes":       {"bytes are shown as KiB", "//limit:memory Part | unit=bytes a second | It waits.\nconst a = 4 << 10", []limit{{"memory", "Part", "4 KiB a second", "", "", "It waits."}}, ""},
		"HalfMiB":     {"half a MiB is shown as such", "//limit:memory Part | unit=bytes | It waits.\nvar a = 3 << 19", []limit{{"memory", "Part", "1.5 MiB", "", "", "It waits."}}, ""},
		"Duration":    {"a duration is text", "//limit:objects Search | It ends.\nconst a = 366 * 24 * time.Hour", []limit{{"objects", "Search", "366d", "", "", "It ends."}}, ""},
		"Short":       {"a duration of less than a second has its unit", "//limit:objects Search | It ends.\nconst a = 100 * time.Millisecond", []limit{{"objects", "Search", "100ms", "", "", "It ends."}}, ""},
		"Section":     {"an unknown section is an error", "//limit:other Calls | It waits.\nconst a = 1", nil, at + "want SECTION NAME"},
		"NoEffect":    {"a limit says what the user sees", "//limit:reads Calls | flag=calls\nconst a = 1", nil, at + "want SECTION NAME"},
		"Field":       {"an unknown field is an error", "//limit:reads Calls | flags=calls | It waits.\nconst a = 1", nil, at + `unknown field "flags=calls"`},
		"NoValue":     {"a text is no limit", "//limit:reads Calls | It waits.\nconst a = \"b\"", nil, at + "a has no value that is a known integer"},
		"NoConstant":  {"a limit at a function would be lost", "//limit:reads Calls | It waits.\nfunc a() {}", nil, at + "a limit is described at no constant"},
		"TwoOnALine":  {"one limit has one value", "//limit:reads Calls | It waits.\nconst a, b = 1, 2", nil, at + "declare a limit on a line of its own"},
		"OtherImport": {"a package that cannot be read is ignored", "var c http.Client\n//limit:reads Calls | It waits.\nconst a = 1", []limit{{"reads", "Calls", "1", "", "", "It waits."}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			src := "package x\n\nimport (\"net/http\"; \"time\")\n\n" + tc.decl + "\n"
			if err := os.WriteFile(filepath.Join(tree, "x.go"), []byte(src), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := limitsOf(tree)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

// TestLimitsExist checks that the flags and metrics of all limits are documented.
func TestLimitsExist(t *testing.T) {
	tree := filepath.Join("..", "..")
	limits, err := limitsOf(tree)
	if err != nil || len(limits) == 0 {
		t.Fatalf("%d limits, error %v", len(limits), err)
	}
	metrics, err := os.ReadFile(filepath.Join(tree, "docs", "operate", "operator.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"": true}
	for _, f := range flags() {
		known["--"+f.Name] = true
	}
	for _, l := range limits {
		metric, labels, _ := strings.Cut(l.Metric, "{")
		_, label, _ := strings.Cut(strings.TrimSuffix(labels, `"}`), `"`)
		if !known[l.Flag] || !strings.Contains(string(metrics), "`"+metric+"`") && metric != "" || !strings.Contains(string(metrics), "`"+label+"`") && label != "" {
			t.Errorf("%s: no documented flag %q or metric %q", l.Name, l.Flag, l.Metric)
		}
	}
}
