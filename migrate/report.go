package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// A Report lists how each object and field is converted.
type Report struct {
	Objects []ObjectReport `json:"objects"`
	// Others are places in other files that are to be changed by hand.
	Others []Note `json:"others,omitempty"`
	// Verified is nil without --verify.
	Verified *Verified `json:"verified,omitempty"`
}

// Verified counts the kustomizations that were built, and those whose build is as a conversion of the former one.
type Verified struct {
	Kustomizations int `json:"kustomizations"`
	Equal          int `json:"equal"`
}

// An ObjectReport is that of one object, or of a document that cannot be read.
type ObjectReport struct {
	Name

	// To are the Kinds that it becomes; empty if it stays as it is.
	To       []string  `json:"to,omitempty"`
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings,omitempty"`
}

// A Note names something that is to be changed by hand.
type Note struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Todo   string `json:"todo"`
	// Accepted says that the user has decided about it.
	Accepted bool `json:"accepted,omitempty"`
}

func (r *Report) add(o *object) {
	one := ObjectReport{Name: o.Name, To: o.kinds(), Verdict: o.verdict(), Findings: o.findings}
	if one.Verdict == Unsupported {
		one.To = nil
	}
	if o.isKept() {
		one.Verdict, one.Findings = Changed, append(slices.Clone(one.Findings), o.keptFinding())
		switch {
		case o.keptBefore:
			one.To = []string{o.Kind}
		case !o.notKept:
			one.To = append(one.To, o.Kind)
		}
	}
	if show := o.hidden; show != nil {
		one.Name.Name, one.Namespace, one.Findings = show.Show(one.Name.Name), show.Show(one.Namespace), slices.Clone(one.Findings)
		for i, f := range one.Findings {
			one.Findings[i].Reason, one.Findings[i].Todo = show.Show(f.Reason), show.Show(f.Todo)
			one.Findings[i].Cause, one.Findings[i].Subject = show.Show(f.Cause), show.Show(f.Subject)
		}
	}
	r.Objects = append(r.Objects, one)
}

// addWorkloads adds the workloads for which there are findings.
func (r *Report) addWorkloads(all []*workload) {
	for _, w := range all {
		if len(w.findings) == 0 {
			continue
		}
		one := ObjectReport{Name: w.Name, Verdict: Exact, Findings: w.findings}
		if w.edited {
			one.To = []string{w.Kind}
		}
		for _, f := range w.findings {
			one.Verdict = worse(one.Verdict, f.Verdict)
		}
		r.Objects = append(r.Objects, one)
	}
}

func (r *Report) unreadable(d *document) {
	r.Objects = append(r.Objects, ObjectReport{
		Name: Name{File: d.source, Line: d.line}, Verdict: Unsupported,
		Findings: []Finding{{Verdict: Unsupported, Reason: d.err.Error(), Todo: "correct the document; it is left as it is"}},
	})
}

// Accept marks what a former report has, too, as accepted. Lines can differ; each finding accepts one.
func (r *Report) Accept(former Report) {
	type key struct{ file, kind, namespace, name, field, reason string }
	accepted := map[key]int{}
	of := func(o ObjectReport, f Finding) key {
		return key{o.File, o.Kind, o.Namespace, o.Name.Name, f.Field, f.Reason}
	}
	for _, o := range former.Objects {
		for _, f := range o.Findings {
			accepted[of(o, f)]++
		}
	}
	for _, n := range former.Others {
		accepted[key{file: n.File, reason: n.Reason}]++
	}
	accept := func(k key) bool {
		accepted[k]--
		return accepted[k] >= 0
	}
	for _, o := range r.Objects {
		for i, f := range o.Findings {
			o.Findings[i].Accepted = f.Verdict != Exact && accept(of(o, f))
		}
	}
	for i, n := range r.Others {
		r.Others[i].Accepted = accept(key{file: n.File, reason: n.Reason})
	}
}

// Verdict is the worst of all that is not accepted. Other places are changes.
func (r *Report) Verdict() Verdict {
	all := Exact
	for _, o := range r.Objects {
		for _, f := range o.Findings {
			if !f.Accepted {
				all = worse(all, f.Verdict)
			}
		}
	}
	if slices.ContainsFunc(r.Others, func(n Note) bool { return !n.Accepted }) {
		all = worse(all, Changed)
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

// summary says in a few lines what became of all objects.
func (r *Report) summary() output.Lines {
	counts, accepted, open := map[Verdict]int{}, 0, 0
	for _, o := range r.Objects {
		counts[o.Verdict]++
		for _, f := range o.Findings {
			if f.Accepted {
				accepted++
			}
		}
	}
	for _, n := range r.Others {
		if n.Accepted {
			accepted++
			continue
		}
		open++
	}
	var b output.Lines
	b.Add("%d exact, %d changed, %d unsupported", counts[Exact], counts[Changed], counts[Unsupported])
	if len(r.Objects) == 0 {
		b.Add("no object of External Secrets Operator was found")
	}
	if open > 0 {
		b.Add("%d other places to change by hand", open)
	}
	if v := r.Verified; v != nil {
		b.Add("%d of %d kustomizations build the same objects as before, converted", v.Equal, v.Kustomizations)
	}
	if accepted > 0 {
		b.Add("%d findings are accepted", accepted)
	}
	return b
}

// A cause is a reason that objects have in common.
type cause struct {
	verdict             Verdict
	reason, todo, field string
	objects             int
	examples            []string
	counted, mentioned  map[string]bool
}

// causes returns the reasons of all that is not accepted, the worst first, and of these the most frequent.
func (r *Report) causes() []*cause {
	byReason := map[string]*cause{}
	var all []*cause
	for _, o := range r.Objects {
		for _, f := range o.Findings {
			if f.Verdict == Exact || f.Accepted {
				continue
			}
			reason := cmp.Or(f.Cause, f.Reason)
			c := byReason[string(f.Verdict)+reason]
			if c == nil {
				c = &cause{verdict: f.Verdict, reason: reason, todo: f.Todo, field: anyIndex(f.Field), counted: map[string]bool{}, mentioned: map[string]bool{}}
				byReason[string(f.Verdict)+reason] = c
				all = append(all, c)
			}
			if c.field != anyIndex(f.Field) {
				c.field = ""
			}
			if !c.counted[o.String()] {
				c.counted[o.String()] = true
				c.objects++
			}
			if of := cmp.Or(f.Subject, o.String()); !c.mentioned[of] {
				c.mentioned[of] = true
				c.examples = append(c.examples, of)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *cause) int {
		return cmp.Or(-cmp.Compare(string(a.verdict), string(b.verdict)), cmp.Compare(b.objects, a.objects))
	})
	return all
}

// most is how many examples of a cause the report has.
const most = 3

// shortened returns the first of a list, and says how many more there are.
func shortened(all []string) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// Text returns the report for a terminal: what is not exact, by its cause.
func (r *Report) Text() output.Lines {
	var b output.Lines
	for _, c := range r.causes() {
		b.Add("%-11s  %s%s", c.verdict, prefixed(c.field, ": "), c.reason)
		b.Add("%11d    %s", c.objects, shortened(c.examples))
		if c.todo != "" {
			b.Add("               -> %s", c.todo)
		}
	}
	b = append(b, r.others()...)
	if len(b) > 0 {
		b.Add("")
	}
	return append(b, r.summary()...)
}

// others returns the other places by their reason.
func (r *Report) others() output.Lines {
	var reasons []Note
	places := map[string][]string{}
	for _, n := range r.Others {
		if n.Accepted {
			continue
		}
		if places[n.Reason] == nil {
			reasons = append(reasons, n)
		}
		places[n.Reason] = append(places[n.Reason], fmt.Sprintf("%s:%d", n.File, n.Line))
	}
	if len(reasons) == 0 {
		return nil
	}
	b := output.Lines{"", "Other places to change by hand:"}
	for _, n := range reasons {
		b.Add("%s", n.Reason)
		b.Add("  -> %s", n.Todo)
		b.Add("     %s", strings.Join(places[n.Reason], ", "))
	}
	return b
}

// Wide returns the report with each object: what is exact in a line, the rest with reasons.
func (r *Report) Wide() output.Lines {
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
	b = append(b, r.others()...)
	b.Add("")
	return append(b, r.summary()...)
}

// Markdown returns the report as a page: the causes, a table of objects, and one of fields for each.
func (r *Report) Markdown() output.Lines {
	b := output.Lines{"# Conversion to direct-secrets", ""}
	for _, line := range r.summary() {
		b.Add("- %s", line)
	}
	b = append(b, "", "| verdict | objects | why | what to do | for example |", "|---|---|---|---|---|")
	for _, c := range r.causes() {
		b.Add("| %s | %d | %s | %s | %s |", c.verdict, c.objects, cell(prefixed(c.field, ": ")+c.reason), cell(c.todo), cell(shortened(c.examples)))
	}
	if others := r.others(); len(others) > 0 {
		b = append(b, "", "## Other places to change by hand", "", "| place | why | what to do |", "|---|---|---|")
		for _, n := range r.Others {
			if !n.Accepted {
				b.Add("| %s:%d | %s | %s |", n.File, n.Line, cell(n.Reason), cell(n.Todo))
			}
		}
	}
	b = append(b, "", "## Objects", "", "| object | verdict | becomes |", "|---|---|---|")
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
