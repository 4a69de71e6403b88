package migrate

import (
	"fmt"
	"io"
	"strings"
)

// A Report lists how each object and field is converted.
type Report struct {
	Objects []ObjectReport `json:"objects"`
}

// An ObjectReport is that of one object, or of a document that cannot be read.
type ObjectReport struct {
	Name

	// To are the Kinds that it becomes; empty if it stays as it is.
	To       []string  `json:"to,omitempty"`
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings,omitempty"`
}

func (r *Report) add(o *object) {
	one := ObjectReport{Name: o.Name, To: o.kinds(), Verdict: o.verdict(), Findings: o.findings}
	if one.Verdict == Unsupported {
		one.To = nil
	}
	r.Objects = append(r.Objects, one)
}

func (r *Report) unreadable(d *document) {
	r.Objects = append(r.Objects, ObjectReport{
		Name: Name{File: d.source, Line: d.line}, Verdict: Unsupported,
		Findings: []Finding{{Verdict: Unsupported, Reason: d.err.Error(), Todo: "correct the document; it is left as it is"}},
	})
}

// Verdict is the worst of all objects.
func (r *Report) Verdict() Verdict {
	all := Exact
	for _, o := range r.Objects {
		all = worse(all, o.Verdict)
	}
	return all
}

// counts returns how many objects have each verdict.
func (r *Report) counts() map[Verdict]int {
	all := map[Verdict]int{}
	for _, o := range r.Objects {
		all[o.Verdict]++
	}
	return all
}

// String returns kind, namespace and name, or the place of a document that cannot be read.
func (n Name) String() string {
	place := fmt.Sprintf("%s:%d", n.File, n.Line)
	if n.Kind == "" {
		return place
	}
	name := n.Name
	if n.Namespace != "" {
		name = n.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s (%s)", n.Kind, name, place)
}

// Text writes the report for a terminal: what is exact in a line, the rest with reasons.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, o := range r.Objects {
		fmt.Fprintf(&b, "%-11s  %s", o.Verdict, o.Name)
		if len(o.To) > 0 {
			fmt.Fprintf(&b, " -> %s", strings.Join(o.To, ", "))
		}
		b.WriteByte('\n')
		for _, f := range o.Findings {
			if f.Verdict == Exact {
				continue
			}
			fmt.Fprintf(&b, "             %s%s\n", prefixed(f.Field, ": "), f.Reason)
			if f.Todo != "" {
				fmt.Fprintf(&b, "             %*s-> %s\n", 2, "", f.Todo)
			}
		}
	}
	c := r.counts()
	fmt.Fprintf(&b, "\n%d exact, %d changed, %d unsupported\n", c[Exact], c[Changed], c[Unsupported])
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the report as a page: a table of objects, and one of fields for each.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	c := r.counts()
	fmt.Fprintf(&b, "# Conversion to direct-secrets\n\n%d exact, %d changed, %d unsupported.\n\n| object | verdict | becomes |\n|---|---|---|\n", c[Exact], c[Changed], c[Unsupported])
	for _, o := range r.Objects {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(o.String()), o.Verdict, strings.Join(o.To, ", "))
	}
	for _, o := range r.Objects {
		if len(o.Findings) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| field | becomes | verdict | why | what to do |\n|---|---|---|---|---|\n", o.Name)
		for _, f := range o.Findings {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(f.Field), cell(f.To), f.Verdict, cell(f.Reason), cell(f.Todo))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell returns a text for a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

func prefixed(s, after string) string {
	if s == "" {
		return ""
	}
	return s + after
}
