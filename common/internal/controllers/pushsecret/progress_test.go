package pushsecret

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// noon is the current time in these tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// half is the random number that results in no jitter.
func half() float64 { return 0.5 }

// with returns a result with a change.
func with(r result, change func(*result)) *result {
	change(&r)
	return &r
}

func TestDue(t *testing.T) {
	now, next := kit.Attempt{Generation: 1, Request: "r", Sources: "s"}, kit.Attempt{Generation: 2, Request: "r", Sources: "s"}
	planned := &metav1.Time{Time: noon.Add(time.Minute)}
	ahead := &metav1.Time{Time: noon.Add(48 * time.Hour)}
	past := &metav1.Time{Time: noon.Add(-time.Minute)}
	type want struct {
		Due  bool
		Wait time.Duration
	}
	cases := map[string]struct {
		reason string
		// failed is true if the attempt now has failed, for that time.
		failed   bool
		since    time.Duration
		next     time.Time
		attempt  kit.Attempt
		inSync   bool
		planned  *metav1.Time
		interval time.Duration
		want     want
	}{
		"Unknown":      {"A store that is not known to be in sync is compared.", false, 0, time.Time{}, now, false, nil, time.Hour, want{true, 0}},
		"Failed":       {"A failure waits for its back-off.", true, 0, time.Time{}, now, false, nil, time.Hour, want{false, time.Second}},
		"FailedOver":   {"After the back-off it is retried.", true, time.Second, time.Time{}, now, false, nil, time.Hour, want{true, 0}},
		"FailedOther":  {"A changed input is pushed at once.", true, 0, time.Time{}, next, false, nil, time.Hour, want{true, 0}},
		"Never":        {"Without an interval, a store in sync is not compared again.", false, 0, time.Time{}, now, true, planned, 0, want{}},
		"NotYet":       {"It is not compared before its time.", false, 0, noon.Add(time.Hour), now, true, nil, time.Hour, want{false, time.Hour}},
		"Now":          {"It is compared at its time.", false, 0, noon, now, true, nil, time.Hour, want{true, 0}},
		"Planned":      {"The time that a former process planned is used.", false, 0, time.Time{}, now, true, planned, time.Hour, want{false, time.Minute}},
		"PlannedAhead": {"A time too far ahead, from a wrong clock, is ignored.", false, 0, time.Time{}, now, true, ahead, time.Hour, want{false, 30 * time.Second}},
		"PlannedPast":  {"Missed comparisons are spread over the first minute.", false, 0, time.Time{}, now, true, past, time.Hour, want{false, 30 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &storeState{next: tc.next}
				if s.attempts.Begin(now); tc.failed {
					s.attempts.Fail(0)
					time.Sleep(tc.since)
				}
				due, wait, _ := s.due(tc.attempt, tc.inSync, tc.planned, time.Time{}, schedule{now: noon, interval: tc.interval, random: half})
				if diff := cmp.Diff(tc.want, want{due, wait}); diff != "" {
					t.Errorf("\n%s\ndue(): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestDueRemoves looks at noon at a store in sync, of which something is removed.
func TestDueRemoves(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		removes, again time.Time
		interval, wait time.Duration
	}{
		"Now":       {"A removal is not delayed by the interval.", noon, time.Time{}, time.Hour, 0},
		"Later":     {"It is not made before its time.", noon.Add(time.Minute), time.Time{}, 0, time.Minute},
		"Refreshes": {"The store is compared before.", noon.Add(2 * time.Hour), time.Time{}, time.Hour, time.Hour},
		"Again":     {"A postponed one is decided again.", noon, noon.Add(time.Second), time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storeState{next: noon.Add(time.Hour), again: tc.again}
			due, wait, _ := s.due(kit.Attempt{}, true, nil, tc.removes, schedule{now: noon, interval: tc.interval, random: half})
			if due != (tc.wait == 0) || wait != tc.wait {
				t.Errorf("%s\ndue is %t, in %s; want in %s", tc.reason, due, wait, tc.wait)
			}
		})
	}
}

// TestDueClosed compares at noon. The sync windows are closed until 02:00.
func TestDueClosed(t *testing.T) {
	ws, err := windows.Parse(&v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow, Windows: []v1alpha1.SyncWindow{{Schedule: "0 2 * * *", Duration: "4h"}}})
	if err != nil {
		t.Fatal(err)
	}
	opens := noon.Add(14 * time.Hour)
	type want struct {
		Due  bool
		Wait time.Duration
		Hold windows.Hold
	}
	cases := map[string]struct {
		reason string
		next   time.Time
		asked  bool
		inSync bool
		want   want
	}{
		"Periodic": {"A comparison because of the interval waits.", noon, false, true, want{false, 14*time.Hour + 30*time.Second, windows.Hold{Opens: opens, Resume: opens.Add(30 * time.Second)}}},
		"NotYet":   {"Nothing waits that is not due.", noon.Add(time.Minute), false, true, want{Wait: time.Minute}},
		"Changed":  {"A store that is out of sync is written.", noon, false, false, want{Due: true}},
		"Asked":    {"A comparison that the removal by another object needs does not wait.", noon, true, true, want{Due: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &storeState{next: tc.next, asked: tc.asked}
			var got want
			got.Due, got.Wait, got.Hold = s.due(kit.Attempt{Generation: 1}, tc.inSync, nil, time.Time{}, schedule{now: noon, interval: time.Hour, windows: ws, random: half})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ndue(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHeld follows the times in the status of a store whose comparison waits at noon until 02:00, and is then made.
func TestHeld(t *testing.T) {
	ws, err := windows.Parse(&v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow, Windows: []v1alpha1.SyncWindow{{Schedule: "0 2 * * *", Duration: "4h"}}})
	if err != nil {
		t.Fatal(err)
	}
	opens := noon.Add(14 * time.Hour)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }
	done := result{Attempt: kit.Attempt{Generation: 1}, started: opens.Add(time.Minute)}
	next := opens.Add(6 * time.Minute) // Less than a heartbeat later.
	type times struct{ Refresh, Next, Window *metav1.Time }
	cases := map[string]struct {
		reason string
		times  times
		now    time.Time
		// next is the planned time, zero in a new process.
		next   time.Time
		result *result
		// wait is the time until the comparison, zero if it begins.
		wait time.Duration
		want times
	}{
		"Overdue":    {"The comparison that was due is made when the window opens.", times{at(-time.Hour), at(-time.Minute), nil}, noon, noon, nil, 14*time.Hour + 30*time.Second, times{at(-time.Hour), &metav1.Time{Time: opens}, &metav1.Time{Time: opens}}},
		"NotYet":     {"One that is not due keeps its time.", times{at(-time.Hour), at(time.Minute), nil}, noon, noon.Add(time.Minute), nil, time.Minute, times{at(-time.Hour), at(time.Minute), nil}},
		"Restart":    {"A new process does not take the opening for the time of a comparison, so all do not begin at once.", times{at(-time.Hour), at(14 * time.Hour), at(14 * time.Hour)}, opens.Add(-time.Minute), time.Time{}, nil, 30 * time.Second, times{at(-time.Hour), at(14 * time.Hour), nil}},
		"Success":    {"After the opening, the times are written, although nothing else has changed.", times{&metav1.Time{Time: opens.Add(-time.Minute)}, &metav1.Time{Time: opens}, &metav1.Time{Time: opens}}, opens.Add(time.Minute), noon, &done, 0, times{&metav1.Time{Time: done.started}, &metav1.Time{Time: next}, nil}},
		"Difference": {"So are those of a dry run.", times{nil, &metav1.Time{Time: opens}, &metav1.Time{Time: opens}}, opens.Add(time.Minute), noon, with(done, func(r *result) { r.difference = &v1alpha1.PushDifference{} }), 0, times{nil, &metav1.Time{Time: next}, nil}},
		"Failure":    {"After a failure, nothing waits for a window.", times{at(-time.Hour), &metav1.Time{Time: opens}, &metav1.Time{Time: opens}}, opens.Add(time.Minute), noon, with(done, func(r *result) { r.err = provider.NewError(provider.Unavailable, "no") }), 0, times{at(-time.Hour), &metav1.Time{Time: opens}, nil}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &destination{status: v1alpha1.PushStoreStatus{RefreshTime: tc.times.Refresh, NextRefreshTime: tc.times.Next, NextWindowTime: tc.times.Window}}
			s := &storeState{next: tc.next}
			due, wait := d.due(s, kit.Attempt{Generation: 1}, true, time.Time{}, schedule{now: tc.now, interval: 24 * time.Hour, windows: ws, random: half})
			if due != (tc.result != nil) || wait != tc.wait {
				t.Errorf("%s\ndue is %t, in %s, not %s", tc.reason, due, wait, tc.wait)
			}
			if tc.result != nil {
				d.take(tc.result, notDry, next, false)
			}
			if diff := cmp.Diff(tc.want, times{d.status.RefreshTime, d.status.NextRefreshTime, d.status.NextWindowTime}); diff != "" {
				t.Errorf("\n%s\nthe times: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTake(t *testing.T) {
	failed := func(class provider.Class) *result {
		return &result{started: noon, err: provider.NewError(class, "no")}
	}
	type want struct {
		Wait            time.Duration
		Broken, Failing bool
		Next, Good      time.Time
	}
	asked, removed := failed(provider.Throttled), failed(provider.Denied)
	asked.retryAfter, removed.Request = time.Minute, removal
	earlier := noon.Add(-time.Hour)
	cases := map[string]struct {
		reason string
		// failures and broken are those before, next is the time that was planned.
		failures int
		broken   bool
		next     time.Time
		result   *result
		interval time.Duration
		want     want
	}{
		"Good":      {"After a success, the store is compared again after the interval.", 3, true, time.Time{}, &result{started: noon}, time.Hour, want{Next: noon.Add(time.Hour), Good: noon}},
		"GoodOnce":  {"Without an interval, it is not compared again.", 0, false, noon, &result{started: noon}, 0, want{Good: noon}},
		"Failed":    {"A failure starts the back-off.", 0, false, time.Time{}, failed(provider.Unavailable), time.Hour, want{Wait: time.Second, Good: earlier}},
		"FailedYet": {"A second failure doubles the back-off.", 1, false, time.Time{}, failed(provider.Unavailable), time.Hour, want{Wait: 2 * time.Second, Good: earlier}},
		"Asked":     {"The wait is at least what the provider asked for.", 0, false, time.Time{}, asked, time.Hour, want{Wait: time.Minute, Good: earlier}},
		"Broken":    {"An invalid request needs a fix by a user.", 0, false, time.Time{}, failed(provider.Invalid), time.Hour, want{Wait: time.Second, Broken: true, Good: earlier}},
		"Removal":   {"A removal that fails can keep an object that is being deleted.", 0, false, time.Time{}, removed, time.Hour, want{Wait: time.Second, Failing: true, Good: earlier}},
		"Refused":   {"Sources that cannot be pushed say nothing about the store.", 0, true, time.Time{}, &result{refused: &status.Verdict{}}, time.Hour, want{Wait: sourceRetry, Broken: true, Good: earlier}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &storeState{good: earlier, broken: tc.broken, next: tc.next}
				for range tc.failures {
					s.attempts.Fail(0)
				}
				s.take(tc.result, schedule{now: noon, interval: tc.interval, random: half})
				wait, _ := s.attempts.Begin(kit.Attempt{})
				if diff := cmp.Diff(tc.want, want{wait, s.broken, s.failing, s.next, s.good}); diff != "" {
					t.Errorf("\n%s\ntake(): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestProgressRetainsNamedStores changes the stores of an object many times. Only the states of named stores must remain.
func TestProgressRetainsNamedStores(t *testing.T) {
	var p progress
	named := storeID{name: "named"}
	p.with(named, func(s *storeState) { s.broken = true })
	for i := range 1000 {
		p.with(storeID{name: fmt.Sprint(i)}, func(s *storeState) { s.broken = true })
	}
	p.retain([]storeID{named})
	var got []string
	for id := range p.states {
		got = append(got, id.name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"named"}, got); diff != "" {
		t.Errorf("stores that are remembered: -want, +got:\n%s", diff)
	}
}
