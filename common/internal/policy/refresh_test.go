package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// The values that a row of TestRefreshDue can require; empty stands for all of them.
const (
	yes = "yes"
	no  = "no"

	periodic = "Periodic"
	onChange = "OnChange"
	once     = "CreatedOnce"
)

// state is a combination of inputs of RefreshDue; with empty fields, a set of them.
type state struct {
	// behaves is the refresh policy, with an interval of 0 counted as CreatedOnce.
	behaves    string
	refreshed  string
	failing    string
	generation string // changed?
	metadata   string // changed?
	request    string // new?
	elapsed    string
}

func (s state) has(x state) bool {
	for _, p := range [][2]string{
		{s.behaves, x.behaves},
		{s.refreshed, x.refreshed},
		{s.failing, x.failing},
		{s.generation, x.generation},
		{s.metadata, x.metadata},
		{s.request, x.request},
		{s.elapsed, x.elapsed},
	} {
		if p[0] != "" && p[0] != p[1] {
			return false
		}
	}
	return true
}

// TestRefreshDue checks every combination; exactly one row must match each.
func TestRefreshDue(t *testing.T) {
	rows := map[string]struct {
		reason string
		state  state
		want   Why
	}{
		"Requested":                {"A request works under every policy and in every state.", state{request: yes}, Requested},
		"First":                    {"An object that was never read is read, under every policy.", state{request: no, refreshed: no}, First},
		"Failing":                  {"A failure is retried, without limit and under every policy.", state{request: no, refreshed: yes, failing: yes, generation: no}, Retry},
		"FailingAndChanged":        {"A new spec starts a new attempt, also under CreatedOnce: otherwise its failure would stay for ever.", state{request: no, refreshed: yes, failing: yes, generation: yes}, Changed},
		"PeriodicSpec":             {"Periodic follows the spec.", state{request: no, refreshed: yes, failing: no, behaves: periodic, generation: yes}, Changed},
		"PeriodicMetadata":         {"Periodic follows labels and annotations.", state{request: no, refreshed: yes, failing: no, behaves: periodic, generation: no, metadata: yes}, Changed},
		"PeriodicElapsed":          {"Periodic reads every interval.", state{request: no, refreshed: yes, failing: no, behaves: periodic, generation: no, metadata: no, elapsed: yes}, Elapsed},
		"PeriodicNotElapsed":       {"Between two intervals nothing is read.", state{request: no, refreshed: yes, failing: no, behaves: periodic, generation: no, metadata: no, elapsed: no}, NotDue},
		"OnChangeSpec":             {"OnChange follows the spec.", state{request: no, refreshed: yes, failing: no, behaves: onChange, generation: yes}, Changed},
		"OnChangeMetadata":         {"OnChange follows labels and annotations.", state{request: no, refreshed: yes, failing: no, behaves: onChange, generation: no, metadata: yes}, Changed},
		"OnChangeNothing":          {"OnChange has no interval.", state{request: no, refreshed: yes, failing: no, behaves: onChange, generation: no, metadata: no}, NotDue},
		"CreatedOnceAfterItsFirst": {"CreatedOnce reads once.", state{request: no, refreshed: yes, failing: no, behaves: once}, NotDue},
	}

	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	policies := []struct {
		policy   v1alpha1.RefreshPolicy
		interval time.Duration
		behaves  string
	}{
		{"", time.Hour, periodic},
		{v1alpha1.RefreshPeriodic, time.Hour, periodic},
		{"", 0, once},
		{v1alpha1.RefreshPeriodic, 0, once},
		{v1alpha1.RefreshOnChange, time.Hour, onChange},
		{v1alpha1.RefreshOnChange, 0, onChange},
		{v1alpha1.RefreshCreatedOnce, time.Hour, once},
		{v1alpha1.RefreshCreatedOnce, 0, once},
	}
	requests := []struct {
		request, observed string
		isNew             string
	}{{"", "", no}, {"", "a", no}, {"a", "a", no}, {"b", "a", yes}, {"a", "", yes}}

	combinations := 0
	for _, p := range policies {
		for _, r := range requests {
			for bits := range 1 << 5 {
				bit := func(i int) (bool, string) {
					if bits&(1<<i) != 0 {
						return true, yes
					}
					return false, no
				}
				s := state{behaves: p.behaves, request: r.isNew}
				in := RefreshInput{
					Policy: p.policy, Interval: p.interval, Now: now, Next: now.Add(time.Second),
					Generation: 2, ObservedGeneration: 2, MetadataHash: "m", ObservedMetadataHash: "m",
					Request: r.request, ObservedRequest: r.observed,
				}
				in.Refreshed, s.refreshed = bit(0)
				in.Failing, s.failing = bit(1)
				var changed bool
				if changed, s.generation = bit(2); changed {
					in.ObservedGeneration = 1
				}
				if changed, s.metadata = bit(3); changed {
					in.ObservedMetadataHash = "n"
				}
				if changed, s.elapsed = bit(4); changed {
					in.Next = now
				}

				combinations++
				matched := 0
				for name, row := range rows {
					if !row.state.has(s) {
						continue
					}
					matched++
					if diff := cmp.Diff(row.want, RefreshDue(in)); diff != "" {
						t.Errorf("%s: %s\nRefreshDue(%+v): -want, +got:\n%s", name, row.reason, in, diff)
					}
				}
				if matched != 1 {
					t.Errorf("%d rows match %+v, want one", matched, s)
				}
			}
		}
	}
	if combinations != 8*5*32 {
		t.Errorf("%d combinations were tried", combinations)
	}
}

// TestRefreshDueClosed decides while the sync windows are closed. The object is otherwise due for the named reasons.
func TestRefreshDueClosed(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	type want struct {
		Why  Why
		Held bool
	}
	cases := map[string]struct {
		reason string
		change func(in *RefreshInput)
		want   want
	}{
		"NotDue":    {"Nothing is held back that is not due.", func(*RefreshInput) {}, want{NotDue, false}},
		"Elapsed":   {"A periodic refresh waits.", func(in *RefreshInput) { in.Next = now }, want{NotDue, true}},
		"Notified":  {"So does one because of an event.", func(in *RefreshInput) { in.Notified = true }, want{NotDue, true}},
		"Held":      {"So does one that a former process held back.", func(in *RefreshInput) { in.Windows.Held = true }, want{NotDue, true}},
		"First":     {"The first read does not wait.", func(in *RefreshInput) { in.Refreshed, in.Notified = false, true }, want{First, false}},
		"Requested": {"A request does not wait.", func(in *RefreshInput) { in.Request, in.Next = "1", now }, want{Requested, false}},
		"Spec":      {"A changed spec does not wait, even after an event.", func(in *RefreshInput) { in.Generation, in.Notified = 2, true }, want{Changed, false}},
		"Metadata":  {"Nor does a changed label.", func(in *RefreshInput) { in.MetadataHash, in.Next = "n", now }, want{Changed, false}},
		"Failing":   {"A retry does not wait, even after an event.", func(in *RefreshInput) { in.Failing, in.Notified = true, true }, want{Retry, false}},
		"OnChange": {"Nothing is due under OnChange.", func(in *RefreshInput) {
			in.Policy, in.Windows.Held, in.Notified, in.Next = v1alpha1.RefreshOnChange, true, true, now
		}, want{NotDue, false}},
		"Once": {"Nor under CreatedOnce.", func(in *RefreshInput) {
			in.Policy, in.Windows.Held, in.Notified, in.Next = v1alpha1.RefreshCreatedOnce, true, true, now
		}, want{NotDue, false}},
		"Opened": {"Once the windows are open, what was held back is due.", func(in *RefreshInput) { in.Windows.Held, in.Windows.Closed = true, false }, want{Elapsed, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := RefreshInput{Interval: time.Hour, Now: now, Next: now.Add(time.Minute), Refreshed: true, Generation: 1, ObservedGeneration: 1, Windows: WindowState{Closed: true}}
			tc.change(&in)
			if diff := cmp.Diff(tc.want, want{RefreshDue(in), RefreshHeld(in)}); diff != "" {
				t.Errorf("\n%s\nRefreshDue(), RefreshHeld(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPeriodic(t *testing.T) {
	cases := map[string]struct {
		reason   string
		policy   v1alpha1.RefreshPolicy
		interval time.Duration
		want     bool
	}{
		"Unset":       {"Unset means Periodic.", "", time.Hour, true},
		"Periodic":    {"An interval makes it periodic.", v1alpha1.RefreshPeriodic, time.Hour, true},
		"Zero":        {"An interval of 0 behaves as CreatedOnce.", v1alpha1.RefreshPeriodic, 0, false},
		"UnsetZero":   {"An interval of 0 behaves as CreatedOnce.", "", 0, false},
		"OnChange":    {"OnChange has no interval.", v1alpha1.RefreshOnChange, time.Hour, false},
		"CreatedOnce": {"CreatedOnce has no interval.", v1alpha1.RefreshCreatedOnce, time.Hour, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Periodic(tc.policy, tc.interval); got != tc.want {
				t.Errorf("\n%s\nPeriodic(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// randoms are numbers in [0, 1), with the smallest and the largest.
var randoms = []float64{0, 1e-9, 0.25, 0.5, 0.75, 0.999999999, 1 - 1.0/(1<<53)}

func TestJitter(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, time.Minute, time.Hour, 720 * time.Hour} {
		var last time.Duration
		for _, r := range randoms {
			t.Run(fmt.Sprintf("%s/%g", interval, r), func(t *testing.T) {
				got := Jitter(interval, r)
				if got < interval*9/10 || got > interval*11/10 {
					t.Errorf("Jitter(): %s is more than a tenth from %s", got, interval)
				}
				if got < last {
					t.Errorf("Jitter(): %s is less than with a smaller random number", got)
				}
				last = got
			})
		}
		if got := Jitter(interval, 0.5); got != interval {
			t.Errorf("Jitter(%s, 0.5): %s, want the middle", interval, got)
		}
	}
}

func TestSpread(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason   string
		interval time.Duration
		bound    time.Duration
	}{
		"Long":  {"A restart spreads overdue refreshes over a minute.", time.Hour, time.Minute},
		"Equal": {"A restart spreads overdue refreshes over a minute.", time.Minute, time.Minute},
		"Short": {"No object waits longer than its interval.", 10 * time.Second, 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, r := range randoms {
				if got := Spread(start, tc.interval, r); got.Before(start) || got.After(start.Add(tc.bound)) {
					t.Errorf("\n%s\nSpread(%g): %s, want within %s", tc.reason, r, got.Sub(start), tc.bound)
				}
			}
			if got := Spread(start, tc.interval, 0.5); got != start.Add(tc.bound/2) {
				t.Errorf("\n%s\nSpread(0.5): %s, want %s", tc.reason, got.Sub(start), tc.bound/2)
			}
		})
	}
}

func TestPlanned(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	in := now.Add
	cases := map[string]struct {
		reason              string
		known, noted, start time.Time
		want                time.Time
	}{
		"Known":      {"The plan of this process counts first.", in(time.Minute), in(time.Hour), now, in(time.Minute)},
		"KnownPast":  {"It counts also if its time has passed.", in(-time.Minute), in(time.Hour), now, in(-time.Minute)},
		"Noted":      {"Otherwise the plan of a former process counts.", time.Time{}, in(65 * time.Minute), now, in(65 * time.Minute)},
		"NotedPast":  {"A missed time is spread from the start.", time.Time{}, in(-time.Minute), in(-time.Hour), in(-time.Hour + 30*time.Second)},
		"Nothing":    {"An object without a plan is spread.", time.Time{}, time.Time{}, now, in(30 * time.Second)},
		"NotedAhead": {"A plan longer than an interval is ignored.", time.Time{}, in(67 * time.Minute), now, in(30 * time.Second)},
		"KnownAhead": {"This holds for the plan of this process, too.", in(67 * time.Minute), in(68 * time.Minute), now, in(30 * time.Second)},
		"StartAhead": {"A start time in the future counts as now.", time.Time{}, time.Time{}, in(time.Hour), in(30 * time.Second)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Planned(tc.known, tc.noted, now, tc.start, time.Hour, 0.5)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nPlanned(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
