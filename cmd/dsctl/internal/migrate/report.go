package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/output"
)

// A Report lists how each object and field is converted.
type Report struct {
	Objects []ObjectReport `json:"objects"`
	// Others are places in other files that are to be changed by hand.
	Others []Note `json:"others,omitempty"`
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
	if show := o.hidden; show != nil {
		one.Name.Name, one.Namespace, one.Findings = show.Show(one.Name.Name), show.Show(one.Namespace), slices.Clone(one.Findings)
		for i, f := range one.Findings {
			one.Findings[i].Reason, one.Findings[i].Todo = show.Show(f.Reason), show.Show(f.Todo)
		}
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

// Text returns the report for a terminal: what is exact in a line, the rest with reasons.
func (r *Report) Text() output.Lines {
	var b output.Lines
	for _, o := range r.Objects {
		becomes := ""
		if len(o.To) > 0 {
			becomes = " -> " + strings.Join(o.To, ", ")
		}
		b.Add("%-11s  %s%s", o.Verdict, o.Name, becomes)
		for _, f := range o.Findings {
			if f.Verdict == Exact {
				continue
			}
			b.Add("             %s%s", prefixed(f.Field, ": "), f.Reason)
			if f.Todo != "" {
				b.Add("             %*s-> %s", 2, "", f.Todo)
			}
		}
	}
	if len(r.Others) > 0 {
		b.Add("")
		b.Add("Other places to change by hand:")
	}
	for _, n := range r.Others {
		b.Add("%s:%d: %s", n.File, n.Line, n.Reason)
		b.Add("  -> %s", n.Todo)
	}
	c := r.counts()
	b.Add("")
	b.Add("%d exact, %d changed, %d unsupported", c[Exact], c[Changed], c[Unsupported])
	return b
}

// Markdown returns the report as a page: a table of objects, and one of fields for each.
func (r *Report) Markdown() output.Lines {
	c := r.counts()
	b := output.Lines{"# Conversion to direct-secrets", ""}
	b.Add("%d exact, %d changed, %d unsupported.", c[Exact], c[Changed], c[Unsupported])
	b = append(b, "", "| object | verdict | becomes |", "|---|---|---|")
	for _, o := range r.Objects {
		b.Add("| %s | %s | %s |", cell(o.String()), o.Verdict, strings.Join(o.To, ", "))
	}
	for _, o := range r.Objects {
		if len(o.Findings) == 0 {
			continue
		}
		b.Add("")
		b.Add("## %s", o.Name)
		b = append(b, "", "| field | becomes | verdict | why | what to do |", "|---|---|---|---|---|")
		for _, f := range o.Findings {
			b.Add("| %s | %s | %s | %s | %s |", cell(f.Field), cell(f.To), f.Verdict, cell(f.Reason), cell(f.Todo))
		}
	}
	return b
}

// cell returns a text for a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(s, "|", `\|`)
}

func prefixed(s, after string) string {
	if s == "" {
		return ""
	}
	return s + after
}
