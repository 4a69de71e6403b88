package externalsecret

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/internal/windows"
)

// decided is an object that an earlier process has refreshed, an hour after the start of this process.
func decided(now time.Time, change ...func(*subject)) *subject {
	o := &Options{Now: func() time.Time { return now }, Random: func() float64 { return 0.5 }}
	s := &subject{opts: o, es: externalSecret(), obj: &object{}, plan: render.Plan{Interval: time.Hour}}
	s.es.Status = v1alpha1.ExternalSecretStatus{
		RefreshTime: &metav1.Time{Time: now}, NextRefreshTime: &metav1.Time{Time: now.Add(time.Minute)}, ObservedGeneration: s.es.Generation,
		ObservedMetadataHash: s.metadata(),
	}
	s.seen = &s.es.Status
	for _, f := range change {
		f(s)
	}
	return s
}

func TestDue(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	next := func(at time.Time) func(*subject) {
		return func(s *subject) { s.seen.NextRefreshTime = &metav1.Time{Time: at} }
	}
	ready := func(v metav1.ConditionStatus, reason string) func(*subject) {
		return func(s *subject) {
			s.seen.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: v, Reason: reason}}
		}
	}
	both := func(all ...func(*subject)) func(*subject) {
		return func(s *subject) {
			for _, f := range all {
				f(s)
			}
		}
	}
	failed := ready(metav1.ConditionFalse, v1alpha1.ReasonSecretSyncedError)
	cases := map[string]struct {
		reason  string
		change  func(*subject)
		blocked bool
		want    policy.Why
	}{
		"Planned":   {"The next refresh is not due yet.", next(now.Add(time.Minute)), false, policy.NotDue},
		"Past":      {"The planned refresh was missed.", next(now.Add(-2 * time.Hour)), false, policy.Elapsed},
		"Ahead":     {"A clock that was ahead planned it: it is further away than the interval.", next(now.Add(48 * time.Hour)), false, policy.Elapsed},
		"Failed":    {"A failure is retried.", failed, false, policy.Retry},
		"Changed":   {"A new spec is read at once.", func(s *subject) { s.es.Generation++ }, false, policy.Changed},
		"Metadata":  {"New labels are read at once.", func(s *subject) { s.es.Labels = map[string]string{"a": "b"} }, false, policy.Changed},
		"Requested": {"A refresh request is read at once.", func(s *subject) { s.es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"} }, false, policy.Requested},
		"First":     {"An object that was never refreshed is read.", func(s *subject) { s.seen.RefreshTime = nil }, false, policy.First},
		"Blocked":   {"Keys of another ExternalSecret are no failure of the provider.", ready(metav1.ConditionFalse, v1alpha1.ReasonConflict), true, policy.NotDue},
		"Supplies":  {"A problem of another operator is no failure of the provider.", both(failed, func(s *subject) { s.handed.Problem = &status.Verdict{} }), false, policy.NotDue},
		"StoreChanged": {
			"A changed store may have values that were missing.",
			both(ready(metav1.ConditionTrue, v1alpha1.ReasonSecretSynced), func(s *subject) { s.obj.signals.readAgain.Store(true) }), false, policy.Retry,
		},
		"Compared": {
			"Values that were only compared are read again for the first write.",
			func(s *subject) { s.seen.Difference = &v1alpha1.Difference{} }, false, policy.First,
		},
		"SameContent": {
			"A change that affects no values needs no read.",
			func(s *subject) {
				s.noteContent()
				s.es.Generation++
				s.es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever
			}, false, policy.NotDue,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := decided(now, tc.change)
			before := s.obj.next
			if got, _ := due(s, tc.blocked, planned(s, now.Add(-time.Hour))); got != tc.want {
				t.Errorf("\n%s\ndue(): %q, want %q", tc.reason, got, tc.want)
			}
			if !s.obj.next.Equal(before) {
				t.Errorf("\n%s\ndue(): a decision changes the memory of the object", tc.reason)
			}
		})
	}
}

// TestDueInWindows decides at noon about an object whose refresh is due.
func TestDueInWindows(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	opens := time.Date(2030, 1, 2, 2, 0, 0, 0, time.UTC)
	type want struct {
		Why  policy.Why
		Hold windows.Hold
		// Wait is the time until the next walk.
		Wait time.Duration
	}
	cases := map[string]struct {
		reason   string
		schedule string
		change   func(*subject)
		want     want
	}{
		"Closed": {"The refresh waits for the opening, and some seconds more.", "0 2 * * *", func(*subject) {}, want{policy.NotDue, windows.Hold{Opens: opens, Resume: opens.Add(30 * time.Second)}, 14*time.Hour + 30*time.Second}},
		"Open":   {"It is made in a window.", "0 11 * * *", func(*subject) {}, want{Why: policy.Elapsed, Wait: time.Millisecond}},
		"Fresh":  {"Nothing waits that is not due.", "0 2 * * *", func(s *subject) { s.seen.NextRefreshTime.Time = now.Add(time.Minute) }, want{Wait: time.Minute}},
		"Recorded": {"A refresh that a former process held back waits.", "0 2 * * *", func(s *subject) {
			s.seen.NextRefreshTime.Time, s.seen.NextWindowTime = now.Add(time.Minute), &metav1.Time{Time: opens}
		}, want{policy.NotDue, windows.Hold{Opens: opens, Resume: opens.Add(30 * time.Second)}, 14*time.Hour + 30*time.Second}},
		"Released": {"In a window, it is made.", "0 11 * * *", func(s *subject) {
			s.seen.NextRefreshTime.Time, s.seen.NextWindowTime = now.Add(time.Minute), &metav1.Time{Time: now.Add(-time.Hour)}
		}, want{Why: policy.Elapsed, Wait: time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			s := decided(now)
			s.seen.NextRefreshTime.Time = now.Add(-time.Minute)
			s.plan.Windows, err = windows.Parse(&v1alpha1.SyncWindows{Kind: v1alpha1.SyncAllow, Windows: []v1alpha1.SyncWindow{{Schedule: tc.schedule, Duration: "4h"}}})
			if err != nil {
				t.Fatal(err)
			}
			tc.change(s)
			s.obj.next = s.seen.NextRefreshTime.Time
			var got want
			got.Why, got.Hold = due(s, false, s.obj.next)
			s.state.hold = got.Hold
			got.Wait = remaining(s)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ndue(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAnswered(t *testing.T) {
	reported := func(request string) v1alpha1.PartStatus {
		return v1alpha1.PartStatus{Module: "vault", Message: "no answer", AttemptedRefreshRequest: request}
	}
	cases := map[string]struct {
		reason  string
		parts   []v1alpha1.PartStatus
		suspend bool
		want    string
	}{
		"Own":       {"A verdict of this operator answers the present request.", nil, false, "2"},
		"Reported":  {"So does an error of another module that is about this request.", []v1alpha1.PartStatus{reported("2")}, false, "2"},
		"Former":    {"An error of another module can be about a former request.", []v1alpha1.PartStatus{reported("2"), reported("1")}, false, "1"},
		"Suspended": {"A suspended object answers nothing.", nil, true, "1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &subject{
				opts: &Options{Board: &presence.Board{}}, es: &v1alpha1.ExternalSecret{},
				seen: &v1alpha1.ExternalSecretStatus{AttemptedRefreshRequest: "1"},
			}
			s.es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "2"}
			s.es.Spec.Suspend, s.es.Status.Parts = tc.suspend, tc.parts
			if len(tc.parts) > 0 {
				s.handed.Problem = &status.Verdict{}
			}
			if got := s.answered(); got != tc.want {
				t.Errorf("\n%s\nanswered(): %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLost(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		ready  string
		before syncState
		often  bool
		want   syncState
		waits  bool
	}{
		"Due":      {"A read that is due restores nothing.", "", syncState{why: policy.Elapsed}, false, syncState{why: policy.Elapsed}, false},
		"Changed":  {"Without a reason to read, another client has changed the target.", "", syncState{why: policy.NotDue}, false, syncState{why: policy.TargetLost, lost: true}, false},
		"Often":    {"A target that is changed again and again is restored with back-off.", "", syncState{why: policy.NotDue}, true, syncState{why: policy.TargetLost, lost: true}, true},
		"Missing":  {"A Secret that did not exist before was not changed.", v1alpha1.ReasonSecretMissing, syncState{why: policy.NotDue}, false, syncState{why: policy.TargetLost}, false},
		"Conflict": {"After a conflict the read restores the target.", v1alpha1.ReasonConflict, syncState{why: policy.Retry}, false, syncState{why: policy.TargetLost, lost: true}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := decided(now, func(s *subject) {
				s.state = tc.before
				s.seen.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: tc.ready}}
				for range 20 {
					if tc.often {
						s.obj.revertBackoff = s.obj.revertBackoff.Revert(now)
					}
				}
			})
			got, o := lost(s)
			if got != tc.want || (o != nil) != tc.waits || s.state != tc.before {
				t.Errorf("\n%s\nlost(): %+v, waits %t, want %+v, waits %t; the stance before is now %+v", tc.reason, got, o != nil, tc.want, tc.waits, s.state)
			}
		})
	}
}
