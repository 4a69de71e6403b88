// Package bench measures the figures that the project promises, on a real control plane. The same run measures
// the floor: the time that a plain client needs for the unavoidable writes.
package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// A Row is one figure.
type Row struct {
	Scenario string  `json:"scenario"`
	What     string  `json:"what"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	// Bound is the maximum of the figure; nil means none.
	Bound *float64 `json:"bound,omitempty"`
	// Note describes how the figure was measured.
	Note string `json:"note,omitempty"`
}

// OK reports whether the figure is within its bound.
func (r Row) OK() bool { return r.Bound == nil || r.Value <= *r.Bound }

// atMost returns a bound.
func atMost(v float64) *float64 { return &v }

// A Report collects rows.
type Report struct {
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`
	out     io.Writer
}

// NewReport returns a report that prints the machine, and each row when it is added.
func NewReport(out io.Writer) *Report {
	r := &Report{Machine: thisMachine(), out: out}
	r.Progress("%s", r.Machine)
	return r
}

// Add adds a row.
func (r *Report) Add(row Row) {
	r.Rows = append(r.Rows, row)
	r.Progress("%s", row)
}

// String returns the row as one line.
func (r Row) String() string {
	s := fmt.Sprintf("%-10s %-44s %10.2f %-6s", r.Scenario, r.What, r.Value, r.Unit)
	if r.Bound != nil {
		s += fmt.Sprintf(" (at most %g)", *r.Bound)
	}
	if !r.OK() {
		s += " MISSED"
	}
	return s
}

// Progress prints a line.
func (r *Report) Progress(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// Print prints all rows as a table.
func (r *Report) Print() {
	r.Progress("%s", r.Machine)
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SCENARIO\tWHAT\tVALUE\tUNIT\tBOUND\t\tNOTE")
	for _, row := range r.Rows {
		bound, verdict := "", ""
		if row.Bound != nil {
			bound, verdict = fmt.Sprintf("%g", *row.Bound), "ok"
		}
		if !row.OK() {
			verdict = "MISSED"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%s\t%s\t%s\n", row.Scenario, row.What, row.Value, row.Unit, bound, verdict, row.Note)
	}
	_ = w.Flush()
}

// Write writes the rows as JSON.
func (r *Report) Write(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644) //nolint:gosec // A report is for everybody.
}

// Missed returns the number of rows that exceed their bound.
func (r *Report) Missed() int {
	n := 0
	for _, row := range r.Rows {
		if !row.OK() {
			n++
		}
	}
	return n
}

// percentile returns the p-th percentile of durations, in seconds.
func percentile(ds []time.Duration, p float64) float64 {
	if len(ds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ds))
	i := int(p / 100 * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)].Seconds()
}

func median(vs []float64) float64 {
	sorted := slices.Sorted(slices.Values(vs))
	return sorted[len(sorted)/2]
}
