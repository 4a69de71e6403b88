package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/diagnosis"
	"github.com/direct-secrets/direct-secrets/cmd/dsctl/internal/snapshot"
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/migrate/output"
)

// A report is the output of doctor with --output json.
type report struct {
	// Namespace is empty for all namespaces.
	Namespace string `json:"namespace,omitempty"`
	Objects   int    `json:"objects"`
	// Operators is the number of running operators; absent if they could not be read.
	Operators *int                `json:"operators,omitempty"`
	Errors    int                 `json:"errors"`
	Warnings  int                 `json:"warnings"`
	Findings  []diagnosis.Finding `json:"findings"`
}

func newDoctor(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Report what is wrong, why, and the fix",
		Long: `doctor reads all Kinds of direct-secrets in a namespace or in the cluster, the operators that run, and your permissions.
It reports each cause once, with the objects that it affects. It changes nothing.

Exit codes: 0 no error, 1 the check failed, 2 at least one error. Warnings do not count.`,
		Example: `  dsctl doctor -n shop
  dsctl doctor -A --output json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.doctor(c.Context()) },
	}
	o.addNamespaces(c)
	o.addOutput(c, "json")
	c.Flags().StringVar(&o.operatorNamespace, "operator-namespace", "",
		"Namespace of the operators. Leases in other namespaces, which tenants may be able to write, then do not count. Default: all namespaces, or direct-secrets if you are not allowed to list Leases in all.")
	return c
}

// needed returns the requests that other commands of dsctl make, so that doctor reports those that are not
// allowed.
func needed(namespace string) []snapshot.Refusal {
	return []snapshot.Refusal{
		{Verb: "patch", Resource: "externalsecrets." + v1alpha1.Group, Namespace: namespace, Purpose: "to refresh, suspend and resume"},
		{Verb: "patch", Resource: "pushsecrets." + v1alpha1.Group, Namespace: namespace, Purpose: "to refresh, suspend and resume"},
	}
}

func (o *options) doctor(ctx context.Context) error {
	s, err := o.connect()
	if err != nil {
		return err
	}
	snap, err := s.Read(ctx, s.namespace)
	if err != nil {
		return err
	}
	if err := s.CheckAccess(ctx, snap, needed(s.namespace)); err != nil {
		return err
	}
	snap.Program = o.program
	r := newReport(snap, diagnosis.Diagnose(snap))
	if o.format == "json" {
		err = o.out.JSON(r)
	} else {
		err = o.out.Lines(r.lines())
	}
	if err == nil && r.Errors > 0 {
		return errFound
	}
	return err
}

func newReport(s *snapshot.Snapshot, findings []diagnosis.Finding) report {
	r := report{Namespace: s.Namespace, Objects: len(s.Objects), Findings: append([]diagnosis.Finding{}, findings...)}
	if s.OperatorsKnown {
		n := 0
		for _, op := range s.Operators {
			if !op.Expired {
				n++
			}
		}
		r.Operators = &n
	}
	for _, f := range findings {
		if f.Severity == diagnosis.Error {
			r.Errors++
			continue
		}
		r.Warnings++
	}
	return r
}

// count formats a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

const (
	// mostAffected is the maximum number of affected objects in the text of a finding.
	mostAffected = 5
	// mostAlike is the maximum number of findings with the same Kind, reason and fix in the text.
	mostAlike = 10
)

func (r report) lines() output.Lines {
	type likeness struct {
		severity          diagnosis.Severity
		kind, reason, fix string
	}
	var b output.Lines
	var order []likeness
	seen := map[likeness]int{}
	for _, f := range r.Findings {
		l := likeness{f.Severity, f.Object.Kind, f.Reason, f.Fix}
		if seen[l]++; seen[l] > mostAlike {
			if seen[l] == mostAlike+1 {
				order = append(order, l)
			}
			continue
		}
		printFinding(&b, f)
	}
	for _, l := range order {
		b.Add("%s: %d more of Kind %s: %s", l.severity, seen[l]-mostAlike, l.kind, l.reason)
		b.Add("  fix: %s", l.fix)
		b.Add("  all: doctor --output json")
		b.Add("")
	}
	where := "all namespaces"
	if r.Namespace != "" {
		where = "namespace " + r.Namespace
	}
	operators := "operators unknown"
	if r.Operators != nil {
		operators = count(*r.Operators, "operator") + " running"
	}
	b.Add("%s, %s in %s (%s checked, %s)", count(r.Errors, "error"), count(r.Warnings, "warning"), where, count(r.Objects, "object"), operators)
	return b
}

func printFinding(b *output.Lines, f diagnosis.Finding) {
	b.Add("%s: %s: %s", f.Severity, f.Object, f.Reason)
	b.Add("  why: %s", strings.TrimSuffix(f.Message, "; "+f.Fix))
	b.Add("  fix: %s", f.Fix)
	if n := len(f.Affects); n > 0 {
		var names []string
		for _, a := range f.Affects[:min(n, mostAffected)] {
			names = append(names, a.String())
		}
		more := ""
		if n > mostAffected {
			more = fmt.Sprintf(" and %d more", n-mostAffected)
		}
		b.Add("  affects: %s%s", strings.Join(names, ", "), more)
	}
	b.Add("")
}
