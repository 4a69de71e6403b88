package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBeyond checks the limits of types and files.
func TestBeyond(t *testing.T) {
	const clause = "package p\n"
	methods := func(receiver string, n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("func (t " + receiver + ") m" + strings.Repeat("x", i) + "() {}\n")
		}
		return b.String()
	}
	fields := func(n int) string { return "struct {\n\tO\n\ta" + strings.Repeat(", a", n-2) + " int\n}\n" }
	lines := func(n int) string { return clause + strings.Repeat("\n", n-1) }
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Within":      {"A type at its limits is accepted.", map[string]string{"p.go": clause + "type T " + fields(14) + methods("T", 20), "q.go": lines(400)}, nil},
		"Fields":      {"An embedded type, and each of several names, counts as a field.", map[string]string{"p.go": clause + "type T " + fields(15)}, []string{"p.go:2:6: T has 15 fields (at most 14)"}},
		"Methods":     {"Methods in all files of the package are counted.", map[string]string{"p.go": clause + "type T int\n" + methods("*T", 20), "q.go": clause + "func (T) more() {}"}, []string{"p.go:2:6: T has 21 methods (at most 20)"}},
		"Generic":     {"Type parameters do not make another type.", map[string]string{"p.go": clause + "type T[A any] int\ntype U[A, B any] int\n" + methods("*T[A]", 21) + methods("U[A, B]", 21)}, []string{"p.go:2:6: T has 21 methods (at most 20)", "p.go:3:6: U has 21 methods (at most 20)"}},
		"Interface":   {"The methods of an interface are counted.", map[string]string{"p.go": clause + "type T interface {\n" + strings.Repeat("\tm()\n", 21) + "}"}, []string{"p.go:2:6: T has 21 methods (at most 20)"}},
		"Lines":       {"A file that is too long is reported.", map[string]string{"p.go": lines(401)}, []string{"p.go: the file has 401 lines (at most 400)"}},
		"Exempt":      {"A type with a reason above it is exempt.", map[string]string{"p.go": clause + "// T is wide.\n//\n//structure:exempt It is a field for each flag.\ntype T " + fields(15)}, nil},
		"ExemptFile":  {"A file with a reason above the package clause is exempt.", map[string]string{"p.go": "//structure:exempt It is one table.\n\n" + lines(401)}, nil},
		"NotTheFile":  {"A reason below the package clause does not exempt the file.", map[string]string{"p.go": clause + "//structure:exempt It is a field for each flag.\ntype T " + fields(15) + strings.Repeat("\n", 400)}, []string{"p.go: the file has 406 lines (at most 400)"}},
		"NoReason":    {"An exemption without a reason is reported.", map[string]string{"p.go": clause + "//structure:exempt\ntype T " + fields(15)}, []string{"p.go:3:6: //structure:exempt does not say why"}},
		"NeedsNone":   {"An exemption that is no longer needed is reported.", map[string]string{"p.go": clause + "//structure:exempt It was wide.\ntype T " + fields(14)}, []string{"p.go:3:6: T needs no //structure:exempt"}},
		"SeveralOver": {"All limits of a type are reported together.", map[string]string{"p.go": clause + "type T " + fields(15) + methods("T", 21)}, []string{"p.go:2:6: T has 21 methods (at most 20), 15 fields (at most 14)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := check(module(tc.files), false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ncheck(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
