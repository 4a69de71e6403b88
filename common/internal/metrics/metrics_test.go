package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)

func ready(status metav1.ConditionStatus, reason string, since time.Time) []metav1.Condition {
	return []metav1.Condition{
		{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "Retrying", LastTransitionTime: metav1.NewTime(start)},
		{Type: "Ready", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)},
	}
}

func TestOf(t *testing.T) {
	created, since := start, start.Add(time.Hour)
	cases := map[string]struct {
		reason     string
		conditions []metav1.Condition
		want       State
	}{
		"New":       {"An object without conditions is out of sync from its creation.", nil, State{Status: "Unknown", Reason: "Pending", Wrong: created}},
		"Ready":     {"A Ready object is in sync.", ready("True", "SecretSynced", since), State{Status: "True", Reason: "SecretSynced"}},
		"Failed":    {"An object that is not Ready is out of sync since its last transition.", ready("False", "StoreNotReady", since), State{Status: "False", Reason: "StoreNotReady", Wrong: since}},
		"Unknown":   {"An object whose condition is Unknown is out of sync.", ready("Unknown", "Reconciling", since), State{Status: "Unknown", Reason: "Reconciling", Wrong: since}},
		"Suspended": {"A suspended object is in sync, even if it failed before.", ready("False", "Suspended", since), State{Status: "False", Reason: "Suspended"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(tc.conditions, created)); diff != "" {
				t.Errorf("\n%s\nOf(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOutOfSync(t *testing.T) {
	const h = time.Hour
	cases := map[string]struct {
		reason string
		s      State
		after  time.Duration
		want   time.Duration
	}{
		"InSync":     {"An object in sync without a refresh is not out of sync.", State{}, 100 * h, 0},
		"Wrong":      {"The condition reports the failure.", State{Wrong: start}, h, h},
		"NotDue":     {"A refresh can be late by its jitter.", State{Good: start, Interval: 10 * h}, 11 * h, 0},
		"Overdue":    {"A later refresh is overdue.", State{Good: start, Interval: 10 * h}, 13 * h, 2 * h},
		"NeverReads": {"An object without an interval is never overdue.", State{Good: start}, 100 * h, 0},
		"Both":       {"A failing condition counts, not the due refresh.", State{Wrong: start.Add(h), Good: start, Interval: 10 * h}, 3 * h, 2 * h},
		"Future":     {"A start in the future counts as 0.", State{Wrong: start.Add(h)}, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.s.outOfStep(start.Add(tc.after)); got != tc.want {
				t.Errorf("\n%s\noutOfStep(): %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
