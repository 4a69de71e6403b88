package pushsecret

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// noon is the current time in these tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// half is the random number that results in no jitter.
func half() float64 { return 0.5 }

func TestDue(t *testing.T) {
	now, next := attempt{1, "r", "s"}, attempt{2, "r", "s"}
	planned := &metav1.Time{Time: noon.Add(time.Minute)}
	ahead := &metav1.Time{Time: noon.Add(48 * time.Hour)}
	past := &metav1.Time{Time: noon.Add(-time.Minute)}
	type want struct {
		Due  bool
		Wait time.Duration
	}
	cases := map[string]struct {
		reason   string
		state    storeState
		attempt  attempt
		inSync   bool
		planned  *metav1.Time
		interval time.Duration
		want     want
	}{
		"Unknown":      {"A store that is not known to be in sync is compared.", storeState{}, now, false, nil, time.Hour, want{true, 0}},
		"Running":      {"A running push is not repeated: its end requeues the object.", storeState{running: true, attempt: now}, now, false, nil, time.Hour, want{}},
		"RunningOther": {"A running push is not repeated either if the spec has changed.", storeState{running: true, attempt: now}, next, false, nil, time.Hour, want{}},
		"Failed":       {"A failure waits for its back-off.", storeState{attempt: now, until: noon.Add(time.Second)}, now, false, nil, time.Hour, want{false, time.Second}},
		"FailedOver":   {"After the back-off it is retried.", storeState{attempt: now, until: noon}, now, false, nil, time.Hour, want{true, 0}},
		"FailedOther":  {"A changed input is pushed at once.", storeState{attempt: now, until: noon.Add(time.Second)}, next, false, nil, time.Hour, want{true, 0}},
		"Never":        {"Without an interval, a store in sync is not compared again.", storeState{}, now, true, planned, 0, want{}},
		"NotYet":       {"It is not compared before its time.", storeState{attempt: now, next: noon.Add(time.Hour)}, now, true, nil, time.Hour, want{false, time.Hour}},
		"Now":          {"It is compared at its time.", storeState{attempt: now, next: noon}, now, true, nil, time.Hour, want{true, 0}},
		"Planned":      {"The time that a former process planned is used.", storeState{}, now, true, planned, time.Hour, want{false, time.Minute}},
		"PlannedAhead": {"A time too far ahead, from a wrong clock, is ignored.", storeState{}, now, true, ahead, time.Hour, want{false, 30 * time.Second}},
		"PlannedPast":  {"Missed comparisons are spread over the first minute.", storeState{}, now, true, past, time.Hour, want{false, 30 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			due, wait := tc.state.due(tc.attempt, tc.inSync, tc.planned, schedule{noon, tc.interval, half})
			if diff := cmp.Diff(tc.want, want{due, wait}); diff != "" {
				t.Errorf("\n%s\ndue(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTake(t *testing.T) {
	failed := func(class provider.Class) *result {
		return &result{at: noon, err: provider.NewError(class, "no")}
	}
	type want struct {
		Failures          int
		Broken            bool
		Until, Next, Good time.Time
	}
	asked := failed(provider.Throttled)
	asked.retryAfter = time.Minute
	earlier := noon.Add(-time.Hour)
	cases := map[string]struct {
		reason   string
		state    storeState
		interval time.Duration
		want     want
	}{
		"Nothing":   {"No push has ended.", storeState{good: earlier}, time.Hour, want{Good: earlier}},
		"Good":      {"After a success, the store is compared again after the interval.", storeState{failures: 3, until: noon.Add(time.Minute), broken: true, result: &result{at: noon}}, time.Hour, want{Next: noon.Add(time.Hour), Good: noon}},
		"GoodOnce":  {"Without an interval, it is not compared again.", storeState{next: noon, result: &result{at: noon}}, 0, want{Good: noon}},
		"Failed":    {"A failure starts the back-off.", storeState{good: earlier, result: failed(provider.Unavailable)}, time.Hour, want{Failures: 1, Until: noon.Add(firstBackoff), Good: earlier}},
		"FailedYet": {"A second failure doubles the back-off.", storeState{failures: 1, result: failed(provider.Unavailable)}, time.Hour, want{Failures: 2, Until: noon.Add(2 * firstBackoff)}},
		"FailedOft": {"The back-off has a maximum.", storeState{failures: 99, result: failed(provider.Unavailable)}, time.Hour, want{Failures: 100, Until: noon.Add(lastBackoff)}},
		"Asked":     {"The wait is at least what the provider asked for.", storeState{result: asked}, time.Hour, want{Failures: 1, Until: noon.Add(time.Minute)}},
		"Broken":    {"An invalid request needs a fix by a user.", storeState{result: failed(provider.Invalid)}, time.Hour, want{Failures: 1, Broken: true, Until: noon.Add(firstBackoff)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.state
			if got := s.take(schedule{noon, tc.interval, half}); got != tc.state.result {
				t.Errorf("\n%s\ntake(): %v, want %v", tc.reason, got, tc.state.result)
			}
			if diff := cmp.Diff(tc.want, want{s.failures, s.broken, s.until, s.next, s.good}); diff != "" {
				t.Errorf("\n%s\ntake(): -want, +got:\n%s", tc.reason, diff)
			}
			if s.take(schedule{noon, tc.interval, half}) != nil {
				t.Errorf("\n%s\ntake() returns a result twice", tc.reason)
			}
		})
	}
}

// TestProgressRetainsNamedStores changes the stores of an object many times. Only the states of named stores, of running pushes
// and of results not taken must remain.
func TestProgressRetainsNamedStores(t *testing.T) {
	var p progress
	named := storeID{name: "named"}
	p.with(named, func(s *storeState) { s.failures = 1 })
	p.with(storeID{name: "running"}, func(s *storeState) { s.running = true })
	p.with(storeID{name: "ended"}, func(s *storeState) { s.result = &result{} })
	for i := range 1000 {
		p.with(storeID{name: fmt.Sprint(i)}, func(s *storeState) { s.failures = 1 })
	}
	p.retain([]storeID{named})
	var got []string
	for id := range p.states {
		got = append(got, id.name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ended", "named", "running"}, got); diff != "" {
		t.Errorf("stores that are remembered: -want, +got:\n%s", diff)
	}
}
