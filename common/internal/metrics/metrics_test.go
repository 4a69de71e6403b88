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
		want       Standing
	}{
		"New":       {"What nobody has said anything of is out of step from the beginning.", nil, Standing{Status: "Unknown", Reason: "Pending", Wrong: created}},
		"Ready":     {"What is Ready is in step.", ready("True", "SecretSynced", since), Standing{Status: "True", Reason: "SecretSynced"}},
		"Failed":    {"What is not is out of step since it is not.", ready("False", "StoreNotReady", since), Standing{Status: "False", Reason: "StoreNotReady", Wrong: since}},
		"Unknown":   {"So is what is not known to be.", ready("Unknown", "Reconciling", since), Standing{Status: "Unknown", Reason: "Reconciling", Wrong: since}},
		"Suspended": {"What is suspended is as somebody wants it, also if it failed before.", ready("False", "Suspended", since), Standing{Status: "False", Reason: "Suspended"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(tc.conditions, created)); diff != "" {
				t.Errorf("\n%s\nOf(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOutOfStep(t *testing.T) {
	const h = time.Hour
	cases := map[string]struct {
		reason string
		s      Standing
		after  time.Duration
		want   time.Duration
	}{
		"InStep":     {"Nothing is due.", Standing{}, 100 * h, 0},
		"Wrong":      {"It says so itself.", Standing{Wrong: start}, h, h},
		"NotDue":     {"A refresh may be late by its jitter.", Standing{Good: start, Interval: 10 * h}, 11 * h, 0},
		"Overdue":    {"After that it is overdue.", Standing{Good: start, Interval: 10 * h}, 13 * h, 2 * h},
		"NeverReads": {"What is not refreshed on an interval is never overdue.", Standing{Good: start}, 100 * h, 0},
		"Both":       {"What it says counts before what is due.", Standing{Wrong: start.Add(h), Good: start, Interval: 10 * h}, 3 * h, 2 * h},
		"Future":     {"Clocks differ; nothing is out of step by less than nothing.", Standing{Wrong: start.Add(h)}, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.s.outOfStep(start.Add(tc.after)); got != tc.want {
				t.Errorf("\n%s\noutOfStep(): %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
